"""Heads whose weight follows a sound: those that tell where each word is heard."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from attnviz.console import Display
from attnviz.draw.terminal.cells import bar_style, folded, footnotes
from attnviz.draw.titles import bar_of, facts
from attnviz.kit.choose import plan_heads
from attnviz.kit.prepare import HeadOptions, Prepared
from attnviz.kit.result import Form
from attnviz.records.capture import Capture
from attnviz.records.heads import ALIGNMENT, Head
from attnviz.records.rows import Field, Fields, at, head_fields, model_name
from attnviz.records.speech import check_aligned, heard_rows, path_scores

BAR = 20


@dataclass(frozen=True)
class AlignmentScores:
    """The share of each head's weight along a monotone path, the largest first.

    `capture`: the run, without its patterns. `chance`: that of even weights, about.
    """

    capture: Capture
    scores: tuple[tuple[Head, float], ...]

    @property
    def chance(self) -> float:
        """A path passes each frame of the sound in one row; the padding has none."""
        rows, frames = heard_rows(self.capture)
        return len(frames) / len(self.capture.key_tokens) / len(rows)

    def known(self, head: Head) -> bool:
        """Whether the model's settings name the head for alignment."""
        return any(
            each.behaviour == ALIGNMENT for each in self.capture.named(head.layer, head.head)
        )


def alignment_scores(run: Prepared | Capture, which: HeadOptions) -> AlignmentScores:
    """The scores of a run, or of a capture that holds the patterns.

    Raises:
        UsageError: no text attends to a sound there.
    """
    capture = run if isinstance(run, Capture) else run.empty
    check_aligned(capture)
    held = capture.heads if isinstance(run, Capture) else None
    every = HeadOptions(which.layers, which.heads, everything=True)
    heads = plan_heads(capture.model, (), every, held).recorded
    scores = dict[Head, float]()
    for layer in sorted({head.layer for head in heads}):
        own = [head for head in heads if head.layer == layer]
        scores |= path_scores(capture if isinstance(run, Capture) else run.record(own), own)
    ranked = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    return AlignmentScores(capture.only(()), tuple(ranked))


ALIGNMENT_ROW = Fields[tuple[AlignmentScores, Head, float]](
    "AlignmentRow",
    "With --alignment: how a head's attention follows a sound.",
    (
        model_name(at("0.capture.model.name")),
        *head_fields(at("1")),
        Field(
            "alignment",
            float,
            "The share of its weight along a monotone path through the sound.",
            at("2"),
        ),
        Field(
            "known",
            bool,
            "Whether the model's settings name it for alignment.",
            lambda row: row[0].known(row[1]),
        ),
    ),
)


def _render(found: AlignmentScores, display: Display, top: int) -> Iterator[Text]:
    yield from folded(Text(facts(found.capture), "dim"), display.width)
    yield Text()
    for head, score in found.scores[:top]:
        line = Text(f"{head!s:<8}{score:.2f} ")
        line.append(bar_of(score, BAR, display.unicode), bar_style(score, display))
        line.append("  in the model's settings" * found.known(head), "dim")
        line.rstrip()
        yield line
    about = (
        "the share of a head's weight along the monotone path with the most of it; even weights "
        f"reach about {found.chance:.2f}"
    )
    yield from footnotes([about], display.width)


OF_ALIGNMENT = Form[AlignmentScores](
    "heads",
    ALIGNMENT_ROW,
    lambda found, top, line: ((found, *each) for each in found.scores[:top]),
    lambda found: facts(found.capture),
    terminal=_render,
    top=sys.maxsize,
)
