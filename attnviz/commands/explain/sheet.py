"""A sheet of a calculation: steps with formulas, vectors, matrices, weighted sums and bars.

Numbers are cut to decimals here and nowhere else. A line that is too long loses the entries of its
vectors, with `…`; a sentence is folded.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import ascii_only, distinct_labels, fenced
from attnviz.draw.terminal.cells import bar_style, cut, folded, pad, widest
from attnviz.draw.titles import amount, bar_of
from attnviz.records.capture import FloatArray
from attnviz.records.meaning import Meaning
from attnviz.records.trace import HeadTrace, OtherRow, Similarity

INDENT = "   "
LABEL = 16  # cells that a label may take
BAR = 16
MOST_KEYS = 24  # of a row; more would bury the calculation
LARGE = 1e7  # larger numbers are written with an exponent
PLAIN = str.maketrans(
    {"·": "*", "√": "sqrt ", "−": "-", "×": "x", "…": "...", "Δ": "d", "→": "->", "ᵀ": "^T"}
)

Array: TypeAlias = NDArray[np.floating]
FORMULAS: dict[Similarity, str] = {
    "dot": "q·kᵀ",
    "scaled-dot": "q·kᵀ / √d_k",
    "general": "x·(W_Q·W_Kᵀ)·xᵀ",
    "rbf": "−‖q − k‖² / (2·√d_k)",
}

TURNED: dict[Similarity, str] = {  # the same with tokens as columns: one for each query
    "dot": "k·qᵀ",
    "scaled-dot": "k·qᵀ / √d_k",
    "general": "x·(W_K·W_Qᵀ)·xᵀ",
    "rbf": "−‖k − q‖² / (2·√d_k)",
}


@dataclass(frozen=True)
class Sheet:
    """The lines of a calculation, with `digits` decimals, and `in_sums` for weights in a sum.

    `columns`: also with tokens as columns (xᵀ, W·xᵀ), as some lessons do.
    """

    display: Display
    digits: int = 4
    columns: bool = False
    in_sums: int = 2
    lines: list[Text] = field(default_factory=list)

    def title(self, text: str, *about: str) -> None:
        """The title of the sheet at the left edge, and the lines below it that are not empty."""
        self._write(text, "bold")
        for line in filter(None, about):
            self._write(line, "dim")

    def heading(self, number: int, title: str) -> None:
        """An empty line, and the title of a step."""
        self.lines.append(Text())
        self._write(f"{number}  {title}", "bold")

    def formula(self, rows: str, columns: str = "") -> None:
        """The step's formula with tokens as rows, and as columns if these are wanted."""
        self.line(rows, "cyan")
        if self.columns and columns:
            self.line(f"as columns: {columns}", "cyan")

    def product(
        self,
        name: str,
        left: tuple[str, Array],
        right: tuple[str, Array],
        *,
        factor: str = "",
        bias: str = "",
        then: str = "",
    ) -> str:
        """`q = x·W_Q + b_Q   (5, 128)·(128, 32) = (5, 32)`; returns the formula that is turned.

        `left`, `right`: the factors, by their names. `factor`: a number before the product;
        `then`: the text after it and the bias, with tokens as rows and as columns.
        """
        (a, first), (b, second) = left, right
        out = (*first.shape[:-1], second.shape[-1])
        rows = f"{name} = {factor}{a}·{b}{bias and f' + {bias}'}{then}"
        columns = f"{name}ᵀ = {factor}{_turned(b)}·{_turned(a)}{bias and f' + {bias}ᵀ'}{then}"
        self.formula(
            f"{rows}   {shape(first)}·{shape(second)} = {_sizes(out)}",
            f"{columns}   {_across(second)}·{_across(first)} = {_sizes((*out[::-1], 1)[:2])}",
        )
        return columns

    def line(self, text: str, style: str = "") -> None:
        """A sentence or a formula, folded and indented."""
        self._write(text, style, INDENT)

    def say(self, text: str) -> None:
        """The meaning of the step, or a remark."""
        self.line(text, "dim")

    def say_columns(self, text: str) -> None:
        """A remark on tokens as columns, if these are wanted."""
        if self.columns:
            self.say(f"as columns: {text}")

    def vectors(self, named: Sequence[tuple[str, Array]]) -> None:
        """One line for each vector: its name, and as many entries as fit."""
        cells = self._cells_of([name for name, _ in named])
        digits, width = self._decimals([vector for _, vector in named])
        for name, vector in named:
            self._vector(name, vector, cells, digits, width)

    def matrix(
        self,
        name: str,
        array: Array,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        turned: str = "",
    ) -> None:
        """A matrix with its shape, one line for each row; turned too, if columns are wanted.

        `rows` and `columns` label its axes; `turned`: the name of the turned matrix, where it is
        not the name with a transpose mark.
        """
        self.line(f"{name} {shape(array)}")
        self.vectors([(rows[i] if rows else "", row) for i, row in enumerate(array)])
        if self.columns:
            self.line(f"{turned or f'{name}ᵀ'} {shape(array.T)}")
            cells = self._cells_of(columns)
            digits, width = self._decimals(list(array.T))
            width = max(width, self._cells_of(rows))
            if rows:  # the labels of its columns, as many as fit
                room = self.display.width - len(INDENT) - cells - 2
                fitting = _entries_that_fit(len(rows), width, room)
                heads = " ".join(self._padded(each, width, right=True) for each in rows[:fitting])
                more = f" {self._plain('…')}" if fitting < len(rows) else ""
                self._row(f"{INDENT}{' ' * (cells + 3)}{heads}{more}", "bold")
            for i, column in enumerate(array.T):
                self._vector(columns[i] if columns else "", column, cells, digits, width)

    def table(self, header: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]) -> None:
        """Labelled rows of numbers under headers, if any; with a bar for each row's last number.

        Where the columns do not fit side by side, each row takes several lines.
        """
        written = [[self.number(value) for value in values] for _, values in rows]
        heads = [self._plain(head) for head in header[1:]]
        widths = [max(map(len, column)) for column in zip(heads, *written, strict=True)]
        cells = min(LABEL, widest([header[0], *(self._written(name) for name, _ in rows)]))
        lines: list[list[int]] = [[]]  # the columns of each line
        room = self.display.width - len(INDENT) - cells
        for i, width in enumerate(widths):
            if lines[-1] and sum(widths[j] + 2 for j in lines[-1]) + width + 2 > room:
                lines.append([])
            lines[-1].append(i)

        def lines_of(label: str, cells_of: Sequence[str]) -> Iterator[str]:
            for number, shown in enumerate(lines):
                padded = "  ".join(pad(cells_of[i], widths[i], right=True) for i in shown)
                yield f"{INDENT}{' ' * cells if number else label}  {padded}"

        for text in lines_of(pad(header[0], cells), heads) if any(header) else ():
            self._row(text, "bold")
        for (name, values), numbers in zip(rows, written, strict=True):
            *before, last = lines_of(self._padded(name, cells), numbers)
            for text in before:
                self._row(text)
            line, weight = self._row(f"{last} "), values[-1]
            space = min(BAR, self.display.width - line.cell_len)
            if space > 3 and not math.isinf(weight):
                drawn = bar_of(min(1.0, max(0.0, weight)), space, self.display.unicode)
                line.append(drawn, bar_style(weight, self.display))
            line.rstrip()

    def number(self, value: float) -> str:
        """A number with the decimals of this sheet; −∞ as such."""
        return self._decimal(value, self.digits)

    def _decimal(self, value: float, digits: int) -> str:
        if math.isinf(value):
            sign = "-" if value < 0 else ""
            return f"{sign.replace('-', '−')}∞" if self.display.unicode else f"{sign}inf"
        if abs(value) >= LARGE:
            return f"{value:.{min(digits, 4)}e}"
        return f"{round(value, digits) + 0.0:.{digits}f}"  # no minus in front of a zero

    def times(self, weight: float, name: str) -> str:
        """`0.48·v(fluffy)`: a weight before what it multiplies."""
        return f"{weight:.{min(self.in_sums, self.digits)}f}·{name}"

    def sum(self, terms: Sequence[tuple[float, str]], *, ordered: bool = True) -> str:
        """A weighted sum: `0.48·v(fluffy) + 0.47·v(blue) + …`.

        `ordered`: the six strongest, the strongest first; else all, in their own order.
        """
        if ordered:
            terms = sorted(terms, key=lambda term: -term[0])
        shown = [self.times(weight, name) for weight, name in terms[: 6 if ordered else None]]
        return " + ".join([*shown, "…"] if len(terms) > len(shown) else shown)

    def _vector(self, name: str, vector: Array, cells: int, digits: int, width: int) -> None:
        """`fluffy  [ 0.1234 -0.2345 …]`, as many entries as fit."""
        numbers = [f"{self._decimal(value, digits):>{width}}" for value in vector.tolist()]
        room = self.display.width - len(INDENT) - cells - 2
        fitting = _entries_that_fit(len(numbers), width, room)
        if len(numbers) > fitting:
            numbers = [*numbers[:fitting], self._plain("…")]
        self._row(f"{INDENT}{self._padded(name, cells)}  [{' '.join(numbers)}]")

    def _decimals(self, arrays: Sequence[Array]) -> tuple[int, int]:
        """The decimals of these vectors (none where all are whole), and the cells of a number."""
        values = [value for a in arrays for value in a.tolist()]
        whole = all(math.isinf(value) or value == round(value) for value in values)
        digits = 0 if whole else self.digits
        return digits, max((len(self._decimal(value, digits)) for value in values), default=1)

    def _cells_of(self, names: Sequence[str]) -> int:
        """The cells that a column of these names takes."""
        return min(LABEL, widest([self._written(name) for name in names]))

    def _padded(self, name: str, cells: int, *, right: bool = False) -> str:
        label = cut(self._written(name), cells, unicode=self.display.unicode)
        return pad(fenced(label), cells, right=right)

    def _written(self, name: str) -> str:
        return name if self.display.unicode else ascii_only(self._plain(name))

    def _plain(self, text: str) -> str:
        return text if self.display.unicode else text.translate(PLAIN)

    def _row(self, text: str, style: str = "") -> Text:
        """A line that is not folded."""
        self.lines.append(Text(text, style=style, no_wrap=True))
        return self.lines[-1]

    def _write(self, text: str, style: str, indent: str = "") -> None:
        written = Text(fenced(self._written(text)), style=style)
        for line in folded(written, self.display.width - len(indent)):
            line.pad_left(len(indent))
            self.lines.append(line)


