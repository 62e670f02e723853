"""An answer as Python has it, its rows, and the forms in which it goes out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnviz.commands.generate.answer import (
    Answer,
    AnswerShares,
    AnswerView,
    Check,
    KeyKind,
    RowUnit,
)
from attnviz.commands.generate.choice import names_of
from attnviz.commands.generate.run import Answering
from attnviz.commands.generate.shown import draw, render
from attnviz.commands.show.capture import AttentionCapture
from attnviz.errors import as_argument, spelled
from attnviz.kit.option import check_value
from attnviz.kit.result import Form, Result, notes_of
from attnviz.records.rows import ABSENT, LINE, ColumnArray, Field, Fields, JsonOutput, Row, measured
from attnviz.records.tokens import Token

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class SegmentShare:
    """A row: a column's share in a part of an answer; `ABSENT` is what was not asked for."""

    line: int
    id: Any
    row: int
    text: str
    segment: str
    part: KeyKind
    share: float
    layer: Any
    head: Any
    change: Any
    lookback: Any
    heads: str


SHARE = Fields[SegmentShare](
    "ShareRow",
    "The share of a segment in what a part of the answer attended to.",
    (
        LINE,
        Field("id", str | int | None, "Of a chat or a question: its own id.", optional=True),
        Field("row", int, "The number of the part of the answer, or of the head, from 1."),
        Field("text", str, "The part of the answer; empty: the whole answer in one head."),
        Field("segment", str, "The name of the segment."),
        Field("part", KeyKind, "What the segment is; sink: the first token."),
        Field("share", float, "The mean weight on it; the shares of a row sum to 1."),
        Field("layer", int, "With --rows head: the head's layer.", optional=True),
        Field("head", int, "With --rows head: its number in the layer.", optional=True),
        Field(
            "change",
            float | None,
            "With --check: the change of this part's log-probability (nats) without the segment.",
            optional=True,
        ),
        Field(
            "lookback", float | None, "With --rows head: the head's lookback ratio.", optional=True
        ),
        Field("heads", str, "The heads whose rows were joined, as --head takes them, or all."),
    ),
)
JSON = JsonOutput((SHARE,))


def _share_rows(shares: AnswerShares, top: int | None, line: int | None) -> Iterator[SegmentShare]:
    """A row for each part of the answer and each column."""
    check, lookback = shares.check, shares.lookback
    changes = {each.segment: each.changes for each in check.effects} if check else {}
    names = names_of(shares.answer.choice)
    for n, part in enumerate(shares.parts):
        head = part.head
        for column, share in zip(shares.answer.columns, shares.shares[n], strict=True):
            change = ABSENT if check is None else None
            if column.part == "segment" and column.name in changes:
                change = sum(changes[column.name][part.first : part.after])
            yield SegmentShare(
                line=line or 1,
                id=shares.answer.id,
                row=shares.before + n + 1,
                text="" if head else part.text,
                segment=column.name,
                part=column.part,
                share=float(share),
                layer=head.layer if head else ABSENT,
                head=head.head if head else ABSENT,
                change=change,
                lookback=ABSENT if lookback is None else measured(float(lookback[n])),
                heads=str(head) if head else names,
            )


def of_shares(
    shares: AnswerShares, line: int = 1, view: AnswerView = "table"
) -> Result[AnswerShares]:
    """The shares in an answer; in a terminal, in this view."""
    form = Form[AnswerShares](
        "generate",
        SHARE,
        _share_rows,
        lambda shares: shares.answer.about,
        terminal=lambda shares, display: render(shares, display, view),
        picture=draw,
    )
    capture = shares.answer.capture
    return Result(form, shares, (capture,), asked=capture.asked, _line=line)


@dataclass(frozen=True, eq=False, repr=False)
class AttentionAnswer:
    """An answer, and what each part of it attended to; made by `attnviz.generate`.

    >>> answer = attnviz.generate("the creature was", max_new_tokens=2)
    >>> [row["segment"] for row in answer.shares("token")][:2]
    ['sink', '1']
    """

    _asked: Answering
    _answer: Answer

    @property
    def text(self) -> str:
        """The answer."""
        return self._answer.text

    @property
    def id(self) -> str | int | None:
        """The id of the chat or the question; None: it has none."""
        return None if self._answer.id is ABSENT else self._answer.id

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer."""
        return self._answer.capture.query_tokens

    @property
    def capture(self) -> AttentionCapture:
        """The rows of each head: one for each token of the answer, over prompt and answer."""
        return AttentionCapture(self._answer.capture)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the answer and its prompt: beams, a chat's template, a cut."""
        about_prompt = (spelled(note, as_argument) for note in self._asked.notes)
        return (*self._asked.model_notes, *about_prompt, *notes_of([self._answer.capture]))

    def __repr__(self) -> str:
        return f"<AttentionAnswer {self._answer.about}>"

    def _result(self, rows: RowUnit) -> Result[AnswerShares]:
        check_value("rows", rows, RowUnit)
        return of_shares(self._answer.shares(rows))

    def shares(self, rows: RowUnit = "sentence") -> list[Row]:
        """A row for each part of the answer and each segment, as `-f jsonl` writes them.

        Args:
            rows: a part is a "sentence", a "word" or a "token"; or the whole answer in a "head".

        Raises:
            UsageError: another kind of row.
        """
        return self._result(rows).rows

    def to_columns(self, rows: RowUnit = "sentence") -> dict[str, ColumnArray]:
        """The same by column, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return self._result(rows).to_columns()

    def figure(self, rows: RowUnit = "sentence", **look: Any) -> "Figure":
        """The shares as a picture.

        Args:
            rows: as for `shares`.
            look: `cmap`, `dpi` and `title`, as for `attnviz.show`.

        Raises:
            UsageError: another kind of row, or no such colour map.
        """
        return self._result(rows).figure(**look)

    def check(self) -> Check:
        """Delete one segment after another, and measure what it does to the answer (nats).

        Raises:
            UsageError: there is no segment before the last one.
        """
        return self._asked.check(self._answer)
