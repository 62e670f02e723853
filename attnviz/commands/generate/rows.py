"""An answer as Python has it, its rows, and the forms in which it goes out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attnviz.commands.generate.answer import (
    Answer,
    AnswerPart,
    AnswerShares,
    AnswerView,
    KeyKind,
    RowUnit,
)
from attnviz.commands.generate.chain import CHAIN, chain_rows
from attnviz.commands.generate.check import CURVE_POINT, curve_points
from attnviz.commands.generate.choice import names_of
from attnviz.commands.generate.results import FAILED, OF_ANSWER
from attnviz.commands.generate.run import Answering
from attnviz.commands.generate.shown import draw, render
from attnviz.commands.generate.square import SQUARE, Square, of_square, square_of
from attnviz.commands.show.capture import AttentionCapture
from attnviz.draw.page import in_frame
from attnviz.errors import AttnvizError, as_argument, spelled
from attnviz.kit.option import check_value
from attnviz.kit.result import Form, Result, notes_of
from attnviz.kit.values import FilePath, path_of
from attnviz.kit.write import choose_format
from attnviz.records.grounding import Check, CheckMethod
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
    lookback: Any
    heads: str
    change: Any = ABSENT
    needed: Any = ABSENT
    weight: Any = ABSENT
    groundedness: Any = ABSENT
    unrelated: Any = ABSENT
    supported: Any = ABSENT
    change_of_all: Any = ABSENT
    section: Any = ABSENT
    hops: Any = ABSENT
    through: Any = ABSENT
    gate: Any = ABSENT
    passed: Any = ABSENT


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
        Field(
            "needed",
            bool | None,
            "With --check: whether the document is one of a smallest set without which most of "
            "what all of them give is lost; null: no document.",
            optional=True,
        ),
        Field(
            "weight",
            float | None,
            "With --check-method subsets: what the document adds to the logit of the answer's "
            "probability; null: no document.",
            optional=True,
        ),
        Field(
            "change_of_all",
            float | None,
            "With --check: the change of this part's log-probability without all documents; null: "
            "there are none.",
            optional=True,
        ),
        Field(
            "groundedness",
            float | None,
            "With --check: that change as a share of what there was to give, from 0 "
            "to 1; null: under 0.1 nats a token.",
            optional=True,
        ),
        Field(
            "unrelated",
            float | None,
            "The 95th percentile of the same with unrelated text in the documents' place.",
            optional=True,
        ),
        Field("supported", bool | None, "Whether groundedness is above unrelated.", optional=True),
        Field(
            "section", str, "With --rows section, or in a results file: its section.", optional=True
        ),
        Field("hops", int, "With --hops: how often shares were carried back.", optional=True),
        Field(
            "through",
            float,
            "With --hops: how much of the share came through written tokens; below 0 of a part of "
            "the answer that passed its own on.",
            optional=True,
        ),
        Field(
            "gate",
            float,
            "What a gate behind the softmax lets through in this part, in the mean.",
            optional=True,
        ),
        Field("passed", float, "The share of the length of what is written.", optional=True),
        *OF_ANSWER,
    ),
)


JSON = JsonOutput((SHARE, CURVE_POINT, CHAIN, SQUARE, FAILED))


def _share_rows(shares: AnswerShares, top: int | None, line: int | None) -> Iterator[SegmentShare]:
    """A row for each part of the answer and each column."""
    check, lookback = shares.check, shares.lookback
    names, through, gates = names_of(shares.answer.choice), shares.through, shares.gates
    for n, part in enumerate(shares.parts):
        head = part.head
        for i, (column, share) in enumerate(
            zip(shares.answer.columns, shares.shares[n], strict=True)
        ):
            segment = column.name if column.part == "segment" else ""
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
                lookback=ABSENT if lookback is None else measured(float(lookback[n])),
                heads=str(head) if head else names,
                **_of_check(check, segment, part),
                section=ABSENT if part.section is None else part.section,
                hops=shares.answer.hops or ABSENT,
                through=ABSENT if through is None else float(through[n, i]),
                gate=ABSENT if gates is None else float(gates[0, n]),
                passed=ABSENT if gates is None else float(gates[1, n]),
            )


def _of_check(check: Check | None, segment: str, part: AnswerPart) -> dict[str, Any]:
    """What a check says of a segment (empty: what is none) in a part of the answer."""
    if check is None:
        return {}
    found = dict[str, Any]()
    if check.effects:
        own = (each.changes for each in check.effects if each.segment == segment)
        found["change"] = next((sum(each[part.first : part.after]) for each in own), None)
        needed = check.smallest.segments if check.smallest else ()
        found["needed"] = segment in needed if segment in check.documents else None
    if check.subsets is not None:
        found["weight"] = dict(check.subsets.weights).get(segment)
    names = ("change_of_all", "groundedness", "unrelated", "supported")
    found |= dict.fromkeys(names)  # null without documents, as lines of a table have one header
    if check.grounds is not None:
        changes = check.grounds.changes
        of = check.grounds.of("all" if part.head else part.text, part.first, part.after)
        values = (sum(changes[part.first : part.after]), of.share, of.unrelated, of.supported)
        found |= zip(names, values, strict=True)
    return found


_OF_METHOD: Mapping[str, tuple[Fields[Any], Callable[..., Iterator[Any]]]] = MappingProxyType(
    {"curve": (CURVE_POINT, curve_points), "chain": (CHAIN, chain_rows)}
)
"""Rows of their own; of another method they are shares."""


def of_shares(
    shares: AnswerShares, line: int = 1, view: AnswerView = "table"
) -> Result[AnswerShares]:
    """The shares in an answer; in a terminal, in this view."""
    method = shares.check.method if shares.check else ""
    form = Form[AnswerShares](
        "generate",
        *_OF_METHOD.get(method, (SHARE, _share_rows)),
        lambda shares: shares.answer.about,
        terminal=lambda shares, display: render(shares, display, view),
        picture=draw,
        page="attnviz.commands.generate.page:page",
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
    _checked: dict[CheckMethod, Check] = field(default_factory=dict)

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
        """The rows of each head: one for each token of the answer, over prompt and answer.

        Of all heads, and more than 20 million weights, they are not kept while the model writes;
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

    def _result(self, rows: RowUnit, check: Check | None = None) -> Result[AnswerShares]:
        check_value("rows", rows, RowUnit)
        apart = rows == "head" and not self._answer.hops
        answer = self._each_head if apart else self._answer
        return of_shares(replace(answer.shares(rows), check=check))

    @property
    def _shown(self) -> Result[AnswerShares]:
        """Its sentences, with what was checked last."""
        return self._result("sentence", next(reversed(self._checked.values()), None))

    def __str__(self) -> str:
        return str(self._shown)

    def _repr_html_(self) -> str:
        """The page for a notebook, in a frame that can reach nothing outside; else the table."""
        try:
            return in_frame(self.page())
        except AttnvizError:  # no browser could open it
            return self._shown._repr_html_()

    def page(self) -> str:
        """The interactive page, one HTML document; after `check`, with what it measured.

        Raises:
            InputError: it would be too large for a browser.
        """
        return "".join(map(str, self._shown.pieces("html")))

    def save(self, path: FilePath, **look: Any) -> None:
        """Write it to a file; after `check`, with what it measured.

        Args:
            path: its suffix decides: html, the page; npz, the rows of each head; json, jsonl, csv
                or tsv, the rows of sentences; txt, the table; png, svg or pdf, a picture, after
                `check("curve")` of its curves.
            look: for a picture, as for `figure`.

        Raises:
            UsageError: another suffix.
            OutputError: the file cannot be written.
        """
        file = Path(path_of("path", path))
        if choose_format(file, None, False).name == "npz" and not look:
            self.capture.save(file)
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

    def square(self, *, check: bool = False) -> Result[Square]:
        """What each sentence of the answer attended to of the earlier ones.

        Args:
            check: also hide one sentence after another from all later ones, and measure the KL
                divergence (nats a token) of what these are predicted as.

        Raises:
            InputError: the answer has one sentence.
        """
        square = square_of(self._answer)
        return of_square(self._asked.suppressed(square) if check else square)

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