def strongest_keys(scores: Array) -> list[int]:
    """The keys that a query may attend to (their scores are finite), in their order.

    Only the strongest ones, where there are very many.
    """
    allowed = np.flatnonzero(np.isfinite(scores))
    best = allowed[np.argsort(-scores[allowed], kind="stable")][:MOST_KEYS]
    return sorted(best.tolist())


def _entries_that_fit(entries: int, width: int, room: int) -> int:
    """The number of entries, each `width` cells, that fit the room: all, or some and a mark."""
    if entries <= (room - 2 + 1) // (width + 1):
        return entries
    return max(1, (room - 2 - 1) // (width + 1))


def shape(array: Array) -> str:
    """`(9, 128)`, as numpy writes it."""
    return _sizes(array.shape)


def _sizes(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _across(array: Array) -> str:
    """The shape of the turned array; a vector is one column."""
    return _sizes((*array.shape[::-1], 1)[:2])


def _turned(name: str) -> str:
    return name.removesuffix("ᵀ") if name.endswith("ᵀ") else f"{name}ᵀ"


@dataclass(frozen=True)
class HeadSheet(Sheet):
    """A sheet about a trace, with labels that tell repeated tokens apart."""

    trace: HeadTrace = field(kw_only=True)
    other: OtherRow | None = None
    meaning: Meaning = Meaning()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of the queries."""
        return distinct_labels(self.trace.capture.query_tokens)

    @cached_property
    def key_labels(self) -> tuple[str, ...]:
        """The labels of the keys, which for one sequence are those of the queries."""
        return distinct_labels(self.trace.capture.key_tokens)

    @property
    def query(self) -> str:
        return self.labels[self.trace.query]

    @property
    def head(self) -> str:
        return f"L{self.trace.layer}H{self.trace.head}"

    @property
    def cross(self) -> bool:
        """Whether keys and values are made of another text than the queries."""
        return self.trace.capture.kind == "cross"

    @property
    def queried(self) -> str:
        """The letter of what queries are made of; a hat marks a norm before it."""
        return "x̂" if self.trace.kinds.norm else "x"

    @property
    def read(self) -> str:
        """The letter of what keys and values are made of."""
        return "m" if self.cross else self.queried

    @property
    def seen(self) -> list[int]:
        """The keys that the query may attend to, or the strongest of very many."""
        return strongest_keys(self.trace.scores[self.trace.query])

    @property
    def left_out(self) -> int:
        """The number of weaker keys that the query may also attend to."""
        return int(np.isfinite(self.trace.scores[self.trace.query]).sum()) - len(self.seen)

    def note_left_out(self) -> None:
        """The number of keys that are left out, where there are very many."""
        if self.left_out:
            every = self.display.speller("format", "json")
            left = amount(self.left_out, "weaker key")
            self.say(f"… and {left}; {every} has all of them.")

    def query_vector(self, name: str, array: FloatArray) -> None:
        """`q(fluffy) [...]` of the query."""
        self.vectors([(f"{name}({self.query})", array[self.trace.query])])

    def key_vectors(self, name: str, array: FloatArray) -> None:
        """`k(fluffy) [...]` for each key that the query may attend to."""
        self.vectors([(f"{name}({self.key_labels[i]})", array[i]) for i in self.seen])

    def weighted_sum(self) -> str:
        """`z(creature) = 0.48·v(fluffy) + …`."""
        weights = self.trace.pattern[self.trace.query]
        terms = [(float(weights[i]), f"v({self.key_labels[i]})") for i in self.seen]
        return f"z({self.query}) = {self.sum(terms)}"
