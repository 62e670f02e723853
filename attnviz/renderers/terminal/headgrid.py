"""Values in the terminal: a row for each layer or token, a column for each part or layer."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan

import numpy as np
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.records.capture import FloatArray
from attnviz.renderers.arrangement import digits_for
from attnviz.renderers.direction import fenced
from attnviz.renderers.terminal.cells import cut, pad, widest
from attnviz.renderers.terminal.colors import shade_of
from attnviz.renderers.terminal.prose import folded

CELLS = (9, 8, 7, 6, 5)
"""Widths of a cell that holds a number, the gap behind it included."""
NARROW = 2

StyleOf = Callable[[float, Display], Style]


def head_grid(values: FloatArray, most: float, style: StyleOf, display: Display) -> Iterator[Text]:
    """The grid of all heads (layers, heads); the rest as for `value_grid`."""
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
    """Lines of at most `display.width` cells.

    Args:
        values: (rows, columns), NaN where there is nothing.
        names: of the rows.
        columns: their names: a letter and numbers from 0, then others, which always stay.
        most: the value that gets the strongest colour; those of its negative, the opposite.
        style: of a share of that value.
        display: where it stands.
    """
    counted = sum(name[1:].isdigit() for name in columns)
    others = columns[counted:]
    margin = min(widest(names), display.width // 3) + 1
    room = display.width - margin
    digits = digits_for(most)
    written = max((len(f"{v:z.{digits}f}") for v in values[~np.isnan(values)]), default=1)

    def widths(cell: int) -> list[int]:
        return [cell] * counted + [max(cell, len(name) + 1) for name in others]

    fitting = [c for c in CELLS if c > written and sum(widths(c)) <= room]
    cell = min(fitting, default=NARROW)
    shown = max(0, min(counted, (room - sum(widths(cell)[counted:])) // cell))
    kept = [*range(shown), *range(counted, len(columns))]
    wide = [widths(cell)[i] for i in kept]
    header = _header([columns[i] for i in kept], wide, numbers=cell > NARROW)
    yield Text(" " * margin + header, style="dim", no_wrap=True)
    for name, row in zip(names, values[:, kept].tolist(), strict=True):
        label = cut(name, margin - 1, unicode=display.unicode)
        line = Text(pad(fenced(label), margin), no_wrap=True, overflow="crop")
        for value, width in zip(row, wide, strict=True):
            said = f"{value:z.{digits}f}" if cell > NARROW else ""
            line.append_text(_cell(value, most, width, said, style, display))
        line.rstrip()
        yield line
    if cell == NARROW:
        sign = "" if display.color or not np.nanmin(values, initial=0.0) < 0 else ", - below 0"
        said = f"the strongest colour or shade is {most:.{digits}f} from 0{sign}"
        yield from folded(Text(said, style="dim"), display.width)
    if shown < counted:
        what = "layers" if columns[0].startswith("L") else "heads"
        picture = display.speller("output", "FILE.png")
        said = f"{what} {shown} to {counted - 1} are left out: use a wider terminal, or {picture}"
        yield from folded(Text(said, style="dim"), display.width)


def _header(names: Sequence[str], widths: Sequence[int], *, numbers: bool) -> str:
    """The names above their columns: at the right end of numbers, else at the left, every second.

    A narrow column has no room for its letter.
    """
    line, start = "", 0
    for i, (name, width) in enumerate(zip(names, widths, strict=True)):
        if numbers:
            line += name.rjust(width - 1) + " "
        elif not name[1:].isdigit():
            line = line.ljust(start) + name
        elif i % 2 == 0:
            line = line.ljust(start) + name[1:]
        start += width
    return line.rstrip()


def _cell(
    value: float, most: float, width: int, number: str, style: StyleOf, display: Display
) -> Text:
    """A value as its number, or as a colour or a shade where there is no room for one."""
    if isnan(value):
        return Text(" " * width)
    share = value / most if most else 0.0
    if number:
        said = number.rjust(width - 1) + " "
    elif display.color:
        said = " " * width
    else:
        shade = shade_of(abs(share), unicode=display.unicode)
        said = (shade + ("-" if value < 0 and abs(share) >= 0.05 else " ")).ljust(width)
    return Text(said, style(share, display) if display.color else "")
