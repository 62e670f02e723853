"""A sheet of a calculation: steps with formulas, vectors, matrices, weighted sums and bars.

Numbers are cut to decimals here and nowhere else. A line that is too long loses the
entries of its vectors, with `…`; a sentence is folded. The file is long because
a sheet can hold many kinds of line, all of them short.
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
LARGE = 1e7  # from here on numbers are written with an exponent
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
    """Where a calculation is written: `digits` decimals, of a weight in a sum `in_sums`.

    `columns` tells it a second time, with tokens as columns (xᵀ, W·xᵀ), as some lessons do.
    """

    display: Display
    digits: int = 4
    columns: bool = False
    in_sums: int = 2

    def title(self, text: str, *about: str) -> Iterator[Text]:
        """What the whole sheet is about, at the left edge; lines that are empty are left out."""
        yield from self._folded(Text(text, style="bold"))
        for line in filter(None, about):
            yield from self._folded(Text(line, style="dim"))

    def heading(self, number: int, title: str) -> Iterator[Text]:
        """An empty line, and the title of a step."""
        yield Text()
        yield from self._folded(Text(f"{number}  {title}", style="bold"))

    def formula(self, rows: str, columns: str = "") -> Iterator[Text]:
        """The step's formula with tokens as rows; with tokens as columns too, if asked for."""
        yield from self.line(rows, "cyan")
        if self.columns and columns:
            yield from self.line(f"as columns: {columns}", "cyan")

    def line(self, text: str, style: str = "") -> Iterator[Text]:
        """A sentence or a formula, folded and indented."""
        yield from self._folded(Text(text, style=style), INDENT)

    def say(self, text: str) -> Iterator[Text]:
        """What the step means, or a remark."""
        yield from self.line(text, "dim")

    def say_columns(self, text: str) -> Iterator[Text]:
        """What holds with tokens as columns, if these were asked for."""
        if self.columns:
            yield from self.say(f"as columns: {text}")

    def vectors(self, named: Sequence[tuple[str, Array]]) -> Iterator[Text]:
        """One line for each vector: its name, and as many entries as fit."""
        cells = min(LABEL, widest([self._written(name) for name, _ in named]))
        room = self.display.width - len(INDENT) - cells - 2
        digits, width = self._decimals([vector for _, vector in named])
        for name, vector in named:
            label = self._padded(name, cells)
            yield Text(
                f"{INDENT}{label}  {self._entries(vector, digits, width, room)}", no_wrap=True
            )

    def matrix(
        self,
        name: str,
        array: Array,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        turned: str = "",
    ) -> Iterator[Text]:
        """A whole matrix with its shape, one line for each row; with tokens as columns, turned too.

        `rows` and `columns` label its two axes; `turned` names the turned one, where that is
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
        room = self.display.width - len(INDENT) - cells - 2
        if columns:
            fitting = _entries_that_fit(len(columns), width, room)
            heads = " ".join(self._padded(name, width, right=True) for name in columns[:fitting])
            more = f" {self._plain('…')}" if fitting < len(columns) else ""
            yield Text(f"{INDENT}{' ' * (cells + 3)}{heads}{more}", style="bold", no_wrap=True)
        for i, row in enumerate(array):
            label = self._padded(rows[i] if rows else "", cells)
            yield Text(f"{INDENT}{label}  {self._entries(row, digits, width, room)}", no_wrap=True)

    def weights(self, named: Sequence[tuple[str, float]]) -> Iterator[Text]:
        """One line for each weight of a row, drawn as a bar."""
        cells = min(LABEL, widest([self._written(name) for name, _ in named]))
        for name, weight in named:
            line = Text(
                f"{INDENT}{self._padded(name, cells)}  {self.number(weight)} ", no_wrap=True
            )
            yield self._with_bar(line, weight)

    def table(
        self, header: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]
    ) -> Iterator[Text]:
        """Labelled rows of numbers under headers; the last number of each is drawn as a bar.

        Where the columns do not fit side by side, each row takes as many lines as they need.
        """
        written = [[self.number(value) for value in values] for _, values in rows]
        widths = [
            max(len(self._plain(head)), *(len(row[i]) for row in written))
            for i, head in enumerate(header[1:])
        ]
        cells = min(LABEL, widest([header[0], *(self._written(name) for name, _ in rows)]))
        lines = _side_by_side(widths, self.display.width - len(INDENT) - cells)
        heads = [self._plain(head) for head in header[1:]]

        def lines_of(label: str, cells_of: Sequence[str]) -> Iterator[str]:
            for number, shown in enumerate(lines):
                padded = "  ".join(pad(cells_of[i], widths[i], right=True) for i in shown)
                yield f"{INDENT}{' ' * cells if number else label}  {padded}"

        for text in lines_of(pad(header[0], cells), heads):
            yield Text(text, style="bold", no_wrap=True)
        for (name, values), numbers in zip(rows, written, strict=True):
            *before, last = lines_of(self._padded(name, cells), numbers)
            yield from (Text(text, no_wrap=True) for text in before)
            yield self._with_bar(Text(f"{last} ", no_wrap=True), values[-1])

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
        """A weighted sum as it is written: `0.48·v(fluffy) + 0.47·v(blue) + …`.

        `ordered`: strongest first, and only so many; else all, in their own order.
        """
        if ordered:
            terms = sorted(terms, key=lambda term: -term[0])
        shown = [self.times(weight, name) for weight, name in terms[: 6 if ordered else None]]
        return " + ".join([*shown, "…"] if len(terms) > len(shown) else shown)

    def _with_bar(self, line: Text, weight: float) -> Text:
        room = min(BAR, self.display.width - line.cell_len)
        if room > 3 and not math.isinf(weight):
            drawn = bar_of(min(1.0, max(0.0, weight)), room, self.display.unicode)
            line.append(drawn, bar_style(weight, self.display))
        line.rstrip()
        return line

    def _entries(self, vector: Array, digits: int, width: int, room: int) -> str:
        """`[ 0.1234 -0.2345 …]`, as many entries as fit into so many cells."""
        numbers = [f"{self._decimal(value, digits):>{width}}" for value in vector.tolist()]
        fitting = _entries_that_fit(len(numbers), width, room)
        if len(numbers) > fitting:
            numbers = [*numbers[:fitting], self._plain("…")]
        return f"[{' '.join(numbers)}]"

    def _decimals(self, arrays: Sequence[Array]) -> tuple[int, int]:
        """How many decimals these vectors take (none where all are whole), and how many cells."""
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

    Of very many, the strongest ones.
    """
    allowed = np.flatnonzero(np.isfinite(scores))
    best = allowed[np.argsort(-scores[allowed], kind="stable")][:MOST_KEYS]
    return sorted(best.tolist())


