"""Values with a sign, in the terminal: blue below zero, red above, white at zero.

The ends of matplotlib's RdBu are told apart by colour-blind eyes, as one is light red and the
other dark blue only far from the middle; without colour, numbers and their signs tell.
"""

from rich.color import Color
from rich.style import Style

from attnviz.console import Display

_BELOW, _ABOVE, _ZERO = (33, 102, 172), (178, 24, 43), (247, 247, 247)


def signed_style(share: float, display: Display) -> Style:
    """A cell in the colour of a value from -1 to 1, and letters that stand out on it."""
    share = min(1.0, max(-1.0, share))
    if display.sixteen:
        if abs(share) < 1 / 3:
            return Style()
        return Style(color=Color.from_ansi(15), bgcolor=Color.from_ansi(4 if share < 0 else 1))
    end = _BELOW if share < 0 else _ABOVE
    mixed = [round(zero + (far - zero) * abs(share)) for zero, far in zip(_ZERO, end, strict=True)]
    ink = Color.from_rgb(0, 0, 0) if abs(share) < 0.55 else Color.from_rgb(255, 255, 255)
    return Style(color=ink, bgcolor=Color.from_rgb(*mixed))
