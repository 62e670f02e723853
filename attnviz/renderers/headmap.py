"""A picture for each score: layers down, heads across."""

from math import ceil, isnan
from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.capture import FloatArray
from attnviz.data.headscores import SCORES, HeadReport
from attnviz.renderers.canvas import (
    check_dpi,
    check_size,
    drawing,
    fit,
    new_figure,
    place,
    use_fonts,
)
from attnviz.renderers.fonts import lettering
from attnviz.renderers.headtable import heading
from attnviz.renderers.paint import check_cmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 4  # pictures in a row
LARGEST_SIDE, LARGEST_CELL = 2.4, 0.42  # inches
LEAST_WRITTEN = 0.32  # inches; smaller cells hold no number
UNBOUNDED = ("entropy", "distance")  # all other scores are shares
GAP_ACROSS, GAP_DOWN = 0.55, 0.62


def draw(report: HeadReport, *, dpi: int = 150, cmap: str = "viridis") -> "Figure":
    """The scores of all heads: shares from 0 to 1, others from 0 to the largest.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    check_dpi(dpi)
    with drawing():
        check_cmap(cmap)
        title = heading(report)
        fonts = lettering([title])
        use_fonts(fonts.families)
        figure = new_figure(dpi)
        maps = {name: values for name in SCORES if not np.isnan(values := _map(report, name)).all()}
        shape = next(iter(maps.values())).shape
        cell = min(LARGEST_CELL, LARGEST_SIDE / max(shape))
        height, width = (n * cell for n in shape)
        for i, (name, values) in enumerate(maps.items()):
            down, across = divmod(i, ACROSS)
            left, bottom = across * (width + GAP_ACROSS), -down * (height + GAP_DOWN)
            _draw_one(place(figure, left, bottom, width, height), name, values, cell, cmap)
        up = height + 0.42
        above = place(figure, 0, up, 0.01, 0.01)
        above.set_axis_off()
        above.text(0, 0, fonts.spell(title), fontsize=10, va="bottom", ha="left")
        fit(figure)
    check_size(figure, dpi)
    return figure


def _map(report: HeadReport, name: str) -> FloatArray:
    """(layers, heads), NaN where there is no head or nothing was measured."""
    heads = [found.head for found in report.heads]
    shape = max(h.layer for h in heads) + 1, max(h.head for h in heads) + 1
    values = np.full(shape, np.nan, np.float32)
    for found in report.heads:
        values[found.head] = found.scores[name].mean
    return values


def _draw_one(axes: "Axes", name: str, values: FloatArray, cell: float, cmap: str) -> None:
    import matplotlib

    high = (float(np.nanmax(values)) or 1.0) if name in UNBOUNDED else 1.0
    axes.set_facecolor("#f0f0f0")
    axes.imshow(values, cmap=cmap, vmin=0, vmax=high, aspect="auto", interpolation="nearest")
    axes.set_title(f"{name}, 0 to {high:.3g}", fontsize=9, loc="left")
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
            red, green, blue, _ = colors(value / high)
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            said = f"{value:.1f}" if name == "distance" else f"{value:.2f}"
            ink = "black" if bright else "white"
            axes.text(head, layer, said, ha="center", va="center", fontsize=7, color=ink)
