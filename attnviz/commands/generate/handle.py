"""An answer, and what each part of it attended to, as Python has it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnviz.commands.generate.answer import Answer, Check, RowUnit
from attnviz.commands.generate.rows import SHARE, share_rows
from attnviz.commands.generate.run import Answering
from attnviz.commands.generate.shown import by_segment
from attnviz.commands.show.capture import AttentionCapture
from attnviz.draw.titles import amount
from attnviz.kit.option import check_one_of
from attnviz.kit.result import notes_of
from attnviz.records.exhibit import PictureLook
from attnviz.records.heads import listed
from attnviz.records.rows import Column, Row, shortest
from attnviz.records.tokens import Token

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer."""
        return self._answer.capture.query_tokens

    @property
    def capture(self) -> AttentionCapture:
        """The rows of each head: one for each token of the answer, over prompt and answer."""
        return AttentionCapture(self._answer.capture)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the answer and its prompt: beams, a chat's template, a cut."""
        return (*self._asked.model_notes, *self._asked.notes, *notes_of([self._answer.capture]))

    def __repr__(self) -> str:
        name, size = self._answer.capture.model.name, amount(len(self.tokens), "token")
        return f"<AttentionAnswer {name}, {size}, {listed(self._answer.choice.heads)}>"

    def shares(self, rows: RowUnit = "sentence") -> list[Row]:
        """A row for each part of the answer and each segment, as `-f jsonl` writes them.

        Args:
            rows: a part is a "sentence", a "word" or a "token"; or the whole answer in a "head".

        Raises:
            UsageError: another kind of row.
        """
        check_one_of("rows", rows, RowUnit)
        told: list[Row] = shortest(list(share_rows(self._answer.shares(rows))))
        return told

    def to_columns(self, rows: RowUnit = "sentence") -> dict[str, Column]:
        """The same by column, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return SHARE.columns(self.shares(rows))

    def figure(self, rows: RowUnit = "sentence", **look: Any) -> "Figure":
        """The shares as a picture.

        Args:
            rows: as for `shares`.
            look: `cmap`, `dpi` and `title`, as for `attnviz.show`.

        Raises:
            UsageError: another kind of row, or no such colour map.
        """
        from attnviz.draw.picture.heatmap import draw
        from attnviz.draw.picture.paint import options_of

        check_one_of("rows", rows, RowUnit)
        options = options_of(PictureLook(**look), None)
        return draw(by_segment(self._answer.shares(rows)), options).figure

    def check(self) -> Check:
        """Delete one segment after another, and measure what it does to the answer (nats).

        Raises:
            UsageError: there is no segment before the last one.
        """
        return self._asked.check(self._answer)
