"""The lines below a view of the terminal: what its colours, shades and empty cells stand for."""

from rich.text import Text

from attnviz.console import Display
from attnviz.records.exhibit import Exhibit, Orient
from attnviz.renderers.terminal.colors import SHADES, cell_style, shade_of, signed_style
from attnviz.renderers.terminal.prose import folded
from attnviz.renderers.titles import left_out

STEPS = 16


def legend(
    exhibit: Exhibit, display: Display, most: float, *, numbers: bool, orient: Orient, sums: bool
) -> list[Text]:
    """What a cell means: its colour or shade, an empty one, and which side the queries are on."""
    text = Text()
    if display.color:
        text.append_text((signed_ramp if exhibit.capture.signed else ramp)(display, most))
    elif numbers:
        text.append(f"{shade_of(0, unicode=display.unicode)} less than 0.005")
    elif exhibit.capture.signed:
        text.append(f"darker = higher, from {-most:.2f} to {most:.2f}")
    else:
        text.append(_shades(display, most))
    if exhibit.capture.signed and len(exhibit.maps) > 1:
        text.append(", each head on its own scale")
    empty = left_out(exhibit)
    if empty:
        text.append(f", blank: {empty}")
    rows, columns = exhibit.sides.rows, exhibit.sides.columns
    if orient == "key-rows":
        rows, columns = columns, rows
    text.append(f"; rows are {rows}, columns are {columns}")
    if sums and orient == "key-rows":
        text.append(", each column sums to 1")
    text.stylize("dim", 0 if not display.color else text.plain.index(f" {most:.2f}"))
    return folded(text, display.width)


def ramp(display: Display, most: float) -> Text:
    """The colours from 0 to the strongest weight, with these two numbers at its ends."""
    text = Text("0 ")
    for step in range(STEPS):
        text.append(" ", cell_style(step / (STEPS - 1), display))
    return text.append(f" {most:.2f}")


def signed_ramp(display: Display, most: float) -> Text:
    """The colours from one end over 0 to the other, with their numbers."""
    text = Text(f"{-most:.2f} ")
    for step in range(STEPS):
        text.append(" ", signed_style(2 * step / (STEPS - 1) - 1, display))
    return text.append(f" {most:.2f}")


def _shades(display: Display, most: float) -> str:
    """`· under 0.05  ░ from 0.05  ▒ from 0.25 ...`, of the strongest weight."""
    levels = [0.05, 0.25, 0.5, 0.75]
    under = f"{shade_of(0, unicode=display.unicode)} under {levels[0] * most:.2f}"
    steps = [f"{shade_of(n, unicode=display.unicode)} {n * most:.2f}" for n in levels]
    assert len(steps) == len(SHADES) - 1
    return "  ".join([under, *steps])
