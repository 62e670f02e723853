"""A value for every head in the terminal: a row for each layer, a column for each head."""

from collections.abc import Callable, Iterator
from math import isnan

import numpy as np
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.data.blocks import FloatArray
from attnviz.renderers.arrangement import digits_for
from attnviz.renderers.terminal.colors import shade_of
from attnviz.renderers.terminal.prose import folded

CELLS = (9, 8, 7, 6, 5)
"""Widths of a cell that holds a number, the gap behind it included."""
NARROW = 2

StyleOf = Callable[[float, Display], Style]


def head_grid(values: FloatArray, most: float, style: StyleOf, display: Display) -> Iterator[Text]:
    """Lines of at most `display.width` cells.

    Args:
        values: (layers, heads), NaN where there is nothing.
        most: the value that gets the strongest colour; those of its negative, the opposite.
        style: of a share of that value.
        display: where it stands.
    """
    layers, heads = values.shape
    margin = len(f"L{layers - 1}") + 1
    digits = digits_for(most)
    written = max((len(f"{v:z.{digits}f}") for v in values[~np.isnan(values)]), default=1)
    fitting = [c for c in CELLS if c > written and margin + c * heads <= display.width]
    cell = min(fitting, default=NARROW)
    columns = min(heads, (display.width - margin) // cell)
    every = 1 if cell > NARROW else 2
    names = (f"H{n}".rjust(cell - 1) + " " if n % every == 0 else "" for n in range(columns))
    if cell == NARROW:
        names = (f"{n}".ljust(cell * every) for n in range(0, columns, every))
    yield Text((" " * margin + "".join(names)).rstrip(), style="dim", no_wrap=True)
    for layer in range(layers):
        line = Text(f"L{layer}".ljust(margin), no_wrap=True, overflow="crop")
        for value in values[layer, :columns].tolist():
            line.append_text(_cell(value, most, cell, digits, style, display))
        line.rstrip()
        yield line
    if cell == NARROW:
        sign = "" if display.color or not np.nanmin(values, initial=0.0) < 0 else ", - below 0"
        said = f"the strongest colour or shade is {most:.{digits}f} from 0{sign}"
        yield from folded(Text(said, style="dim"), display.width)
    if columns < heads:
        picture = display.speller("output", "FILE.png")
        said = f"heads {columns} to {heads - 1} are left out: use a wider terminal, or {picture}"
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
