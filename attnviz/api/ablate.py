"""`attnviz.ablate`: does a head matter? The model's predictions without it."""

from collections.abc import Sequence
from typing import Any

from attnviz.api.given import HeadNames, check_count, check_one_of, texts_of, which_heads
from attnviz.api.model import Model, loaded, text_options
from attnviz.data.ablate import AblationReport, Replacement
from attnviz.errors import UsageError
from attnviz.renderers.titles import amount
from attnviz.runs.ablate import Cut, ablate_each, ablate_together
from attnviz.runs.options import Truncation
from attnviz.runs.results.ablate import SHOWN, of_ablation, of_mean, of_together
from attnviz.runs.results.result import Result


def ablate(
    text: str | Sequence[str],
    model: str | Model = "builtin",
    *,
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    answer: str | Sequence[str] | None = None,
    replacement: Replacement = "zero",
    together: bool = False,
    top: int | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> Result[Any]:
    """Ablate heads one at a time, or several at once, and measure the effect on predictions.

    >>> text = "a fluffy blue creature roamed the forest . the creature was"
    >>> attnviz.ablate(text, answer="blue", top=1).rows[0]["head"]
    0

    Args:
        text: a text; or several, each of which is measured, and then their mean.
        model: a name as for `load_model`, or a loaded model.
        heads, layers: as for `attnviz.capture`.
        answer: measure the probability of this token after the text, or of one for each text; None:
            of all tokens of the text.
        replacement: "zero", or the "mean" of the head's output over the positions.
        together: all of the heads at once.
        top: how many of the heads that matter most; with `together`, how many candidates.
        bos, special, truncate: as for `attnviz.capture`.

    Returns:
        a result whose record is an `AblationReport`; with `together` a `BeforeAfter`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    texts = texts_of(text)
    check_count("top", top)
    check_one_of("replacement", replacement, Replacement)
    answers = _answers(answer, len(texts))
    model = loaded(model)
    options = text_options(model, bos, special, truncate)
    which = which_heads(layers, heads)
    if together and not which.named:
        raise UsageError("together needs heads", 'name them, as in heads="L1H2,L3H0"')
    reports, results = list[AblationReport](), list[Result[Any]]()
    for number, (each, word) in enumerate(zip(texts, answers, strict=True), start=1):
        given = model._loaded, each, options, which, Cut(replacement, word)
        if together:
            both = ablate_together(*given, top or SHOWN)
            reports.append(both.report)
            results.append(of_together(both, number))
        else:
            reports.append(ablate_each(*given))
            results.append(of_ablation(reports[-1], top, number))
    if isinstance(text, str):
        return results[0]
    return of_mean(reports, top, together=together).after(results)


def _answers(answer: str | Sequence[str] | None, texts: int) -> list[str | None]:
    """What is measured after each text.

    Raises:
        UsageError: there is another number of answers.
    """
    if answer is None or isinstance(answer, str):
        return [answer] * texts
    if len(answer) != texts:
        said = f"there are {amount(texts, 'text')} and {amount(len(answer), 'answer')}"
        raise UsageError(said, "give one answer, or one for each text")
    return list(answer)
