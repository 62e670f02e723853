"""An answer as Python has it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnviz.commands.generate.answer import Answer, AnswerShares, AnswerView, RowUnit
from attnviz.commands.generate.rows import of_shares
from attnviz.commands.generate.run import Answering
from attnviz.commands.generate.shown import picture_view
from attnviz.commands.generate.square import Square, of_square, square_of, with_suppression
from attnviz.commands.show.capture import AttentionCapture
from attnviz.draw.page import in_frame
from attnviz.errors import AttnvizError, UsageError, as_argument, option, spelled
from attnviz.kit.option import check_value
from attnviz.kit.result import Result, notes_of
from attnviz.kit.values import FilePath, path_of
from attnviz.kit.write import Format, Piece, choose_format
from attnviz.records.grounding import Check, CheckMethod
from attnviz.records.rows import ABSENT, ColumnArray, Row
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
    _checked: dict[CheckMethod, Check] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The answer."""
        return self._answer.text

    @property
    def id(self) -> str | int | None:
        """The id of the chat or the question, or None without one."""
        return None if self._answer.id is ABSENT else self._answer.id

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer."""
        return self._answer.capture.query_tokens

    @property
    def capture(self) -> AttentionCapture:
        """The rows of each head: one for each token of the answer, over prompt and answer.

        Rows of all heads with more than 20 million weights are not kept while the model writes;
        the answer is then read once more.
        """
        return AttentionCapture(self._each_head.capture)

    @cached_property
    def _each_head(self) -> Answer:
        return self._asked.with_each_head(self._answer)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the answer and its prompt: beams, a chat's template, a cut."""
        about_prompt = (spelled(note, as_argument) for note in self._asked.notes)
        return (*self._asked.model_notes, *about_prompt, *notes_of([self._answer.capture]))

    def __repr__(self) -> str:
        return f"<AttentionAnswer {self._answer.about}>"

    def _result(
        self, rows: RowUnit, check: Check | None = None, view: AnswerView = "table"
    ) -> Result[AnswerShares]:
        check_value("rows", rows, RowUnit)
        apart = rows == "head" and not self._answer.hops
        answer = self._each_head if apart else self._answer
        return of_shares(replace(answer.shares(rows), check=check), view=view)

    def _pictured(self, rows: RowUnit | None, view: AnswerView | None) -> Result[AnswerShares]:
        """The answer's picture: each word's attention to patches, or the shares of sentences."""
        check_value("view", view, Literal["heatmap", "image"] | None)
        view = view or picture_view(self._answer.capture, rows)
        if view == "image" and rows == "head":
            raise UsageError("an image shows parts of the answer", f"leave {option('rows')} out")
        return self._result(rows or ("word" if view == "image" else "sentence"), view=view)

    @property
    def _shown(self) -> Result[AnswerShares]:
        """The answer's sentences, with the results of the last check."""
        return self._result("sentence", next(reversed(self._checked.values()), None))

    def pieces(self, format: str) -> Iterable[Piece]:
        """It in a format, as in a file of `save`, piece by piece."""
        curves = next(reversed(self._checked), "") == "curve"
        drawn = Format(format).picture and not curves
        return (self._pictured(None, None) if drawn else self._shown).pieces(format)

    def __str__(self) -> str:
        return str(self._shown)

    def _repr_html_(self) -> str:
        """The page for a notebook, in a frame that can reach nothing outside; else the table."""
        try:
            return in_frame(self.page())
        except AttnvizError:  # no browser could open it
            return self._shown._repr_html_()

    def page(self, rows: Literal["sentence", "word"] = "sentence") -> str:
        """The interactive page, one HTML document; after `check`, with what it measured.

        Args:
            rows: what its statements are.

        Raises:
            UsageError: another kind of row.
            InputError: it would be too large for a browser.
        """
        check_value("rows", rows, Literal["sentence", "word"])
        shown = self._result(rows, next(reversed(self._checked.values()), None))
        return "".join(map(str, shown.pieces("html")))

    def save(self, path: FilePath, **look: Any) -> None:
        """Write it to a file; after `check`, with what it measured.

        Args:
            path: its suffix decides: html, the page; npz, the rows of each head; json, jsonl, csv
                or tsv, the rows of sentences; txt, the table; png, svg or pdf, a picture, after
                `check("curve")` of its curves.
            look: for a picture, as for `figure`, also its `view`.

        Raises:
            UsageError: another suffix.
            OutputError: the file cannot be written.
        """
        file = Path(path_of("path", path))
        form = choose_format(file, None, False)
        curves = next(reversed(self._checked), "") == "curve"
        if form.name == "npz" and not look:
            self.capture.save(file)
        elif form.picture and not curves:
            self._pictured(None, look.pop("view", None)).save(file, **look)
        else:
            self._shown.save(file, **look)

    def shares(self, rows: RowUnit = "sentence") -> list[Row]:
        """A row for each part of the answer and each segment, as `-f jsonl` writes them.

        Args:
            rows: a part is a "section" (thinking, tool call, tool result, answer), a "sentence", a
                "word" or a "token"; or the whole answer in a "head".

        Raises:
            UsageError: another kind of row.
        """
        return self._result(rows).rows

    def to_columns(self, rows: RowUnit = "sentence") -> dict[str, ColumnArray]:
        """The rows by column, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return self._result(rows).to_columns()

    def figure(
        self, rows: RowUnit | None = None, *, view: AnswerView | None = None, **look: Any
    ) -> "Figure":
        """The shares as a picture; of a prompt with images, what was attended to of these.

        Args:
            rows: as for `shares`; None: words over images, else sentences.
            view: "image" or "heatmap"; None: images if there are any.
            look: `cmap`, `dpi` and `title`, as for `attnviz.show`.

        Raises:
            UsageError: another kind of row, or no such colour map.
        """
        return self._pictured(rows, view).figure(**look)

    def square(self, *, check: bool = False) -> Result[Square]:
        """The attention of each sentence of the answer to the earlier ones.

        Args:
            check: also hide one sentence after another from all later ones, and measure the KL
                divergence (nats a token) of what these are predicted as.

        Raises:
            InputError: the answer has one sentence.
        """
        square = square_of(self._answer)
        return of_square(with_suppression(self._asked.model, square) if check else square)

    def check(self, method: CheckMethod = "delete") -> Check:
        """Delete parts of the prompt, and measure what it does to the answer (nats).

        Args:
            method: "delete", one segment after another; "chain", the same, and with `hops` each
                link back to the prompt is cut; "subsets", random subsets of the documents, and a
                sparse linear fit; "curve", more and more of their tokens.

        Raises:
            UsageError: another method, or the chain of an answer without `hops`.
            InputError: there is no segment before the last one, or no document.
        """
        check_value("method", method, CheckMethod)
        found = self._checked.pop(method, None) or self._asked.check(self._answer, method)
        self._checked[method] = found  # the last one
        return found
