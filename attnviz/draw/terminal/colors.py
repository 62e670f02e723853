"""The terminal's colours: viridis for weights, blue and red for values with a sign.

Viridis gets lighter evenly from end to end and is told apart by colour-blind eyes. Rich
brings its colours down to 256 where a terminal has no more; for 16 there is a ramp of five.
The ends of matplotlib's RdBu are told apart by colour-blind eyes, as one is light red and the
other dark blue only far from the middle; without colour, numbers have signs.
"""

import io
import re
from collections.abc import Sequence
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import MARK, PALE, VIRIDIS, is_light, runs, signed_color
from attnviz.draw.titles import left_out
from attnviz.records.exhibit import Exhibit, Orient

_COLORS = tuple(Color.from_rgb(*rgb) for rgb in VIRIDIS)

# Shades without colour: nothing shown, (almost) zero, then four steps.
SHADES, ASCII_SHADES = "·░▒▓█", ".:+%@"

# Of sixteen colours those that come in viridis's order: blue, cyan, green, yellow, light yellow;
# as marks on any ground: light blue, cyan, green.
_SIXTEEN, _SIXTEEN_BARS = (4, 6, 2, 3, 11), (12, 6, 2)

# The ends of the map vanish on a dark or on a light terminal; thin marks keep to its middle.
_VISIBLE = (0.25, 0.8)


def cell_style(weight: float, display: Display) -> Style:
    """A cell filled with the colour of a weight from 0 to 1, and letters that stand out on it."""
    return _filled(color_of(weight, display), display.sixteen)


@lru_cache(maxsize=64)
def _filled(color: Color, sixteen: bool) -> Style:
    if sixteen:  # whose shades a terminal chooses: only its blue is dark in all of them
        return Style(color=Color.from_ansi(15 if color.number == 4 else 0), bgcolor=color)
    light = is_light(color.get_truecolor())
    ink = Color.from_rgb(0, 0, 0) if light else Color.from_rgb(255, 255, 255)
    return Style(color=ink, bgcolor=color)


def bar_style(weight: float, display: Display) -> Style:
    """A mark in the weight's colour that can be seen on dark and on light terminals."""
    weight = min(1.0, max(0.0, weight))
    if display.sixteen:
        return Style(color=Color.from_ansi(_SIXTEEN_BARS[min(2, int(weight * 3))]))
    low, high = _VISIBLE
    return Style(color=color_of(low + (high - low) * weight, display))


def color_of(weight: float, display: Display) -> Color:
    """The colour of a weight from 0 to 1; what lies outside takes the nearer end."""
    weight = min(1.0, max(0.0, weight))
    if display.sixteen:
        return Color.from_ansi(_SIXTEEN[min(4, int(weight * 5))])
    return _COLORS[round(weight * (len(_COLORS) - 1))]


def shade_of(weight: float, *, unicode: bool = True) -> str:
    """One character that stands for a weight from 0 to 1: `·` for less than 0.05, then ░▒▓█."""
    shades = SHADES if unicode else ASCII_SHADES
    if weight < 0.05:
        return shades[0]
    return shades[1 + min(3, int(weight * 4))]


def signed_style(share: float, display: Display) -> Style:
    """A cell in the colour of a value from -1 to 1, and letters that stand out on it."""
    share = min(1.0, max(-1.0, share))
    if display.sixteen:
        if abs(share) < 1 / 3:
            return Style()
        return Style(color=Color.from_ansi(15), bgcolor=Color.from_ansi(4 if share < 0 else 1))
    ink = Color.from_rgb(0, 0, 0) if abs(share) < PALE else Color.from_rgb(255, 255, 255)
    return Style(color=ink, bgcolor=Color.from_rgb(*signed_color(share)))


# Labels in terminal cells: cut, padded, measured. 楚 takes two cells, a combining mark none.


def cut(label: str, width: int, *, unicode: bool = True) -> str:
    """The label, cut with `…` (ASCII: `~`) where it is wider than `width` cells.

    The number of a repeated token is kept while there is room for it.
    """
    if cell_len(label) <= width:
        return label
    if width <= 0:
        return ""
    mark = "…" if unicode else "~"
    number = re.search(r"#\d+$", label)
    tail = mark + number[0] if number and len(number[0]) + 2 <= width else mark
    room = max(0, width - cell_len(tail))
    # set_cell_size puts a space where half of a wide letter would be left over.
    return set_cell_size(label, room).rstrip(" ") + tail


def pad(label: str, width: int, *, right: bool = False) -> str:
    """The label filled with spaces to `width` cells; `right` puts it at the right edge."""
    space = " " * max(0, width - cell_len(label))
    return space + label if right else label + space


def widest(labels: Sequence[str]) -> int:
    """The width in cells of the widest of these labels; 0 of none."""
    return max(map(cell_len, labels), default=0)


# Sentences of the terminal: wrapped between words, and no line ends in spaces.


def folded(text: Text, width: int) -> list[Text]:
    """The text as lines of at most `width` cells, in the styles that it has."""
    # The console is asked for nothing here but is a part of Rich's signature.
    lines = text.wrap(Console(file=io.StringIO(), width=width), width, overflow="fold")
    for line in lines:
        line.rstrip()
        line.no_wrap, line.overflow = True, "crop"
    return list(lines)


def fenced_line(line: Text) -> Text:
    """The same for a line in several styles, whose runs may cross from one style to another."""
    edges = [edge for run in runs(line.plain) for edge in run]
    if not edges:
        return line
    mark = Text(MARK, no_wrap=line.no_wrap, overflow=line.overflow)
    return mark.join(line.divide(edges))


# The lines below a view of the terminal: what its colours, shades and empty cells stand for.

STEPS = 16


def legend(
    exhibit: Exhibit, display: Display, most: float, *, numbers: bool, orient: Orient, sums: bool
) -> list[Text]:
    """The meaning of a cell's colour or shade and of an empty cell, and the side of the queries."""
    text = Text()
    if display.color:
        text.append_text(ramp(display, most, signed=exhibit.capture.signed))
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


def ramp(display: Display, most: float, *, signed: bool = False) -> Text:
    """The colours from 0, or from the other end, to the strongest weight, with both numbers."""
    text = Text(f"{-most:.2f} " if signed else "0 ")
    for step in (n / (STEPS - 1) for n in range(STEPS)):
        style = signed_style(2 * step - 1, display) if signed else cell_style(step, display)
        text.append(" ", style)
    return text.append(f" {most:.2f}")


def _shades(display: Display, most: float) -> str:
    """`· under 0.05  ░ from 0.05  ▒ from 0.25 ...`, of the strongest weight."""
    levels = [0.05, 0.25, 0.5, 0.75]
    under = f"{shade_of(0, unicode=display.unicode)} under {levels[0] * most:.2f}"
    steps = [f"{shade_of(n, unicode=display.unicode)} {n * most:.2f}" for n in levels]
    assert len(steps) == len(SHADES) - 1
    return "  ".join([under, *steps])