def _entries_that_fit(entries: int, width: int, room: int) -> int:
    """How many entries of so many cells a vector of that room shows: all, or some and a mark."""
    if entries <= (room - 2 + 1) // (width + 1):
        return entries
    return max(1, (room - 2 - 1) // (width + 1))


def _side_by_side(widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns stand on which line, in their order, where each takes two cells more."""
    lines: list[list[int]] = [[]]
    for i, width in enumerate(widths):
        if lines[-1] and sum(widths[j] + 2 for j in lines[-1]) + width + 2 > room:
            lines.append([])
        lines[-1].append(i)
    return lines


def shape(array: Array) -> str:
    """`(9, 128)`, as numpy writes it."""
    return f"({', '.join(map(str, array.shape))})"


# A head's trace on its way to a sheet: what every step of the calculation looks up.

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Explained:
    """A trace on a sheet, with the labels of its tokens, which tell repeated ones apart.

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
        """The letter of what queries are made of: behind the norm it wears a hat."""
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


def left_out(e: Explained) -> Iterator[Text]:
    """How many keys are not told, where there are very many."""
    allowed = int(np.isfinite(e.trace.scores[e.trace.query]).sum())
    if allowed > len(e.seen):
        more = allowed - len(e.seen)
        every = e.sheet.display.speller("format", "json")
        yield from e.sheet.say(f"… and {more} weaker keys; {every} has all of them.")


# One row of attention told as a look-up: a soft one, beside the exact one of a dictionary.


def render(trace: HeadTrace, sheet: Sheet, *, about: str) -> Iterator[Text]:
    """The query, every key with similarity, weight and value, and what comes out."""
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
    yield from _exact(trace, sheet, key_labels, keys.tolist())
    yield from _soft(trace, sheet, labels[query], [key_labels[i] for i in shown], shown)


def _exact(
    trace: HeadTrace, sheet: Sheet, labels: tuple[str, ...], keys: list[int]
) -> Iterator[Text]:
    """What a dictionary would have returned."""
    query = trace.query
    equal = [i for i in keys if np.array_equal(trace.q[query], trace.k[i])]
    best = max(keys, key=lambda i: float(trace.pattern[query, i]))
    yield from sheet.heading(4, "An exact look-up, as in a dictionary")
    if equal:
        yield from sheet.line(f"The key of “{labels[equal[0]]}” equals the query:")
        yield from sheet.vectors([(f"v({labels[equal[0]]})", trace.v[equal[0]])])
        return
    yield from sheet.line("No key equals the query: a dictionary returns nothing.")
    yield from sheet.line(f"The nearest key alone, “{labels[best]}”, would return:")
    yield from sheet.vectors([(f"v({labels[best]})", trace.v[best])])


def _soft(
    trace: HeadTrace, sheet: Sheet, query: str, keys: list[str], shown: list[int]
) -> Iterator[Text]:
    """What attention returns instead."""
    row = trace.pattern[trace.query]
    yield from sheet.heading(5, "The soft look-up: the weighted sum of all values")
    terms = [(float(row[i]), f"v({key})") for key, i in zip(keys, shown, strict=True)]
    yield from sheet.line(f"z({query}) = {sheet.sum(terms)}   {shape(trace.z[0])}")
    yield from sheet.vectors([(f"z({query})", trace.z[trace.query])])
