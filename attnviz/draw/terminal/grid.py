"""Grids: every chosen head as a miniature, values for each head, and the views made of them.

With colour, each cell of a miniature is an upper and a lower half in colours of their own;
without, it is a shade of one weight. Few tokens get whole lines each, as many for every
query. Where tokens are many, a cell of a miniature stands for a block of weights and shows
the strongest of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.headlines import map_title
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import Grid, cells_of, digits_of, grid_of, head_name, layer_name, strongest
from attnviz.draw.terminal.around import heading, legend, map_heading
from attnviz.draw.terminal.cells import (
    color_of,
    cut,
    fits,
    folded,
    footnotes,
    listing,
    next_before_and_after,
    pad,
    rows_of,
    shade_of,
    signed_style,
    widest,
)
from attnviz.draw.view import Pane, ResultView, Table
from attnviz.errors import spelled
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, HeadPlace, Orient

LARGEST, SMALLEST = 16, 5  # points along a side of a miniature
GAP = 1


@dataclass(frozen=True)
class _GridLayout:
    """In cells: the layer labels and each miniature; and the number of heads side by side."""

    label: int
    size: int
    across: int


def render(
    exhibit: Exhibit, display: Display | None = None, *, orient: Orient = "query-rows"
) -> list[RenderableType]:
    """Draw the exhibit's maps as miniatures on one scale."""
    display = display or Display()
    grid = grid_of(exhibit.maps)
    tokens = max(len(exhibit.queries), len(exhibit.keys), 1)
    layout = _layout(grid, tokens, display)
    small = [
        cells_of(exhibit, head_map, layout.size, by_row=exhibit.by_row, orient=orient)
        for head_map in exhibit.maps
    ]
    most = strongest([cells.values for cells in small])
    across = max(1, layout.size // tokens)
    down = max(1, across // 2) * points_a_line(display) if across > 1 else 1
    larger = np.ones((down, across), np.float32)  # a line is as high as two characters are wide
    slots = {
        grid.slot(head_map): np.kron(cells.values / most, larger)
        for head_map, cells in zip(exhibit.maps, small, strict=True)
    }
    parts: list[RenderableType] = [*heading(exhibit, display)]
    for first in range(0, len(grid.heads), layout.across):
        heads = range(first, min(first + layout.across, len(grid.heads)))
        parts.append(Text())
        parts += _band(grid, slots, heads, layout, display)
    parts += [Text(), *_names(exhibit, display)]
    block = small[0].block
    sums = max(block) == 1 and all(cells.sums for cells in small)
    parts += legend(exhibit, display, most, numbers=False, orient=orient, sums=sums)
    if max(block) > 1:
        note = f"each point shows the strongest of {block[0]} x {block[1]} weights"
        parts += folded(Text(note, style="dim"), display.width)
    return parts


def points_a_line(display: Display) -> int:
    """The points in a line: two if halves of a character have their own colours."""
    return 2 if display.color and display.unicode else 1


def most_cells(maps: Sequence[HeadPlace], tokens: int, display: Display) -> int:
    """The points a side to which each map is reduced."""
    return _layout(grid_of(maps), max(1, tokens), display).size


def _layout(grid: Grid, tokens: int, display: Display) -> _GridLayout:
    label = widest([layer_name(layer) for layer in grid.layers]) + 1
    room, n = display.width - label + GAP, len(grid.heads)
    least = max(min(SMALLEST, tokens), widest([head_name(head) for head in grid.heads]))
    if room // n - GAP < least:
        bands = math.ceil(n / max(1, room // (least + GAP)))
        n = math.ceil(n / bands)  # equally many in each band
    return _GridLayout(label, min(LARGEST, room // n - GAP), n)


def _band(
    grid: Grid,
    slots: dict[tuple[int, int], FloatArray],
    heads: Sequence[int],
    layout: _GridLayout,
    display: Display,
) -> Iterator[Text]:
    """All layers of some heads: a line of head names, then a row of miniatures per layer."""
    height, width = next(iter(slots.values())).shape
    step = points_a_line(display)
    width = max(width, widest([head_name(grid.heads[head]) for head in heads]))
    names = (pad(head_name(grid.heads[head]), width + GAP) for head in heads)
    yield Text((" " * layout.label + "".join(names)).rstrip(), style="bold", no_wrap=True)
    for row, layer in enumerate(grid.layers):
        if row:
            yield Text()
        for top in range(0, height, step):
            line = Text(no_wrap=True, overflow="crop")
            line.append(pad(layer_name(layer) if top == 0 else "", layout.label), "bold")
            for place, head in enumerate(heads):
                line.append(" " * GAP if place else "")
                points = slots.get((row, head), np.full((height, width), np.nan, np.float32))
                append_points(line, points[top : top + step], display)
                line.append(" " * (width - points.shape[1]))
            if not display.color:
                line.rstrip()
            yield line


def append_points(line: Text, points: FloatArray, display: Display) -> None:
    """Append one line of a miniature from its (1 or 2, width) points; NaN leaves the ground."""
    upper = points[0].tolist()
    lower = points[1].tolist() if len(points) > 1 else [float("nan")] * len(upper)
    for above, below in zip(upper, lower, strict=True):
        there = [weight for weight in (above, below) if weight == weight]
        if not there:
            line.append(" ")
        elif not display.color:
            line.append(shade_of(max(there), unicode=display.unicode))
        elif not display.unicode:
            line.append(" ", Style(bgcolor=color_of(max(there), display)))
        elif len(there) == 2:
            style = Style(color=color_of(above, display), bgcolor=color_of(below, display))
            line.append("▀", style)
        else:
            half = "▀" if above == above else "▄"
            line.append(half, Style(color=color_of(there[0], display)))


def _names(exhibit: Exhibit, display: Display) -> Iterator[Text]:
    for head_map in exhibit.maps:
        if map_title(exhibit, head_map) != head_map.label:
            yield map_heading(exhibit, head_map, display, style="")


# Values in the terminal: a row for each layer or token, a column for each part or layer.

CELLS = (9, 8, 7, 6, 5)
"""Widths of a cell that holds a number, including the gap after it."""
NARROW = 2

StyleOf = Callable[[float, Display], Style]


def head_grid(values: FloatArray, most: float, style: StyleOf, display: Display) -> Iterator[Text]:
    """Draw the grid of all heads (layers, heads); other arguments as for `value_grid`."""
    names = [f"L{layer}" for layer in range(len(values))]
    columns = [f"H{head}" for head in range(values.shape[1])]
    yield from value_grid(values, names, columns, most, style, display)


def value_grid(
    values: FloatArray,
    names: Sequence[str],
    columns: Sequence[str],
    most: float,
    style: StyleOf,
    display: Display,
) -> Iterator[Text]:
    """Draw values (rows, columns), NaN without one, as lines of at most `display.width` cells.

    `names`: of the rows; `columns`: a letter and numbers from 0, then others, which always stay;
    `most`: the value that gets the strongest colour, as its negative gets the opposite; `style`: of
    a share of that value.
    """
    margin = min(widest(names), display.width // 3) + 1
    digits = digits_of(values)
    written = max((len(f"{v:z.{digits}f}") for v in values[~np.isnan(values)]), default=1)
    cell, widths = _fit(columns, written + 1, display.width - margin)
    header = _header(columns, widths, numbers=cell > NARROW)
    yield Text(" " * margin + header, style="dim", no_wrap=True)
    for name, row in zip(names, values.tolist(), strict=True):
        label = cut(name, margin - 1, unicode=display.unicode)
        line = Text(pad(fenced(label), margin), no_wrap=True, overflow="crop")
        for i, width in widths.items():
            text = f"{row[i]:z.{digits}f}" if cell > NARROW else ""
            line.append_text(_cell(row[i], most, width, text, style, display))
        line.rstrip()
        yield line
    if cell == NARROW:
        sign = "" if display.color or not np.nanmin(values, initial=0.0) < 0 else ", - below 0"
        text = f"the strongest colour or shade is {most:.{digits}f} from 0{sign}"
        yield from folded(Text(text, style="dim"), display.width)
    if left_out := [i for i in range(len(columns)) if i not in widths]:
        what = "layers" if columns[0].startswith("L") else "heads"
        which = f"{what} {left_out[0]} to {left_out[-1]} are left out"
        picture = display.speller("output", "FILE.png")
        text = f"{which}: use a wider terminal, or {picture}"
        yield from folded(Text(text, style="dim"), display.width)


def _fit(columns: Sequence[str], least: int, room: int) -> tuple[int, dict[int, int]]:
    """The width of a cell, and the widths of the columns that fit, by their places.

    Cells hold numbers, `least` cells wide, if there is room for all columns.
    """
    counted = sum(name[1:].isdigit() for name in columns)

    def others(cell: int) -> list[int]:
        return [max(cell, len(name) + 1) for name in columns[counted:]]

    fitting = [c for c in CELLS if c >= least and c * counted + sum(others(c)) <= room]
    cell = min(fitting, default=NARROW)
    shown = max(0, min(counted, (room - sum(others(cell))) // cell))
    widths = dict.fromkeys(range(shown), cell)
    return cell, widths | dict(zip(range(counted, len(columns)), others(cell), strict=True))


def _header(columns: Sequence[str], widths: Mapping[int, int], *, numbers: bool) -> str:
    """The names above their columns: at the right end of numbers, else at the left, every second.

    A narrow column has no room for its letter.
    """
    line, start = "", 0
    for place, (i, width) in enumerate(widths.items()):
        name = columns[i]
        if numbers:
            line += name.rjust(width - 1) + " "
        elif not name[1:].isdigit():
            line = line.ljust(start) + name
        elif place % 2 == 0:
            line = line.ljust(start) + name[1:]
        start += width
    return line.rstrip()


def _cell(
    value: float, most: float, width: int, number: str, style: StyleOf, display: Display
) -> Text:
    if isnan(value):
        return Text(" " * width)
    share = value / most if most else 0.0
    if number:
        content = number.rjust(width - 1) + " "
    elif display.color:
        content = " " * width
    else:
        shade = shade_of(abs(share), unicode=display.unicode)
        content = (shade + ("-" if value < 0 and abs(share) >= 0.05 else " ")).ljust(width)
    return Text(content, style(share, display) if display.color else "")


# A view: what was done, what was found, maps and a table.

MOST_TOKENS = 60
"""More columns of a map with an order are not shown."""
TURNED = 7
"""Cells that a row of it takes, where it stands as a column."""


def show_view(view: ResultView, display: Display) -> Iterator[Text]:
    """Render a view in a terminal."""
    width = display.width
    lines = "\n".join((f"{view.facts}; {view.done}", *view.about))
    yield from folded(Text(lines, "dim"), width)
    yield Text()
    yield from folded(Text(view.found, "bold"), width) if view.found else ()
    if view.found and view.table:
        yield Text()
    for own in view.maps:
        if len(view.maps) > 1:
            yield Text(own.title, "bold")
        yield from _map(own, view.most, display)
    yield from _table(view.table, width) if view.table else ()
    if view.below:
        yield Text()
        yield from folded(Text(spelled("\n".join(view.below), display.speller)), width)
    if view.next_tokens:
        both = view.next_tokens
        yield from next_before_and_after(view.first, both.before, both.after, display)
    yield from footnotes(view.notes, width)


def _map(own: Pane, most: float, display: Display) -> Iterator[Text]:
    """A map without empty rows, and an empty line; with an order, its first rows that fit."""
    values, down, across, few = own.values, own.down, own.across, ""
    if own.order is not None:
        if len(across) > MOST_TOKENS:
            return
        margin = min(max(map(len, across)), display.width // 3) + 1
        shown = own.order[: max(1, (display.width - margin) // TURNED)]
        values, down = values[shown], [down[i] for i in shown]
        wider = f"use a wider terminal, or {display.speller('output', 'FILE.png')}"
        if len(shown) < len(own.order):
            few = f"the first {len(shown)} of these {len(own.order)} parts: {wider}"
    if own.turned:
        values, down, across = values.T, across, down
    if kept := [i for i, row in enumerate(values) if not np.isnan(row).all()]:
        values, down = values[kept], [down[i] for i in kept]
    yield from value_grid(values, down, across, most, signed_style, display)
    yield from folded(Text(few, style="dim"), display.width) if few else ()
    yield Text()


def _table(own: Table, width: int) -> Iterator[Text]:
    """The table; with its spare columns where they fit, or where nothing does."""
    heads, rows = rows_of(own.items, own.columns)
    legend = ""
    if own.spare:
        more, wider = rows_of(own.items, [*own.columns, own.spare])
        if fits(more, wider, width) or not fits(heads, rows, width):
            heads, rows, legend = more, wider, own.legend
    yield from listing(heads, rows, width)
    yield from footnotes([legend] if legend else [], width)
