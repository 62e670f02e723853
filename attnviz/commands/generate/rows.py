"""The shares of a prompt's segments in what an answer attended to, as rows."""

from collections.abc import Iterator
from typing import Annotated, NotRequired, TypedDict

from attnviz.commands.generate.answer import AnswerShares, Check, KeyKind
from attnviz.records.exhibit import Sides
from attnviz.records.rows import JsonOutput, LineNumber, declared, measured

SIDES = Sides("part of the answer", "parts of the answer", "segment", "segments")
OF_HEADS = Sides("head", "heads", "segment", "segments")


class ShareRow(TypedDict):
    """The share of a segment in what a part of the answer attended to."""

    line: LineNumber
    row: Annotated[int, "The number of the part of the answer, or of the head, from 1."]
    text: Annotated[str, "The part of the answer; empty: the whole answer in one head."]
    segment: Annotated[str, "The name of the segment."]
    part: Annotated[KeyKind, "What the segment is; sink: the first token."]
    share: Annotated[float, "The mean weight on it; the shares of a row sum to 1."]
    layer: NotRequired[Annotated[int, "With --rows head: the head's layer."]]
    head: NotRequired[Annotated[int, "With --rows head: its number in the layer."]]
    change: NotRequired[
        Annotated[
            float | None,
            "With --check: the change of this part's log-probability (nats) without the segment.",
        ]
    ]
    lookback: NotRequired[Annotated[float | None, "With --rows head: the head's lookback ratio."]]


def share_rows(
    shares: AnswerShares, line: int = 1, check: Check | None = None, first: int = 0
) -> Iterator[ShareRow]:
    """A row for each part of the answer and each column.

    `first`: how many parts of the answer went out before.
    """
    changes = {each.segment: each.changes for each in check.effects} if check else {}
    for n, part in enumerate(shares.rows):
        for column, share in zip(shares.columns, shares.shares[n], strict=True):
            row: ShareRow = {
                "line": line,
                "row": first + n + 1,
                "text": "" if part.head else part.text,
                "segment": column.name,
                "part": column.part,
                "share": float(share),
            }
            if part.head is not None:
                row |= {"layer": part.head.layer, "head": part.head.head}
            if check is not None:
                deleted = column.part == "segment" and column.name in changes
                of_part = changes[column.name][part.first : part.after] if deleted else ()
                row |= {"change": sum(of_part) if deleted else None}
            if shares.lookback is not None:
                row |= {"lookback": measured(float(shares.lookback[n]))}
            yield row


JSON = JsonOutput((declared(ShareRow),))
