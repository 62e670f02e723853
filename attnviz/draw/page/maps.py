"""Maps of signed numbers on a page without a script: a table of shaded cells."""

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from attnviz.draw.labels import PALE, SIGNED, SIGNED_ON_DARK, Rgb, fenced
from attnviz.draw.page import COMMON, HEAD, filled, policies, policy, source
from attnviz.draw.view import Pane

STEPS = 20
"""Shades of each sign."""


def map_page(body: str, **values: str) -> list[str]:
    """A page with maps and no script, made of its body's file."""
    style = source(f"{COMMON}.css", "draw/page/map.css") + _shades()
    values |= {"policies": policies(policy(style, "")), "style": style}
    return [filled(source(HEAD, body), values)]


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


def map_rows(own: Pane, scale: float, digits: int) -> Iterator[str]:
    """The head and the rows of a map's table; the title of a cell tells its numbers."""
    assert own.told is not None
    name = "<th>{}</th>" if own.columns is None else '<th class="token"><span>{}</span></th>'
    names = "".join(name.format(escape(fenced(each))) for each in own.across)
    yield f"<thead><tr><th></th>{names}</tr></thead>"
    for i in range(len(own.values)) if own.order is None else own.order:
        row, cells = own.values[i].tolist(), list[str]()
        for k, value in enumerate(row):
            if np.isnan(value):
                cells.append("<td></td>")
            else:
                tone, told = shade(value / scale), escape(own.told(i, k))
                cells.append(f'<td class="{tone}" title="{told}">{value:z.{digits}f}</td>')
        if not np.isnan(row).all():
            yield f"<tr><th>{own.down[i]}</th>{''.join(cells)}</tr>"
