"""The shares of a prompt's segments in what an answer attended to, as rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnviz.commands.generate.answer import AnswerPart, AnswerShares, Check, KeyGroup, KeyKind
from attnviz.records.exhibit import Sides
from attnviz.records.rows import ABSENT, LINE, Field, Fields, JsonOutput, measured

SIDES = Sides("part of the answer", "parts of the answer", "segment", "segments")
OF_HEADS = Sides("head", "heads", "segment", "segments")


@dataclass(frozen=True)
class SegmentShare:
    """The share of a column in a row of an answer; `part`: the part of the answer, or the head.

    `change` and `lookback` are `ABSENT` where they were not asked for.
    """

    line: int
    row: int
    part: AnswerPart
    column: KeyGroup
    share: float
    change: Any
    lookback: Any


SHARE = Fields[SegmentShare](
    "ShareRow",
    "The share of a segment in what a part of the answer attended to.",
    (
        LINE,
        Field("row", int, "The number of the part of the answer, or of the head, from 1."),
        Field(
            "text",
            str,
            "The part of the answer; empty: the whole answer in one head.",
            lambda row: "" if row.part.head else row.part.text,
        ),
        Field("segment", str, "The name of the segment.", lambda row: row.column.name),
        Field(
            "part",
            KeyKind,
            "What the segment is; sink: the first token.",
            lambda row: row.column.part,
        ),
        Field("share", float, "The mean weight on it; the shares of a row sum to 1."),
        Field(
            "layer",
            int,
            "With --rows head: the head's layer.",
            lambda row: row.part.head.layer if row.part.head else ABSENT,
            optional=True,
        ),
        Field(
            "head",
            int,
            "With --rows head: its number in the layer.",
            lambda row: row.part.head.head if row.part.head else ABSENT,
            optional=True,
        ),
        Field(
            "change",
            float | None,
            "With --check: the change of this part's log-probability (nats) without the segment.",
            optional=True,
        ),
        Field(
            "lookback", float | None, "With --rows head: the head's lookback ratio.", optional=True
        ),
    ),
)
JSON = JsonOutput((SHARE,))


def share_rows(
    shares: AnswerShares, line: int = 1, check: Check | None = None, first: int = 0
) -> Iterator[dict[str, Any]]:
    """A row for each part of the answer and each column.

    `first`: how many parts of the answer went out before.
    """
    changes = {each.segment: each.changes for each in check.effects} if check else {}
    for n, part in enumerate(shares.rows):
        lookback = ABSENT if shares.lookback is None else measured(float(shares.lookback[n]))
        for column, share in zip(shares.columns, shares.shares[n], strict=True):
            change = ABSENT if check is None else None
            if column.part == "segment" and column.name in changes:
                change = sum(changes[column.name][part.first : part.after])
            number = first + n + 1
            yield SHARE.row(
                SegmentShare(line, number, part, column, float(share), change, lookback)
            )
