"""`attnviz.patch`: which parts carry the difference between two texts?"""

from collections.abc import Sequence
from typing import Any

from attnviz.commands.patch.record import PatchReport, check_positions
from attnviz.commands.patch.rows import of_mean, of_patching
from attnviz.commands.patch.run import Patching, patch_text
from attnviz.draw.titles import amount
from attnviz.errors import UsageError
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import Result
from attnviz.kit.values import (
    HeadNames,
    Names,
    check_count,
    check_one_of,
    recorded,
    texts_of,
    token_names,
    which_heads,
    words,
    words_of,
)
from attnviz.records.interventions import SiteKind


@recorded
def patch(
    text: str | Sequence[str],
    source: str | Sequence[str],
    model: AnyModel = "builtin",
    *,
    answer: str | Sequence[str] | None = None,
    versus: str | Sequence[str] | None = None,
    part: SiteKind = "head",
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    query: Names = (),
    align: str | Sequence[str] = (),
    top: int | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> Result[Any]:
    """Run a text with parts replaced by what they are on another (activation patching).

    >>> blue, red = (f"a {color} creature slept . the creature was" for color in ("blue", "red"))
    >>> found = attnviz.patch(blue, red, answer="red", versus="blue")
    >>> found.rows[0]["kind"], found.record.before.measured < 0 < found.record.ends.measured
    ('head', True)

    Args:
        text: a text; or several, each of which is patched, and then their mean.
        source: the text that vectors are taken from; or one for each text.
        model: a name as for `load_model`, or a loaded model.
        answer, versus: measure by how much the logit of `answer` exceeds that of `versus`; without
            `versus` the log-probability of `answer`. One for each text, or one for all. None: the
            likeliest token after the source, and that after the text.
        part: "head": each head's output, at all positions; "attention", "mlp" or "residual": what a
            layer's attention or MLP adds, or the stream that arrives at it, at one position after
            the other.
        heads, layers: as for `attnviz.capture`; `heads` for "head" alone.
        query: patch at these positions only.
        align: words that stand for each other, as in "blue=red", for texts of different lengths.
        top: how many of the parts that change most.
        bos, special, truncate: as for `attnviz.capture`.

    Returns:
        a result whose record is a `PatchReport`.

    Raises:
        AttnvizError: a text, the model or an option cannot be used; the message says what to do
            instead.
    """
    texts = texts_of(text)
    sources = [source] * len(texts) if isinstance(source, str) else texts_of(source)
    if len(sources) != len(texts):
        said = f"there are {amount(len(texts), 'text')} and {amount(len(sources), 'source')}"
        raise UsageError(said, "give one source, or one for each text")
    check_count("top", top, every=True)
    check_one_of("part", part, SiteKind)
    if part != "head" and heads is not None:
        raise UsageError('heads is for part="head"', "choose layers")
    answers = words_of("answer", answer, len(texts))
    others = words_of("versus", versus, len(texts))
    model = loaded(model)
    options = text_options(model, bos, special, truncate)
    tokens, pairs = token_names("queries", query), words("align", align)
    reports = list[PatchReport]()
    for ours, theirs, word, other in zip(texts, sources, answers, others, strict=True):
        how = Patching(part, word, other, tokens, pairs)
        given = model._loaded, ours, theirs, options, which_heads(layers, heads), how
        reports.append(patch_text(*given))
        check_positions([reports[0], reports[-1]])  # before all others are run
    results = [of_patching(report, top, line) for line, report in enumerate(reports, start=1)]
    return results[0] if isinstance(text, str) else of_mean(reports, top).after(results)
