"""`attnviz patch`: which parts carry the difference between two texts?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from attnviz.commands.patch.record import PatchReport
from attnviz.commands.patch.rows import of_mean, of_patching
from attnviz.commands.patch.run import Patching, patch_text
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.prompts import PromptLine
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result, destination_of
from attnviz.kit.formats import ROWS
from attnviz.kit.intervene import Progress
from attnviz.kit.lines import (
    Answered,
    Pairs,
    check_pairs,
    deliver_lines,
    each_pair,
    note_texts,
    text_alone,
)
from attnviz.kit.option import command, option_field, panel_option
from attnviz.kit.result import Result
from attnviz.kit.session import Session, as_flag, progress
from attnviz.records.interventions import SiteKind

EPILOG = r"""
Examples

attnviz patch "a blue bird slept . the bird was" --from "a red bird slept . the bird was"

attnviz patch "a blue bird slept" --from "a red bird slept" --answer "." --part residual

attnviz patch --pairs sample_texts/colors.jsonl -o heads.png

attnviz patch --pairs sample_texts/colors.jsonl -f csv | grep '^,'
"""
COMMON = "file source pairs answer versus part queries model heads top format output quiet".split()
"""The options that the short help lists."""


@dataclass(frozen=True)
class HowPatched(g.Measured):
    """What is taken from the source, and where."""

    part: SiteKind = option_field(
        g.HEADS,
        "head",
        "--part",
        help="The vectors to take from the source. head: each head's output, at all positions. "
        "attention, mlp: what a layer's adds, residual: the stream that arrives at it; each at one "
        "position after the other.",
    )
    queries: list[str] | None = option_field(
        g.TOKENS,
        None,
        "--query",
        metavar="TOKEN",
        help="Patch at these positions of the text only. Given as for show --query. Repeatable.",
    )
    align: list[str] | None = option_field(
        g.TOKENS,
        None,
        "--align",
        metavar="WORD=WORD",
        help="A word of the text, and the word of the source that stands for it; for texts of "
        "different lengths. Repeatable.",
    )
    top: int = option_field(
        g.LOOK, 10, "--top", metavar="K", min=1, help="Show the K parts that change most."
    )

    @property
    def record(self) -> Patching:
        """The record that runs take."""
        named = tuple(self.queries or ()), tuple(self.align or ())
        return Patching(self.part, self.answer, self.versus, *named)


@command
def patch(
    session: Session,
    *,
    text: g.TextIn,
    source: Annotated[
        str | None,
        panel_option(
            g.TEXT, "--from", metavar="SOURCE", help="The text that vectors are taken from."
        ),
    ] = None,
    pairs: Pairs = None,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    heads: g.WhichHeads,
    how: HowPatched,
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
    _check(session, source, pairs is not None, how, to)
    if pairs is not None:
        check_pairs(session, to)
    refusal = "a saved capture cannot be run again"
    given = text_alone(session, text, refusal) if pairs is None else ""
    loaded = session.load(g.source_of(session, model, run))
    options, every = tokens.options(run), list[PatchReport]()
    top = how.top if session.chosen("top") else None

    def found(
        pair: PromptLine, own: Patching, number: int, tell: Progress | None = None
    ) -> Answered:
        if pair.source is None:
            raise InputError("there is no source", 'add "source" to the line')
        asked = loaded, pair.text, pair.source, options, heads.options, own
        every.append(patch_text(*asked, tell))
        return number, of_patching(every[-1], top, number)

    if pairs is None:
        with progress(session, "patching") as tell:
            _, result = found(PromptLine(given, source=source), how.record, 1, tell)
        note_texts(session, result.captures)
        deliver_result(session, to, result, canvas)
        return
    answers = each_pair(session, pairs, how.record, found)
    mean = partial(_mean, session, to, every, top)
    deliver_lines(session, to, answers, mean, canvas, mean_alone=True)


def _mean(
    session: Session, to: Destination, every: Sequence[PatchReport], top: int | None
) -> Result[Any] | None:
    """The mean over the pairs; None where there is none, and rows of each pair went out.

    Raises:
        InputError: there is none, and nothing else was asked for.
    """
    try:
        return of_mean(every, top)
    except InputError as error:
        if to.format.name not in ("json", *ROWS):
            raise
        session.complain(error.spelled(as_flag))
        return None


def _check(
    session: Session, source: str | None, pairs: bool, how: HowPatched, to: Destination
) -> None:
    """Only options that mean something together."""
    if to.format.picture or to.format.name == "html":
        session.refuse("top", wrong="does nothing here, as every part is shown")
    if pairs and source is not None:
        raise UsageError(
            f"the sources are those of {option('pairs')}", f"leave {option('source')} out"
        )
    if not pairs and source is None:
        raise UsageError(
            "there is no text to take vectors from", f"add {option('source', 'SOURCE')}"
        )
    if how.part != "head":
        session.refuse(
            "heads",
            wrong=f"is for {option('part', 'head')}",
            hint=f"choose layers with {option('layers')}",
        )
