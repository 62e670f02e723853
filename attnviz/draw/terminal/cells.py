"""The elements of every terminal view: colours, labels in cells, folded lines, tables.

The larger a value, the farther its colour is from the terminal's ground. Viridis gets lighter
evenly from end to end and suits colour-blind eyes; on a light ground the blues of pictures get
darker. Rich reduces its colours to 256 on terminals with no more; for 16 there is a ramp of five.
Values with a sign go to blue and to red, which colour-blind eyes can distinguish, as one is
lighter than the other; without colour, numbers have signs.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import (
    BLUES,
    MARK,
    SIGNED,
    SIGNED_ON_DARK,
    VIRIDIS,
    between,
    distinct_labels,
    fenced,
    is_light,
    runs,
    signed_color,
)
from attnviz.draw.titles import bar_of, probability
from attnviz.records.capture import Capture
from attnviz.records.predict import NextTokens

# Colours: viridis for weights, blue and red for values with a sign.

_COLORS = tuple(Color.from_rgb(*rgb) for rgb in VIRIDIS)
_COLORS_ON_LIGHT = tuple(Color.from_rgb(*rgb) for rgb in between(BLUES, len(VIRIDIS)))

# Shades without colour: nothing shown, (almost) zero, then four steps.
SHADES, ASCII_SHADES = "·░▒▓█", ".:+%@"

# The colours of sixteen in viridis's order: blue, cyan, green, yellow, light yellow; as marks on
# any ground: light blue, cyan, green.
_SIXTEEN, _SIXTEEN_BARS = (4, 6, 2, 3, 11), (12, 6, 2)

# The ends of the map vanish on a dark or on a light terminal; thin marks keep to its middle.
_VISIBLE, _VISIBLE_ON_LIGHT = (0.25, 0.8), (0.45, 0.95)


def cell_style(weight: float, display: Display) -> Style:
    """A cell filled with the colour of a weight from 0 to 1, with legible letters."""
    return _filled(color_of(weight, display), display.sixteen)


@lru_cache(maxsize=64)
def _filled(color: Color, sixteen: bool) -> Style:
    if sixteen:  # a terminal chooses their shades: only blue is always dark
        return Style(color=Color.from_ansi(15 if color.number == 4 else 0), bgcolor=color)
    light = is_light(color.get_truecolor())
    ink = Color.from_rgb(0, 0, 0) if light else Color.from_rgb(255, 255, 255)
    return Style(color=ink, bgcolor=color)


def bar_style(weight: float, display: Display) -> Style:
    """A mark in the weight's colour that is visible on dark and on light terminals."""
    weight = min(1.0, max(0.0, weight))
    if display.sixteen:
        bars = _SIXTEEN_BARS[::-1] if display.light else _SIXTEEN_BARS
        return Style(color=Color.from_ansi(bars[min(2, int(weight * 3))]))
    low, high = _VISIBLE_ON_LIGHT if display.light else _VISIBLE
    return Style(color=color_of(low + (high - low) * weight, display))


def color_of(weight: float, display: Display) -> Color:
    """The colour of a weight from 0 to 1; other values take the nearer end."""
    weight = min(1.0, max(0.0, weight))
    if display.sixteen:
        ramp = _SIXTEEN[::-1] if display.light else _SIXTEEN
        return Color.from_ansi(ramp[min(4, int(weight * 5))])
    return (_COLORS_ON_LIGHT if display.light else _COLORS)[round(weight * (len(_COLORS) - 1))]


def shade_of(weight: float, *, unicode: bool = True) -> str:
    """One character for a weight from 0 to 1: `·` for less than 0.05, then ░▒▓█."""
    shades = SHADES if unicode else ASCII_SHADES
    if weight < 0.05:
        return shades[0]
    return shades[1 + min(3, int(weight * 4))]


def signed_style(share: float, display: Display) -> Style:
    """A cell in the colour of a value from -1 to 1, with legible letters."""
    share = min(1.0, max(-1.0, share))
    if display.sixteen:
        if abs(share) < 1 / 3:
            return Style()
        return Style(color=Color.from_ansi(15), bgcolor=Color.from_ansi(4 if share < 0 else 1))
    color = signed_color(share, SIGNED if display.light else SIGNED_ON_DARK)
    return _filled(Color.from_rgb(*color), sixteen=False)


# Labels in terminal cells: cut, padded, measured. 楚 takes two cells, a combining mark none.


