"""Values in the terminal: a row for each layer or token, a column for each head or layer."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from typing import Literal

import numpy as np
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.data.blocks import FloatArray
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
    yield from value_grid(values, names, "head", most, style, display)


def value_grid(
    values: FloatArray,
    names: Sequence[str],
    across: Literal["head", "layer"],
    most: float,
    style: StyleOf,
    display: Display,
) -> Iterator[Text]:
    """Lines of at most `display.width` cells.

    Args:
        values: (rows, columns), NaN where there is nothing.
        names: of the rows.
        across: what the columns are, counted from 0.
        most: the value that gets the strongest colour; those of its negative, the opposite.
        style: of a share of that value.
        display: where it stands.
    """
    heads, letter = values.shape[1], across[0].upper()
    margin = min(widest(names), display.width // 3) + 1
    digits = digits_for(most)
    written = max((len(f"{v:z.{digits}f}") for v in values[~np.isnan(values)]), default=1)
    fitting = [c for c in CELLS if c > written and margin + c * heads <= display.width]
    cell = min(fitting, default=NARROW)
    columns = min(heads, (display.width - margin) // cell)
    every = 1 if cell > NARROW else 2
    numbers = (
        f"{letter}{n}".rjust(cell - 1) + " " if n % every == 0 else "" for n in range(columns)
    )
    if cell == NARROW:
        numbers = (f"{n}".ljust(cell * every) for n in range(0, columns, every))
    yield Text((" " * margin + "".join(numbers)).rstrip(), style="dim", no_wrap=True)
    for name, row in zip(names, values[:, :columns].tolist(), strict=True):
        label = cut(name, margin - 1, unicode=display.unicode)
        line = Text(pad(fenced(label), margin), no_wrap=True, overflow="crop")
        for value in row:
            line.append_text(_cell(value, most, cell, digits, style, display))
        line.rstrip()
        yield line
    if cell == NARROW:
        sign = "" if display.color or not np.nanmin(values, initial=0.0) < 0 else ", - below 0"
        said = f"the strongest colour or shade is {most:.{digits}f} from 0{sign}"
        yield from folded(Text(said, style="dim"), display.width)
    if columns < heads:
        picture = display.speller("output", "FILE.png")
        said = (
            f"{across}s {columns} to {heads - 1} are left out: use a wider terminal, or {picture}"
        )
        yield from folded(Text(said, style="dim"), display.width)


def _cell(
    value: float, most: float, cell: int, digits: int, style: StyleOf, display: Display
) -> Text:
    if isnan(value):
        return Text(" " * cell)
    share = value / most if most else 0.0
    if cell > NARROW:
        said = f"{value:z.{digits}f}".rjust(cell - 1) + " "
    elif display.color:
        said = " " * cell
    else:
        shade = shade_of(abs(share), unicode=display.unicode)
        said = (shade + ("-" if value < 0 and abs(share) >= 0.05 else " ")).ljust(cell)
    return Text(said, style(share, display) if display.color else "")
