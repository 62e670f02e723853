"""`attnviz.ablate`: does a part matter? The model's predictions without it."""

from collections.abc import Sequence
from typing import Any

from attnviz.commands.ablate.record import Found, link_named
from attnviz.commands.ablate.rows import SHOWN, of_found, of_mean
from attnviz.commands.ablate.run import Ablating, Targets, ablate_each, ablate_together
from attnviz.errors import UsageError
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.option import check_count, check_one_of, check_word
from attnviz.kit.options import HeadNames, LayerNames
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import Result
from attnviz.kit.values import layer_names, recorded, texts_of, which_heads, words_of
from attnviz.records.interventions import Replacement


@recorded
def ablate(
    text: str | Sequence[str],
    model: AnyModel = "builtin",
    *,
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    mlps: LayerNames | None = None,
    whole_layers: LayerNames | None = None,
    answer: str | Sequence[str] | None = None,
    versus: str | Sequence[str] | None = None,
    replacement: Replacement = "zero",
    cut: str | None = None,
    renormalise: bool = False,
    together: bool = False,
    top: int | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> Result[Any]:
    """Ablate parts of a model one at a time, or several at once, and measure the effect.

    >>> text = "a fluffy blue creature roamed the forest . the creature was"
    >>> attnviz.ablate(text, answer="blue", top=1).rows[0]["head"]
    0

    Args:
        text: a text; or several, each of which is measured, and then their mean.
        model: a name as for `load_model`, or a loaded model.
        heads, layers: as for `attnviz.capture`.
        mlps, whole_layers: the layers whose MLPs are ablated, or all that they add: a number, a
            list, or a text such as "0-3" or "all".
        answer: measure the log-probability of this token after the text, or of one for each text;
            None: of all tokens of the text.
        versus: measure by how much the logit of `answer` exceeds that of this token, or of one for
            each text.
        replacement: "zero", or the "mean" of the output over the positions.
        cut: remove the heads' links "QUERY:KEY", in place of their outputs.
        renormalise: with `cut`, the other weights of the row sum to 1.
        together: all of the parts at once.
        top: how many of the parts that matter most; with `together`, how many candidates.
        bos, special, truncate: as for `attnviz.capture`.

    Returns:
        a result whose record is an `AblationReport`; with `together` a `BeforeAfter`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    texts = texts_of(text)
    check_count("top", top, every=True)
    check_one_of("replacement", replacement, Replacement)
    answers = words_of("answer", answer, len(texts))
    others = words_of("versus", versus, len(texts))
    check_word("cut", cut)
    link = None if cut is None else link_named(cut, renormalise=renormalise)
    if renormalise and cut is None:
        raise UsageError("renormalise is for cut", 'add cut="QUERY:KEY"')
    if cut is not None and replacement != "zero":
        raise UsageError("replacement does nothing for a link, which is removed", "leave it out")
    model = loaded(model)
    options = text_options(model, bos, special, truncate)
    which = which_heads(layers, heads)
    targets = Targets(which, layer_names("mlps", mlps), layer_names("whole_layers", whole_layers))
    if together and not (targets.named or cut):
        hint = 'name them, as in heads="L1H2,L3H0" or mlps="all"'
        raise UsageError("together needs heads or other parts", hint)
    found = list[Found]()
    for each, word, other in zip(texts, answers, others, strict=True):
        how = Ablating(replacement, word, other, link)
        given = model._loaded, each, options, targets, how
        found.append(ablate_together(*given, top or SHOWN) if together else ablate_each(*given))
    results = [of_found(one, top, number) for number, one in enumerate(found, start=1)]
    return results[0] if isinstance(text, str) else of_mean(found, top).after(results)
