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
    """The label, cut with `…` (ASCII: `~`) to `width` cells; a number `#2` at its end is kept."""
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