def cut(label: str, width: int, *, unicode: bool = True) -> str:
    """The label, cut with `…` (ASCII: `~`) to `width` cells; `#2` or ` 2]` at its end is kept."""
    if cell_len(label) <= width:
        return label
    if width <= 0:
        return ""
    mark = "…" if unicode else "~"
    number = re.search(r"#\d+$| \d+\]$", label)
    tail = mark + number[0] if number and len(number[0]) + 2 <= width else mark
    room = max(0, width - cell_len(tail))
    # set_cell_size puts a space in place of half a wide letter.
    return set_cell_size(label, room).rstrip(" ") + tail


def pad(label: str, width: int, *, right: bool = False) -> str:
    """Pad the label with spaces to `width` cells; `right` puts it at the right edge."""
    space = " " * max(0, width - cell_len(label))
    return space + label if right else label + space


def widest(labels: Sequence[str]) -> int:
    """The width in cells of the widest of these labels; 0 without any."""
    return max(map(cell_len, labels), default=0)


# Sentences of the terminal: wrapped between words, and no line ends in spaces.


def folded(text: Text, width: int) -> list[Text]:
    """Fold the text into lines of at most `width` cells, with its styles."""
    # The console is not used here, but is a part of Rich's signature.
    lines = text.wrap(Console(file=io.StringIO(), width=width), width, overflow="fold")
    for line in lines:
        line.rstrip()
        line.no_wrap, line.overflow = True, "crop"
    return list(lines)


def fenced_line(line: Text) -> Text:
    """A line in several styles with marks around runs of right-to-left letters, across styles."""
    edges = [edge for run in runs(line.plain) for edge in run]
    if not edges:
        return line
    mark = Text(MARK, no_wrap=line.no_wrap, overflow=line.overflow)
    return mark.join(line.divide(edges))


# Records as a table; if it does not fit, one below the other, with nothing cut.

BAR = 16  # cells at most
GAP, INDENT = 2, 2
LEAST = 24  # cells; a table with a narrower column of sentences is not drawn as a table


@dataclass(frozen=True)
class Column:
    """A column's name; `right`: numbers; `wraps`: sentences, which may take several lines."""

    name: str
    right: bool = False
    wraps: bool = False
    style: str = ""


def listing(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, *, header: bool = True
) -> Iterator[Text]:
    """Write the rows as lines of at most `width` cells that do not end in spaces.

    At most one column may wrap; the first one names a record. A cell without content is empty.
    """
    names = [column.name for column in columns] if header else [""] * len(columns)
    cells, whole = _widths(names, rows)
    over = whole - width
    for i, column in enumerate(columns):
        if over > 0 and column.wraps and cells[i] - over >= LEAST:
            cells[i], over = cells[i] - over, 0
    if over > 0:
        yield from _stacked(columns, rows, width)
        return
    if header:
        yield from _lines(columns, names, cells, "bold")
    for row in rows:
        yield from _lines(columns, row, cells)


