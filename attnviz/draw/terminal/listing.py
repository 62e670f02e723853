"""Records as a table; where it does not fit, one below the other, with nothing cut."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.terminal.colors import cut, folded, pad, widest
from attnviz.draw.titles import bar_of

BAR = 16  # cells at most
GAP, INDENT = 2, 2
LEAST = 24  # cells; a column of sentences that would be narrower makes the table no table


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
    """The rows as lines of at most `width` cells that do not end in spaces.

    One column at most may wrap; the first one names a record. A cell without content is empty.
    """
    names = [column.name for column in columns] if header else [""] * len(columns)
    cells = [widest([names[i], *(row[i] for row in rows)]) for i in range(len(columns))]
    over = sum(cells) + GAP * (len(cells) - 1) - width
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


def _lines(
    columns: Sequence[Column], row: Sequence[str], cells: Sequence[int], style: str = ""
) -> Iterator[Text]:
    """A row of the table: as many lines as its longest cell."""
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
    """Each record: what it is of, and below it a line for every value that it has."""
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
    """The line, and after it as many names with their numbers as fit, at least the first.

    `longest`: the cells that a name may have.
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
    """Each note below an empty line."""
    for note in notes:
        yield Text()
        yield from folded(Text(note, "dim"), width)


def named_bars(rows: Sequence[tuple[str, float]], display: Display) -> Iterator[Text]:
    """Names with signed numbers; bars where there is room."""
    most = max((abs(value) for _, value in rows), default=0.0) or 1.0
    longest = max(len(name) for name, _ in rows)
    wide = longest + len("-00.000") + BAR + 6 <= display.width
    columns = [Column(""), Column("", right=True), *([Column("")] if wide else [])]
    lines = []
    for name, value in rows:
        bar = bar_of(abs(value) / most, BAR, display.unicode)
        lines.append([f"  {name}", f"{value:+z.3f}", *([bar] if wide else [])])
    yield from listing(columns, lines, display.width, header=False)


# Blocks of lines side by side where there is room, else one below the other.

BLOCK_GAP = 4


def side_by_side(blocks: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    """The blocks of lines in rows, as many in each as fit, with an empty line between rows."""
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
