"""The terminal's colours: viridis for weights, blue and red for values with a sign.

Viridis gets lighter evenly from end to end and is told apart by colour-blind eyes. Rich
brings its colours down to 256 where a terminal has no more; for 16 there is a ramp of five.
The ends of matplotlib's RdBu are told apart by colour-blind eyes, as one is light red and the
other dark blue only far from the middle; without colour, numbers and their signs tell.
"""

from functools import lru_cache

from rich.color import Color
from rich.style import Style

from attnviz.console import Display
from attnviz.renderers.colors import PALE, VIRIDIS, is_light, signed_color

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