def fits(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the rows are lines of that width without a cell that wraps."""
    return _widths([column.name for column in columns], rows)[1] <= width


TextLines: TypeAlias = Iterator[Text]
TableColumns: TypeAlias = tuple[Sequence[Column], Callable[[Any], Sequence[str]]]
"""Columns of a table, and the function that makes their cells of an item."""


def words(name: str, of: Callable[[Any], str], *, right: bool = False) -> TableColumns:
    """A column of words, or of numbers as text."""
    return [Column(name, right=right)], lambda item: [of(item)]


def rows_of(
    items: Iterable[Any], columns: Sequence[TableColumns]
) -> tuple[Sequence[Column], Sequence[Sequence[str]]]:
    """The columns and the rows of a table with a row for each item."""
    rows = [[cell for _, cells in columns for cell in cells(item)] for item in items]
    return [column for own, _ in columns for column in own], rows


def table(items: Iterable[Any], columns: Sequence[TableColumns], width: int) -> Iterator[Text]:
    """List a row for each item; see `listing`."""
    heads, rows = rows_of(items, columns)
    return listing(heads, rows, width)


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[int], int]:
    """The width of each column, and of a line."""
    cells = [widest([name, *(row[i] for row in rows)]) for i, name in enumerate(names)]
    return cells, sum(cells) + GAP * (len(cells) - 1)


def _lines(
    columns: Sequence[Column], row: Sequence[str], cells: Sequence[int], style: str = ""
) -> Iterator[Text]:
    """The lines of a row, as many as its longest cell has."""
    parts = [
        folded(Text(cell), room) if column.wraps else [Text(cell)]
        for column, cell, room in zip(columns, row, cells, strict=True)
    ]
    for n in range(max(map(len, parts))):
        line = Text(no_wrap=True, overflow="crop")
        for i, (column, part) in enumerate(zip(columns, parts, strict=True)):
            content = part[n].plain if n < len(part) else ""
            line.append(" " * GAP if i else "")
            line.append(pad(content, cells[i], right=column.right), style or column.style)
        line.rstrip()
        yield line


def _stacked(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> Iterator[Text]:
    """The lines of each record: its name, and below it a line for each of its values."""
    for n, (name, *values) in enumerate(rows):
        if n:
            yield Text()
        yield from folded(Text(name, "bold"), width)
        for column, value in zip(columns[1:], values, strict=True):
            if value:
                entry = Text(f"{column.name}: " if column.name else "").append(value, column.style)
                for line in folded(entry, width - INDENT):
                    yield Text(" " * INDENT, no_wrap=True, overflow="crop").append_text(line)


def fitting(
    line: Text, items: Iterable[tuple[str, str]], longest: int, display: Display, gap: str = ", "
) -> Text:
    """Append as many names with their numbers to a line as fit, at least the first.

    `longest`: the most cells of a name.
    """
    for n, (name, number) in enumerate(items):
        label = fenced(cut(name, longest, unicode=display.unicode))
        item = Text(f"{gap if n else ''}{label} {number}")
        if n and line.cell_len + item.cell_len > display.width:
            break
        line.append_text(item)
    line.no_wrap, line.overflow = True, "crop"
    return line


def footnotes(notes: Sequence[str], width: int) -> Iterator[Text]:
    """Write each note below an empty line."""
    for note in notes:
        yield Text()
        yield from folded(Text(note, "dim"), width)


def titled_listing(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, note: str = ""
) -> Iterator[Text]:
    """The rows as a listing below a title, and a note on them."""
    yield from folded(Text(title, "dim"), width)
    yield Text()
    yield from listing(columns, rows, width)
    yield from footnotes([note] if note else [], width)


def next_before_and_after(
    capture: Capture, before: NextTokens, after: NextTokens, display: Display
) -> Iterator[Text]:
    """Show the next tokens of a run and of a changed one, side by side."""
    yield Text()
    last = distinct_labels(capture.query_tokens, unicode=display.unicode)[-1]
    yield from folded(Text(f"next token after {fenced(last)}", "dim"), display.width)
    number = Column("", right=True)
    pairs = zip(before.candidates, after.candidates, strict=True)
    rows = [
        [cell for token in pair for cell in (fenced(token.quoted), probability(token.probability))]
        for pair in pairs
    ]
    yield from listing([Column("before"), number, Column("after"), number], rows, display.width)


def named_bars(rows: Sequence[tuple[str, float]], display: Display) -> Iterator[Text]:
    """Write names with signed numbers, and bars if there is room, in outline for negative ones."""
    most = max((abs(value) for _, value in rows), default=0.0) or 1.0
    longest = max(len(name) for name, _ in rows)
    wide = longest + len("-00.000") + BAR + 6 <= display.width
    columns = [Column(""), Column("", right=True), *([Column("")] if wide else [])]
    lines = []
    for name, value in rows:
        bar = bar_of(abs(value) / most, BAR, display.unicode)
        bar = "░-"[not display.unicode] * len(bar) if value < 0 else bar
        lines.append([f"  {name}", f"{value:+z.3f}", *([bar] if wide else [])])
    yield from listing(columns, lines, display.width, header=False)


# Blocks of lines side by side if there is room, else one below the other.

BLOCK_GAP = 4


def side_by_side(blocks: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    """Put blocks of lines in rows, as many in each as fit, with an empty line between rows."""
    for n, row in enumerate(_rows(blocks, width)):
        if n:
            yield Text()
        wide = [_width(block) for block in row]
        for parts in zip_longest(*row, fillvalue=Text()):
            line = Text(no_wrap=True, overflow="crop")
            for part, cells in zip(parts, wide, strict=True):
                line.append_text(part)
                line.append(" " * (cells - part.cell_len + BLOCK_GAP))
            line.rstrip()
            yield line


def _rows(blocks: Sequence[Sequence[Text]], width: int) -> Iterator[list[Sequence[Text]]]:
    row: list[Sequence[Text]] = []
    used = 0
    for block in blocks:
        cells = _width(block)
        if row and used + BLOCK_GAP + cells > width:
            yield row
            row, used = [], 0
        used += cells + (BLOCK_GAP if row else 0)
        row.append(block)
    if row:
        yield row


def _width(block: Sequence[Text]) -> int:
    return max((line.cell_len for line in block), default=0)
