"""`attnviz patch`: which parts carry the difference between two texts?"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, TypeAlias

from attnviz.commands.patch.record import PatchReport, check_positions
from attnviz.commands.patch.rows import of_mean, of_patching
from attnviz.commands.patch.run import Patching, patch_text
from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.prompts import PromptLine
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result, destination_of
from attnviz.kit.formats import ROWS
from attnviz.kit.lines import Pairs, check_pairs, deliver_lines, each_pair, note_texts, text_alone
from attnviz.kit.model import AnyModel, loaded, model_of, text_options
from attnviz.kit.option import Call, Cli, command_of, feature, only, panel_option
from attnviz.kit.result import Result
from attnviz.kit.session import Session, as_flag
from attnviz.kit.values import texts_of, token_names, which_heads, words, words_of
from attnviz.records.predict import Measure, SiteKind

SourceText: TypeAlias = Annotated[
    str | Sequence[str],
    Cli(str | None),
    panel_option(g.TEXT, "--from", metavar="SOURCE", help="The text that vectors are taken from."),
]
PatchedPart: TypeAlias = Annotated[
    SiteKind,
    panel_option(
        g.HEADS,
        "--part",
        help="The vectors to take from the source. head: each head's output, at all positions. "
        "attention, mlp: what a layer's adds, residual: the stream that arrives at it; each at one "
        "position after the other.",
    ),
]
PatchedAt: TypeAlias = Annotated[
    g.Names,
    Cli(list[str] | None),
    panel_option(
        g.TOKENS,
        "--query",
        metavar="TOKEN",
        help="Patch at these positions of the text only. Given as for show --query. Repeatable.",
    ),
]
AlignedWords: TypeAlias = Annotated[
    str | Sequence[str],
    Cli(list[str] | None),
    panel_option(
        g.TOKENS,
        "--align",
        metavar="WORD=WORD",
        help="A word of the text, and the word of the source that stands for it; for texts of "
        "different lengths. Repeatable.",
    ),
]
TopSites: TypeAlias = Annotated[
    int | None,
    Cli(int, default=10),
    panel_option(g.LOOK, "--top", metavar="K", min=1, help="Show the K parts that change most."),
]


@feature(
    only(
        "heads",
        lambda call: call["part"] == "head",
        f"is for {option('part', 'head')}",
        f"choose layers with {option('layers')}",
    )
)
def patch(
    text: str | Sequence[str],
    source: SourceText,
    model: AnyModel = "builtin",
    *,
    answer: g.AnswerWords = None,
    versus: g.VersusWords = None,
    part: PatchedPart = "head",
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    query: PatchedAt = (),
    align: AlignedWords = (),
    top: TopSites = None,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[Any]:
    """Replace activations of a run with those from another text (activation patching).

    >>> blue, red = (f"a {color} creature slept . the creature was" for color in ("blue", "red"))
    >>> found = attnviz.patch(blue, red, answer="red", versus="blue")
    >>> found.rows[0]["kind"], found.record.before.measured < 0 < found.record.ends.measured
    ('head', True)

    Of several texts, each is patched, and their mean comes last; the source, the answer and the
    versus are one for all of them, or one for each. By default, the likeliest token after the
    source is measured against that after the text.

    Args:
        text: a text, or several.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `PatchReport`.

    Raises:
        AttnvizError: a text, the model or an option cannot be used; the message says what to do
            instead.
    """
    texts = texts_of(text)
    sources = [source] * len(texts) if isinstance(source, str) else texts_of(source)
    if len(sources) != len(texts):
        wrong = f"there are {amount(len(texts), 'text')} and {amount(len(sources), 'source')}"
        raise UsageError(wrong, "give one source, or one for each text")
    answers = words_of("answer", answer, len(texts))
    others = words_of("versus", versus, len(texts))
    model = loaded(model)
    options, which = text_options(model, bos, special, truncate), which_heads(layers, heads)
    positions, pairs = token_names("queries", query), words("align", align)
    reports = list[PatchReport]()
    for ours, theirs, word, other in zip(texts, sources, answers, others, strict=True):
        how = Patching(part, word, other, positions, pairs)
        reports.append(patch_text(model._loaded, ours, theirs, options, which, how))
        check_positions([reports[0], reports[-1]])  # before all others are run
    results = [of_patching(report, top, line) for line, report in enumerate(reports, start=1)]
    return results[0] if isinstance(text, str) else of_mean(reports, top).after(results)


EPILOG = r"""
Examples

attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was"

attnviz patch "a blue bird slept" --from "a red bird slept" --answer "." --part residual

attnviz patch --pairs sample_texts/colors.jsonl -o heads.png

attnviz patch --pairs sample_texts/colors.jsonl -f csv | grep '^,'
"""
COMMON = "file source pairs answer versus part query model heads top format output quiet".split()
"""The options that the short help lists."""


@command_of(
    patch,
    "text source pairs truncate bos special model run layers heads answer versus part query align "
    "top canvas screen output noise",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    pairs: Pairs = None,
    model: g.WhichModel,
    run: g.ModelRun,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.PageOutput,
    noise: g.Noise,
) -> None:
    """Replace activations of a run with those from another text (activation patching).

    The effect is a share of the distance between the two texts: 0 is the text, 1 the source. By
    default, the likeliest token after the source is measured against that after the text.
    """
    to = destination_of(session, output)
    if to.format.picture or to.format.name == "html":
        session.refuse("top", wrong="does nothing here, as every part is shown")
    source, answer, versus, top = map(call.options.get, ("source", "answer", "versus", "top"))
    _check_source(source, pairs=pairs is not None)
    if pairs is not None:
        check_pairs(session, to)
    refusal = "a saved capture cannot be run again"
    alone = text_alone(session, text, refusal) if pairs is None else ""
    ready = model_of(session, model, run)
    if pairs is None:
        with session.running("patching"):
            result = call(text=alone, model=ready)
        note_texts(session, result.captures)
        deliver_result(session, to, result, canvas)
        return
    reports = list[PatchReport]()

    def patched(pair: PromptLine, number: int) -> Result[Any]:
        if pair.source is None:
            raise InputError("there is no source", 'add "source" to the line')
        texts = {"text": pair.text, "source": pair.source}
        found = call(**texts, model=ready, answer=pair.answer, versus=pair.versus)
        reports.append(found.record)
        return of_patching(found.record, top, number)

    def measure(answer: str | None, versus: str | None) -> Measure:
        return Patching(answer=answer, versus=versus).measure

    answers = each_pair(session, pairs, answer, versus, measure, patched)
    mean = partial(_mean, session, to, reports, top)
    deliver_lines(session, to, answers, mean, canvas, mean_alone=True)


def _check_source(source: str | None, *, pairs: bool) -> None:
    """See that there is one source: in the file of pairs, or beside the text."""
    if pairs and source is not None:
        raise UsageError(
            f"the sources are those of {option('pairs')}", f"leave {option('source')} out"
        )
    if not pairs and source is None:
        raise UsageError(
            "there is no text to take vectors from", f"add {option('source', 'SOURCE')}"
        )


def _mean(
    session: Session, to: Destination, reports: Sequence[PatchReport], top: int | None
) -> Result[Any] | None:
    """The mean over the pairs; None where there is none, and rows of each pair went out.

    Raises:
        InputError: there is none, and nothing else was asked for.
    """
    try:
        return of_mean(reports, top)
    except InputError as error:
        if to.format.name not in ("json", *ROWS):
            raise
        session.complain(error.spelled(as_flag))
        return None
