"""Maps of signed numbers on a page without a script: a table of shaded cells."""

from collections.abc import Sequence

from attnviz.draw.labels import PALE, SIGNED, SIGNED_ON_DARK, Rgb
from attnviz.draw.page import COMMON, source

STEPS = 20
"""Shades of each sign."""


def map_style() -> str:
    """The style of a page with maps."""
    return source(f"{COMMON}.css", "draw/page/map.css") + _shades()


def _shades() -> str:
    """A CSS class for each shade, as the policy allows no style on an element.

    Zero has the page's own ground, light or dark.
    """
    rules = []
    for step in range(1, STEPS + 1):
        share = step / STEPS
        ink = " color: var(--ground);" if share >= PALE else ""
        for sign, end in ((-1, "--below"), (1, "--above")):
            ground = f"color-mix(in srgb, var({end}) {share:.0%}, var(--ground))"
            rules.append(f".{shade(sign * share)} {{ background: {ground};{ink} }}\n")
    return f"{_ends(SIGNED)}@media (prefers-color-scheme: dark) {{ {_ends(SIGNED_ON_DARK)} }}\n" + (
        "".join(rules)
    )


def _ends(colors: Sequence[Rgb]) -> str:
    """The colours at both ends as variables of the page."""
    _, below, above = ("".join(f"{part:02x}" for part in color) for color in colors)
    return f":root {{ --below: #{below}; --above: #{above}; }}\n"


def shade(share: float) -> str:
    """The class of a cell, by a share of the largest number, from -1 to 1."""
    step = round(max(-1.0, min(1.0, share)) * STEPS)
    return f"{'n' if step < 0 else 'p'}{abs(step)}"
