"""Pictures with a value for every head: layers down, heads across, one pane for each measure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isnan
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.blocks import FloatArray
from attnviz.renderers.colors import is_light
from attnviz.renderers.picture.canvas import place
from attnviz.renderers.picture.sheet import sheet, write_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 4  # panes in a row
LARGEST_SIDE, LARGEST_CELL = 2.4, 0.42  # inches
ALONE_SIDE, ALONE_CELL = 6.0, 0.7  # of a single pane
LETTERS = 11  # of the title, in an inch
LEAST_WRITTEN = 0.32  # inches; smaller cells hold no number
GAP_ACROSS, GAP_DOWN = 0.55, 0.62


@dataclass(frozen=True, eq=False)
class Pane:
    """One measure: `values` (layers, heads), NaN where there is nothing, from `low` to `high`.

    `digits`: behind the point, where the cells have room for numbers.
    """

    title: str
    values: FloatArray
    low: float
    high: float
    digits: int = 2


UNBOUNDED = ("entropy", "distance", "distance_variance")  # all other scores are shares


def score_pane(name: str, values: FloatArray) -> Pane | None:
    """A score of all heads: a share from 0 to 1, another from 0 to the largest; None of nothing."""
    if np.isnan(values).all():
        return None
    high = (float(np.nanmax(values)) or 1.0) if name in UNBOUNDED else 1.0
    most = f"{high:,.0f}" if high >= 100 else f"{high:.3g}"
    digits = 0 if high >= 1000 else 1 if name.startswith("distance") else 2
    return Pane(f"{name.replace('_', ' ')}, 0 to {most}", values, 0.0, high, digits)


def draw_panes(title: str, panes: Sequence[Pane], *, dpi: int, cmap: str) -> "Figure":
    """The panes as one figure, with a title above.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    with sheet([title], dpi=dpi, cmap=cmap) as (figure, fonts):
        shape = panes[0].values.shape
        alone = len(panes) == 1
        largest = ALONE_SIDE if alone else LARGEST_SIDE
        cell = min(ALONE_CELL if alone else LARGEST_CELL, largest / max(shape))
        height, width = (n * cell for n in shape)
        for i, pane in enumerate(panes):
            down, across = divmod(i, ACROSS)
            left, bottom = across * (width + GAP_ACROSS), -down * (height + GAP_DOWN)
            _draw_one(place(figure, left, bottom, width, height), pane, cell, cmap)
        across = min(ACROSS, len(panes)) * (width + GAP_ACROSS)
        said = fill(fonts.spell(title), max(40, int(across * LETTERS)))
        write_line(figure, height + 0.42, said)
    return figure


def _draw_one(axes: "Axes", pane: Pane, cell: float, cmap: str) -> None:
    import matplotlib

    values, low, high = pane.values, pane.low, pane.high
    axes.set_facecolor("#f0f0f0")
    axes.imshow(values, cmap=cmap, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    axes.set_title(pane.title, fontsize=9, loc="left")
    every = max(1, ceil(0.2 / cell))
    for axis, n, letter in ((axes.xaxis, values.shape[1], "H"), (axes.yaxis, values.shape[0], "L")):
        at = range(0, n, every)
        axis.set_ticks(list(at), [f"{letter}{i}" for i in at], fontsize=7)
    axes.tick_params(width=0.6, length=2)
    if cell < LEAST_WRITTEN:
        return
    colors = matplotlib.colormaps[cmap]
    for (layer, head), value in np.ndenumerate(values):
        if not isnan(value):
            color = colors((value - low) / (high - low), bytes=True)[:3]
            # what rounds to nothing has no sign
            said, ink = f"{value:z.{pane.digits}f}", "black" if is_light(color, 127.5) else "white"
            axes.text(head, layer, said, ha="center", va="center", fontsize=7, color=ink)
