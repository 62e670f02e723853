"""`attnviz patch`: which parts carry the difference between two texts?"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias

from attnviz.commands.patch.rows import FORM, PatchReport, check_positions
from attnviz.commands.patch.run import Patching, patch_text
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import Pairs, run_texts
from attnviz.kit.option import Call, Cli, command_of, feature, only
from attnviz.kit.result import Result, mean_result
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    loaded,
    model_of,
    questions_of,
    texts_of,
    token_names,
    which_heads,
    words,
)
from attnviz.records.predict import SiteKind

PatchedPart: TypeAlias = Annotated[
    SiteKind,
    g.heads_option(
        "--part",
        help="The vectors to take from the source. head: each head's output, at all positions. "
        "attention, mlp: what a layer's adds, residual: the stream that arrives at it; each at one "
        "position after the other.",
    ),
]
PatchedAt: TypeAlias = Annotated[
    g.Names,
    Cli(list[str] | None),
    g.tokens_option(
        "--query",
        metavar="TOKEN",
        help="Patch at these positions of the text only. Given as for show --query. Repeatable.",
    ),
]
TopSites: TypeAlias = Annotated[
    int | None,
    Cli(int, default=10),
    g.look_option("--top", metavar="K", min=1, help="Show the K parts that change most."),
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
    source: g.SourceText,
    model: AnyModel = "builtin",
    *,
    answer: g.AnswerWords = None,
    versus: g.VersusWords = None,
    part: PatchedPart = "head",
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    query: PatchedAt = (),
    align: g.AlignedWords = (),
    top: TopSites = None,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[PatchReport]:
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
    """
    questions = questions_of(text, answer, versus)
    sources = [source] * len(questions) if isinstance(source, str) else texts_of(source)
    if len(sources) != len(questions):
        wrong = f"there are {amount(len(questions), 'text')} and {amount(len(sources), 'source')}"
        raise UsageError(wrong, "give one source, or one for each text")
    model = loaded(model)
    options = model._text_options(bos, special, truncate)
    patching = Patching(
        kind=part,
        heads=which_heads(layers, heads),
        queries=token_names("queries", query),
        align=words("align", align),
    )
    results = list[Result[Any]]()
    for (ours, word, other), theirs in zip(questions, sources, strict=True):
        how = replace(patching, answer=word, versus=other)
        report = patch_text(model._loaded, ours, theirs, options, how)
        runs, line = (report.capture, report.source), len(results) + 1
        results.append(Result(FORM, report, runs, _top=top, _line=line))
        check_positions([results[0].record, report])  # before all others are run
    return results[0] if isinstance(text, str) else mean_result(results)


EXAMPLES = r"""
attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was"
attnviz patch "a blue bird slept" --from "a red bird slept" --answer "." --part residual
attnviz patch --pairs sample_texts/colors.jsonl -o heads.png
attnviz patch --pairs sample_texts/colors.jsonl -f csv | grep '^,'
"""
SHORT_HELP = "file source pairs answer versus part query model heads top format output quiet"


@command_of(
    patch,
    "text source pairs truncate bos special model run layers heads answer versus part query align "
    "top",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    pairs: Pairs = None,
    model: g.WhichModel,
    run: g.ModelRun,
    output: g.PageOutput,
) -> None:
    """Replace activations of a run with those from another text (activation patching).

    The effect is a share of the distance between the two texts: 0 is the text, 1 the source. By
    default, the likeliest token after the source is measured against that after the text.
    """
    to = destination_of(session, output)
    if to.format.picture or to.format.name == "html":
        session.refuse("top", wrong="does nothing here, as every part is shown")
    source = call.options.get("source")
    if pairs is not None and source is not None:
        raise UsageError(
            f"the sources are those of {option('pairs')}", f"leave {option('source')} out"
        )
    if pairs is None and source is None:
        raise UsageError(
            "there is no text to take vectors from", f"add {option('source', 'SOURCE')}"
        )
    run_texts(
        session,
        call,
        to,
        text,
        partial(model_of, session, model, run),
        doing="patching",
        pairs=pairs,
        fields=("text", "answer", "versus", "source"),
    )
