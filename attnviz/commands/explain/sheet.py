"""A sheet of a calculation: steps with formulas, vectors, matrices, weighted sums and bars.

Numbers are cut to decimals here and nowhere else. A line that is too long loses the entries of its
vectors, with `…`; a sentence is folded.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import ascii_only, distinct_labels, fenced
from attnviz.draw.terminal.colors import bar_style, cut, folded, pad, widest
from attnviz.draw.titles import bar_of
from attnviz.records.capture import FloatArray
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

    def title(self, text: str, *about: str) -> Iterator[Text]:
        """The title of the sheet at the left edge, and the lines below it that are not empty."""
        yield from self._folded(Text(text, style="bold"))
        for line in filter(None, about):
            yield from self._folded(Text(line, style="dim"))

    def heading(self, number: int, title: str) -> Iterator[Text]:
        """An empty line, and the title of a step."""
        yield Text()
        yield from self._folded(Text(f"{number}  {title}", style="bold"))

    def formula(self, rows: str, columns: str = "") -> Iterator[Text]:
        """The step's formula with tokens as rows, and as columns if these are wanted."""
        yield from self.line(rows, "cyan")
        if self.columns and columns:
            yield from self.line(f"as columns: {columns}", "cyan")

    def line(self, text: str, style: str = "") -> Iterator[Text]:
        """A sentence or a formula, folded and indented."""
        yield from self._folded(Text(text, style=style), INDENT)

    def say(self, text: str) -> Iterator[Text]:
        """The meaning of the step, or a remark."""
        yield from self.line(text, "dim")

    def say_columns(self, text: str) -> Iterator[Text]:
        """A remark on tokens as columns, if these are wanted."""
        if self.columns:
            yield from self.say(f"as columns: {text}")

    def vectors(self, named: Sequence[tuple[str, Array]]) -> Iterator[Text]:
        """One line for each vector: its name, and as many entries as fit."""
        cells = min(LABEL, widest([self._written(name) for name, _ in named]))
        digits, width = self._decimals([vector for _, vector in named])
        for name, vector in named:
            yield self._vector(name, vector, cells, digits, width)

    def matrix(
        self,
        name: str,
        array: Array,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        turned: str = "",
    ) -> Iterator[Text]:
        """A matrix with its shape, one line for each row; turned too, if columns are wanted.

        `rows` and `columns` label its axes; `turned`: the name of the turned matrix, where it is
        not the name with a transpose mark.
        """
        yield from self.line(f"{name} {shape(array)}")
        yield from self.vectors([(rows[i] if rows else "", row) for i, row in enumerate(array)])
        if self.columns:
            yield from self.line(f"{turned or f'{name}ᵀ'} {shape(array.T)}")
            yield from self._headed(array.T, columns, rows)

    def _headed(self, array: Array, rows: Sequence[str], columns: Sequence[str]) -> Iterator[Text]:
        """A matrix under the labels of its columns, as many of these as fit."""
        cells = min(LABEL, widest([self._written(name) for name in rows]))
        digits, width = self._decimals(list(array))
        width = max(width, min(LABEL, widest([self._written(name) for name in columns])))
        if columns:
            room = self.display.width - len(INDENT) - cells - 2
            fitting = _entries_that_fit(len(columns), width, room)
            heads = " ".join(self._padded(name, width, right=True) for name in columns[:fitting])
            more = f" {self._plain('…')}" if fitting < len(columns) else ""
            yield Text(f"{INDENT}{' ' * (cells + 3)}{heads}{more}", style="bold", no_wrap=True)
        for i, row in enumerate(array):
            yield self._vector(rows[i] if rows else "", row, cells, digits, width)

    def weights(self, named: Sequence[tuple[str, float]]) -> Iterator[Text]:
        """One line for each weight of a row, drawn as a bar."""
        cells = min(LABEL, widest([self._written(name) for name, _ in named]))
        for name, weight in named:
            line = f"{INDENT}{self._padded(name, cells)}  {self.number(weight)} "
            yield self._with_bar(line, weight)

    def table(
        self, header: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]
    ) -> Iterator[Text]:
        """Labelled rows of numbers under headers, with a bar for the last number of each.

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

        for text in lines_of(pad(header[0], cells), heads):
            yield Text(text, style="bold", no_wrap=True)
        for (name, values), numbers in zip(rows, written, strict=True):
            *before, last = lines_of(self._padded(name, cells), numbers)
            yield from (Text(text, no_wrap=True) for text in before)
            yield self._with_bar(f"{last} ", values[-1])

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

    def _with_bar(self, start: str, weight: float) -> Text:
        line = Text(start, no_wrap=True)
        room = min(BAR, self.display.width - line.cell_len)
        if room > 3 and not math.isinf(weight):
            drawn = bar_of(min(1.0, max(0.0, weight)), room, self.display.unicode)
            line.append(drawn, bar_style(weight, self.display))
        line.rstrip()
        return line

    def _vector(self, name: str, vector: Array, cells: int, digits: int, width: int) -> Text:
        """`fluffy  [ 0.1234 -0.2345 …]`, as many entries as fit."""
        numbers = [f"{self._decimal(value, digits):>{width}}" for value in vector.tolist()]
        room = self.display.width - len(INDENT) - cells - 2
        fitting = _entries_that_fit(len(numbers), width, room)
        if len(numbers) > fitting:
            numbers = [*numbers[:fitting], self._plain("…")]
        return Text(f"{INDENT}{self._padded(name, cells)}  [{' '.join(numbers)}]", no_wrap=True)

    def _decimals(self, arrays: Sequence[Array]) -> tuple[int, int]:
        """The decimals of these vectors (none where all are whole), and the cells of a number."""
        values = [value for a in arrays for value in a.tolist()]
        whole = all(math.isinf(value) or value == round(value) for value in values)
        digits = 0 if whole else self.digits
        return digits, max((len(self._decimal(value, digits)) for value in values), default=1)

    def _padded(self, name: str, cells: int, *, right: bool = False) -> str:
        label = cut(self._written(name), cells, unicode=self.display.unicode)
        return pad(fenced(label), cells, right=right)

    def _written(self, name: str) -> str:
        return name if self.display.unicode else ascii_only(self._plain(name))

    def _plain(self, text: str) -> str:
        return text if self.display.unicode else text.translate(PLAIN)

    def _folded(self, text: Text, indent: str = "") -> Iterator[Text]:
        plain = ascii_only(self._plain(text.plain)) if not self.display.unicode else text.plain
        written = Text(fenced(plain), style=text.style)
        for line in folded(written, self.display.width - len(indent)):
            line.pad_left(len(indent))
            yield line


def strongest_keys(scores: Array) -> list[int]:
    """The keys that a query may attend to (their scores are finite), in their order.

    Only the strongest ones, where there are very many.
    """
    allowed = np.flatnonzero(np.isfinite(scores))
    best = allowed[np.argsort(-scores[allowed], kind="stable")][:MOST_KEYS]
    return sorted(best.tolist())


def _entries_that_fit(entries: int, width: int, room: int) -> int:
    """How many entries, each `width` cells, fit into the room: all, or some and a mark."""
    if entries <= (room - 2 + 1) // (width + 1):
        return entries
    return max(1, (room - 2 - 1) // (width + 1))


def shape(array: Array) -> str:
    """`(9, 128)`, as numpy writes it."""
    return f"({', '.join(map(str, array.shape))})"


TOLERANCE = 1e-5


@dataclass(frozen=True)
class HeadSheet:
    """A trace on a sheet, with labels that tell repeated tokens apart.

    `labels`: of the queries; `key_labels`: of the keys, which are the same for one sequence.
    """

    trace: HeadTrace
    sheet: Sheet
    labels: tuple[str, ...]
    key_labels: tuple[str, ...]
    other: OtherRow | None = None

    @property
    def query(self) -> str:
        return self.labels[self.trace.query]

    @property
    def n_queries(self) -> int:
        return len(self.labels)

    @property
    def n_keys(self) -> int:
        return len(self.key_labels)

    @property
    def cross(self) -> bool:
        """Whether keys and values are made of another text than the queries."""
        return self.trace.kind == "cross"

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
    def head(self) -> str:
        return f"L{self.trace.layer}H{self.trace.head}"

    def vectors(self, name: str, array: FloatArray, of: Sequence[int]) -> Iterator[Text]:
        """`q(fluffy) [...]` for each of these queries."""
        yield from self.sheet.vectors([(f"{name}({self.labels[i]})", array[i]) for i in of])

    def key_vectors(self, name: str, array: FloatArray) -> Iterator[Text]:
        """`k(fluffy) [...]` for each key that the query may attend to."""
        yield from self.sheet.vectors(
            [(f"{name}({self.key_labels[i]})", array[i]) for i in self.seen]
        )


def left_out(e: HeadSheet) -> Iterator[Text]:
    """The number of keys that are left out, where there are very many."""
    allowed = int(np.isfinite(e.trace.scores[e.trace.query]).sum())
    if allowed > len(e.seen):
        every = e.sheet.display.speller("format", "json")
        more = allowed - len(e.seen)
        yield from e.sheet.say(f"… and {more} weaker keys; {every} has all of them.")


def render(trace: HeadTrace, sheet: Sheet, *, about: str) -> Iterator[Text]:
    """A row as a soft look-up beside an exact one: query, keys, values, and the result."""
    labels, key_labels = distinct_labels(trace.query_tokens), distinct_labels(trace.key_tokens)
    query, row = trace.query, trace.pattern[trace.query]
    keys = np.flatnonzero(np.isfinite(trace.scores[query]))
    shown = strongest_keys(trace.scores[query])
    title = f"L{trace.layer}H{trace.head} as a look-up: “{labels[query]}” asks"
    yield from sheet.title(title, about)
    yield from sheet.heading(1, "The query")
    yield from sheet.vectors([(f"q({labels[query]})", trace.q[query])])
    yield from sheet.heading(2, "The keys: each is compared with the query and gets a weight")
    yield from sheet.table(
        ["key", "similarity", "weight"],
        [(key_labels[i], [float(trace.scores[query, i]), float(row[i])]) for i in shown],
    )
    if len(keys) > len(shown):
        yield from sheet.say(f"… and {len(keys) - len(shown)} weaker keys.")
    yield from sheet.heading(3, "The values behind the keys")
    yield from sheet.vectors([(f"v({key_labels[i]})", trace.v[i]) for i in shown])
    yield from sheet.heading(4, "An exact look-up, as in a dictionary")
    equal = [i for i in keys.tolist() if np.array_equal(trace.q[query], trace.k[i])]
    nearest = equal[0] if equal else max(keys.tolist(), key=lambda i: float(row[i]))
    if equal:
        yield from sheet.line(f"The key of “{key_labels[nearest]}” equals the query:")
    else:
        yield from sheet.line("No key equals the query: a dictionary returns nothing.")
        yield from sheet.line(f"The nearest key alone, “{key_labels[nearest]}”, would return:")
    yield from sheet.vectors([(f"v({key_labels[nearest]})", trace.v[nearest])])
    yield from sheet.heading(5, "The soft look-up: the weighted sum of all values")
    terms = [(float(row[i]), f"v({key_labels[i]})") for i in shown]
    yield from sheet.line(f"z({labels[query]}) = {sheet.sum(terms)}   {shape(trace.z[0])}")
    yield from sheet.vectors([(f"z({labels[query]})", trace.z[query])])
