"""The change at each token without each part: as rows, a grid, a table, and a picture."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.ablate.record import TokenEffects
from attnviz.commands.ablate.shown import about_picture, heading
from attnviz.console import Display
from attnviz.draw.effects import part_name, unit_of
from attnviz.draw.labels import DIVERGING, distinct_labels, fenced, name_of
from attnviz.draw.matrix import digits_for, largest
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.terminal.cells import Column, footnotes, listing, signed_style
from attnviz.draw.terminal.grid import value_grid
from attnviz.draw.titles import amount
from attnviz.errors import readable

MOST_TOKENS = 60
"""Of longer texts the terminal shows no grid."""
NAMED = 3
"""Tokens that are named for each part."""
CELL = 7


def _labels(effects: TokenEffects, *, unicode: bool = True) -> list[str]:
    """The names of the measured tokens; `token 4` where several texts have several."""
    labels = enumerate(distinct_labels(effects.report.capture.query_tokens, unicode=unicode))
    return [f"token {i}" if i in effects.varied else name for i, name in labels if i]


def render(effects: TokenEffects, display: Display, top: int) -> Iterator[RenderableType]:
    """The strongest parts: a grid of them and the tokens, and a table of the tokens of each."""
    yield from heading(effects.report, display)
    chosen = effects.strongest[:top]
    labels = _labels(effects, unicode=display.unicode)
    if len(labels) <= MOST_TOKENS:
        margin = min(max(map(len, labels)), display.width // 3) + 1
        across = chosen[: max(1, (display.width - margin) // CELL)]
        values = effects.changes[across].T
        columns = [_name(effects, i) for i in across]
        most = largest(effects.changes)
        yield from value_grid(values, labels, columns, most, signed_style, display)
        yield Text()
    yield from _table(effects, chosen, labels, display)


def _name(effects: TokenEffects, i: int) -> str:
    return part_name(effects.report.effects[i].parts[0], ())


def _table(
    effects: TokenEffects, chosen: Sequence[int], labels: Sequence[str], display: Display
) -> Iterator[Text]:
    """Each part on a line: its mean change, and the tokens that change most."""
    report = effects.report
    behaviours = [readable(", ".join(report.known_for(report.effects[i]))) for i in chosen]
    known = any(behaviours)
    columns = [
        Column("part"),
        Column("mean", right=True),
        Column("tokens that change most", wraps=True),
        *([Column("known for")] if known else []),
    ]
    rows = []
    for i, behaviour in zip(chosen, behaviours, strict=True):
        changes = effects.changes[i]
        at = np.argsort(-np.abs(changes), kind="stable")[:NAMED]
        tokens = ", ".join(f"{fenced(name_of(labels[t]))} {changes[t]:+.3f}" for t in at.tolist())
        mean = f"{report.effects[i].change:+.3f}"
        rows.append((_name(effects, i), mean, tokens, *([behaviour] if known else [])))
    yield from listing(columns, rows, display.width)
    if effects.varied:
        texts = amount(report.lines or 1, "text")
        note = f"token {min(effects.varied)} and its like: the {texts} have several tokens there"
        yield from footnotes([note], display.width)


def draw(effects: TokenEffects, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """All parts down, and the tokens that were predicted across."""
    values = effects.changes
    most = largest(values) or 1.0
    name = f"change at each token ({unit_of('tokens')})"
    labels = [name_of(label) for label in _labels(effects)]
    parts = [_name(effects, i) for i in range(len(values))]
    pane = Pane(name, values, -most, most, digits_for(most), columns=labels, rows=parts)
    title, about, below = about_picture(effects.report)
    return draw_panes(title, [pane], about=about, below=below, dpi=dpi, cmap=cmap)
