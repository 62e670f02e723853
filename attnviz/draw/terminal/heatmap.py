"""One head as coloured cells in the terminal, with numbers if they fit.

Rows are queries and columns are keys, or the other way round. Without colour, cells hold
numbers or shades; a masked link is blank, a weight of zero is not. Columns beyond the width
are left out, and a last line says so.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.cells import cell_len, split_graphemes
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import TIME, distinct_labels, fenced
from attnviz.draw.matrix import SideLabels, cells_of, farthest, sides_of, strongest, unit_of
from attnviz.draw.terminal.around import heading, legend, map_heading
from attnviz.draw.terminal.cells import cell_style, cut, folded, pad, shade_of, signed_style, widest
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, Orient

WIDEST_CELL, NUMBER_CELLS, PLAIN_CELLS = 14, (6, 5, 4), (2, 1)
TALLEST_LABEL = 10
LEVEL = 10  # cells of this width or more have level labels, even if some are cut


@dataclass(frozen=True)
class _Layout:
    """The widths in cells of the row labels, and of each of the first `columns` columns."""

    label: int
    cell: int
    columns: int

    @property
    def numbers(self) -> bool:
        return self.cell >= min(NUMBER_CELLS)


def render(
    exhibit: Exhibit, display: Display | None = None, *, orient: Orient = "query-rows"
) -> list[RenderableType]:
    """Draw the exhibit as coloured cells, one block per head, all on one scale."""
    display = display or Display()
    signed, by_row = exhibit.capture.signed, exhibit.by_row
    maps = [
        cells_of(exhibit, head_map, None, by_row=by_row, orient=orient) for head_map in exhibit.maps
    ]
    weights = [cells.weights for cells in maps if cells.weights is not None]
    most = farthest(weights) if signed else strongest(weights)
    unit = unit_of(exhibit, most)
    if unit != 1:
        weights, most = [matrix / np.float32(unit) for matrix in weights], most / unit
    queries = distinct_labels(exhibit.capture.query_tokens, unicode=display.unicode)
    keys = distinct_labels(exhibit.capture.key_tokens, unicode=display.unicode)
    rows, columns = sides_of(exhibit, queries, keys, orient)
    layout = _layout(rows, columns, display)
    seen, margin = slice(layout.columns), " " * (layout.label + 1)
    header = column_labels(columns.shown[seen], columns.positions[seen], layout.cell, display)
    parts: list[RenderableType] = [*heading(exhibit, display)]
    for head_map, cells, matrix in zip(exhibit.maps, maps, weights, strict=True):
        parts.append(Text())
        if len(exhibit.maps) > 1:
            parts.append(map_heading(exhibit, head_map, display))
        for line in header:
            parts.append(Text((margin + line).rstrip(), no_wrap=True, overflow="crop"))
        full = farthest([matrix]) if signed else most
        shares = cells.values if by_row else matrix / full
        parts += _rows(shares, matrix, rows, layout, display, signed=signed)
    sums = not signed and all(cells.sums for cells in maps)
    below = legend(
        exhibit, display, most, numbers=layout.numbers, orient=orient, sums=sums, unit=unit
    )
    parts += [Text(), *below]
    if layout.columns < len(columns.positions):
        key = orient == "query-rows"
        parts += folded(_left_out(columns, layout, display, key=key), display.width)
    return parts


def _layout(rows: SideLabels, columns: SideLabels, display: Display) -> _Layout:
    """The widest cells in which all columns fit; the narrowest, and fewer columns, if none do."""
    label = min(widest(rows.shown), max(8, display.width // 5))
    room, n = display.width - label - 1, max(1, len(columns.positions))
    whole = min(WIDEST_CELL, widest(columns.shown) + 1)
    for cell in (*([whole] if whole > max(NUMBER_CELLS) else []), *NUMBER_CELLS, *PLAIN_CELLS):
        if cell * n <= room:
            return _Layout(label, cell, len(columns.positions))
    return _Layout(label, 1, room)


def column_labels(
    labels: Sequence[str],
    positions: Sequence[int],
    cell: int,
    display: Display,
    tallest: int = TALLEST_LABEL,
) -> list[str]:
    """The lines of column labels: one if each label fits its cell, else downwards.

    Times are written as on a ruler: where every n-th column begins.
    """
    times = [TIME.fullmatch(label) for label in labels]
    if 2 * sum(map(bool, times)) > len(labels) and widest(labels) >= cell:
        return [_ruler([f"{t[1] or t[2]}s" if t else "" for t in times], labels, cell, display)]
    if widest(labels) < cell or cell >= LEVEL:
        cuts = (fenced(cut(label, cell - 1, unicode=display.unicode)) for label in labels)
        return ["".join(pad(label, cell - 1, right=True) + " " for label in cuts)]
    if cell == 1 and any(size > 1 for label in labels for _, size in _letters(label)):
        # A wide letter does not fit a narrow column; the position is what `keys` takes, too.
        labels = list(map(str, positions))
    stacks = [
        [letter for letter, _ in _letters(cut(label, tallest, unicode=display.unicode))]
        for label in labels
    ]
    height = max(map(len, stacks), default=0)
    # labels end at the cells below them
    full = [[""] * (height - len(stack)) + stack for stack in stacks]
    middle = (cell + 1) // 2
    return [
        "".join(pad(pad(fenced(s[level]), middle, right=True), cell) for s in full)
        for level in range(height)
    ]


def _ruler(starts: Sequence[str], labels: Sequence[str], cell: int, display: Display) -> str:
    """One line with the time at every n-th column; labels that are not times are in full."""
    step, line, many = -(-(widest(starts) + 1) // cell), "", len(labels)
    for column, (start, label) in enumerate(zip(starts, labels, strict=True)):
        after = next((n for n in range(column, many) if not starts[n]), many)
        room = (after - column) * cell - (after < many)
        if start and column % step == 0 and len(start) <= room:
            line = pad(line, column * cell) + start
        elif not start:
            room = min(step, many - column) * cell - (column + step < many)
            line = pad(line, column * cell) + cut(label, room, unicode=display.unicode)
    return line


def _letters(label: str) -> list[tuple[str, int]]:
    """The letters as a reader counts them, each with its width in cells."""
    spans, _ = split_graphemes(label)
    return [(label[start:end], cell_len(label[start:end])) for start, end, _ in spans]


def _rows(
    shares: FloatArray,
    weights: FloatArray,
    rows: SideLabels,
    layout: _Layout,
    display: Display,
    *,
    signed: bool,
) -> Iterator[Text]:
    write: Callable[..., tuple[str, Style | None]] = cell_of
    if signed:
        small = np.nanmax(np.abs(weights), initial=0.0) <= 1
        write = partial(cell_of, number_of=_less if small else _score, signed=True)
    for label, row_shares, row_weights in zip(rows.shown, shares, weights, strict=True):
        line = Text(no_wrap=True, overflow="crop")
        label = fenced(cut(label, layout.label, unicode=display.unicode))
        line.append(pad(label, layout.label, right=True) + " ")
        seen = slice(layout.columns)
        cells = zip(row_shares[seen].tolist(), row_weights[seen].tolist(), strict=True)
        for share, weight in cells:
            line.append(*write(share, weight, layout.cell, display))
        if not display.color:
            line.rstrip()
        yield line


def _number(weight: float, cell: int) -> str:
    """A weight as `0.48`, or `.48` in narrow cells."""
    number = f"{weight:.2f}"
    return number if cell > 4 else number.replace("0.", ".", 1)[:3]


def _score(score: float, cell: int) -> str:
    """A score as `-3.2`, or `-12` without room for the decimal."""
    number = f"{score:z.1f}"
    return number if len(number) < cell else f"{score:z.0f}"[: cell - 1]


def _less(difference: float, cell: int) -> str:
    """A difference as `-0.48`, or `-.5` in narrow cells."""
    number = f"{difference:z.2f}"
    return number if len(number) < cell else f"{difference:z.1f}".replace("0.", ".", 1)


def cell_of(
    share: float,
    weight: float,
    cell: int,
    display: Display,
    *,
    number_of: Callable[[float, int], str] = _number,
    signed: bool = False,
) -> tuple[str, Style | None]:
    """Draw a cell, `cell` wide: `share` is the weight over the strongest of all; NaN is blank."""
    numbers = cell >= min(NUMBER_CELLS)
    if math.isnan(share):
        return " " * cell, None
    if display.color:
        number = f"{number_of(weight, cell)} " if numbers else ""
        style = signed_style(share, display) if signed else cell_style(share, display)
        return number.rjust(cell), style
    if numbers:
        zero = shade_of(0, unicode=display.unicode)
        number = zero if abs(weight) < 0.005 else number_of(weight, cell)
        return f"{number} ".rjust(cell), None
    # without colour there are no two sides: darker is higher
    share = (share + 1) / 2 if signed else share
    shade = shade_of(share, unicode=display.unicode)
    return shade.ljust(cell) if share < 0.05 else shade * cell, None


def _left_out(columns: SideLabels, layout: _Layout, display: Display, *, key: bool) -> Text:
    rest: Sequence[int] = columns.positions[layout.columns :]
    one, several = ("key", "keys") if key else ("query", "queries")
    which = f"{several} {rest[0]} to {rest[-1]} are" if len(rest) > 1 else f"{one} {rest[0]} is"
    picture = display.speller("output", "FILE.png")
    hint = f"use {display.speller(several, None)}, a wider terminal, or {picture}"
    return Text(f"{which} left out: {hint}")
