"""`attnviz.ablate`: does a head matter? The model's predictions without it."""

from typing import Any

from attnviz.api.given import HeadNames, check_count, check_one_of, check_text, which_heads
from attnviz.api.model import Model, loaded, text_options
from attnviz.data.ablate import Replacement
from attnviz.errors import UsageError
from attnviz.runs.ablate import Cut, ablate_each, ablate_together
from attnviz.runs.options import Truncation
from attnviz.runs.results.ablate import SHOWN, of_ablation, of_together
from attnviz.runs.results.result import Result


def ablate(
    text: str,
    model: str | Model = "builtin",
    *,
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    answer: str | None = None,
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
        text: the text.
        model: a name as for `load_model`, or a loaded model.
        heads, layers: as for `attnviz.capture`.
        answer: measure the probability of this token after the text; None: of all its tokens.
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
    check_text(text)
    check_count("top", top)
    check_one_of("replacement", replacement, Replacement)
    model = loaded(model)
    options, which = (
        text_options(model, bos, special, truncate),
        which_heads(layers, heads),
    )
    cut = Cut(replacement, answer)
    if not together:
        return of_ablation(ablate_each(model._loaded, text, options, which, cut), top)
    if not which.named:
        raise UsageError("together needs heads", 'name them, as in heads="L1H2,L3H0"')
    both = ablate_together(model._loaded, text, options, which, cut, top or SHOWN)
    return of_together(both)
