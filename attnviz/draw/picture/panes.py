"""Pictures with a value for every head: layers down, heads across, one pane for each measure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isnan
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from attnviz.draw.labels import fenced, is_light
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.fonts import Lettering
from attnviz.draw.picture.frame import (
    BOX,
    GREY,
    LEAST_LINE,
    SMALL_LETTERS,
    draw_bar,
    sheet,
    write_heading,
    write_line,
)
from attnviz.draw.picture.paint import EMPTY
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.metrics import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.image import AxesImage


ACROSS = 4  # panes in a row
LARGEST_SIDE, LARGEST_CELL = 2.4, 0.42  # inches
ALONE_SIDE, ALONE_CELL = 6.0, 0.7  # of a single pane
LEAST_WRITTEN = 0.32  # inches; smaller cells hold no number
BAR_APART, BAR = 0.07, 0.09
GAP_ACROSS, GAP_DOWN = 0.95, 0.62
LEAST_LABEL, LETTER = 0.12, 0.06
"""Inches from one name of a column to the next, and those that a letter takes."""
LONGEST_LABEL = 24
"""Letters of a column's name; the rest is cut."""
NAMED_SIDE, LEAST_NAMED, LEAST_ROW, WIDEST = 9.0, 0.13, 0.25, 24.0
"""Of a pane with named columns, in inches: its width while its columns are wide enough to hold
their names, the least width of these, the least height of a row, and the largest width."""


@dataclass(frozen=True, eq=False)
class Pane:
    """One measure: `values` (layers, heads), NaN where there is nothing, from `low` to `high`.

    `digits`: behind the point, where the cells have room for numbers. `boxed`: heads that are
    marked. `columns`: the names of what stands across, where that is not heads alone.
    """

    title: str
    values: FloatArray
    low: float
    high: float
    digits: int = 2
    boxed: Collection[Head] = ()
    columns: Sequence[str] | None = None


def axis_label(score: Score) -> str:
    """The score's name and unit; a share of weight has none."""
    return score.label + (f" ({score.unit})" if score.unit else "")


def score_pane(score: Score, values: FloatArray, boxed: Collection[Head] = ()) -> Pane | None:
    """A score of all heads: a share from 0 to 1, another from 0 to the largest; None of nothing."""
    if np.isnan(values).all():
        return None
    high = (float(np.nanmax(values)) or 1.0) if score.unit else 1.0
    digits = 0 if high >= 1000 else 1 if score.of_distances else 2
    return Pane(axis_label(score), values, 0.0, high, digits, boxed)


def draw_panes(
    title: str,
    panes: Sequence[Pane],
    *,
    about: str = "",
    below: Sequence[str] = (),
    dpi: int,
    cmap: str,
) -> Drawn:
    """The panes as one figure.

    Args:
        title: stands above.
        panes: at least one, all of one shape.
        about: in small letters below the title.
        below: lines in small letters below the panes.
        dpi: pixels in an inch.
        cmap: the colours of the values.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    names = panes[0].columns or ()
    with sheet([title, about, *below, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        cell = _cell_of(panes)
        rows, columns = panes[0].values.shape
        width, height = columns * cell[0], rows * cell[1]
        bottom = 0.0
        for i, pane in enumerate(panes):
            down, across = divmod(i, ACROSS)
            left, bottom = across * (width + GAP_ACROSS), -down * (height + GAP_DOWN)
            image = _draw_one(place(figure, left, bottom, width, height), pane, cell, cmap, fonts)
            draw_bar(place(figure, left + width + BAR_APART, bottom, BAR, height), image)
        bottom -= max(map(_label_height, panes, [cell[0]] * len(panes)))
        line = min(ACROSS, len(panes)) * (width + GAP_ACROSS)
        write_heading(figure, height + 0.4, line, title, about, fonts)
        small = int(max(LEAST_LINE, line) * SMALL_LETTERS)
        said = "\n".join(fill(fonts.spell(each), small) for each in below)
        write_line(figure, bottom - 0.35, said, size=7.5, va="top", color=GREY)
    return Drawn(figure, fonts.notes)


def _cell_of(panes: Sequence[Pane]) -> tuple[float, float]:
    """The width and the height of a cell, in inches: a square, unless columns have names."""
    rows, columns = panes[0].values.shape
    if panes[0].columns is not None:
        least = min(LEAST_NAMED, WIDEST / columns)
        width = min(ALONE_CELL, max(NAMED_SIDE / columns, least))
        return width, min(max(width, LEAST_ROW), ALONE_SIDE / rows)
    alone = len(panes) == 1
    largest = ALONE_SIDE if alone else LARGEST_SIDE
    side = min(ALONE_CELL if alone else LARGEST_CELL, largest / max(rows, columns))
    return side, side


def _label_height(pane: Pane, width: float) -> float:
    """Inches below a pane that its columns' names take where they stand upright; else none."""
    longest = LETTER * max((len(_short(name)) for name in pane.columns or ()), default=0)
    return longest if longest > width else 0.0


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"


def _draw_one(
    axes: "Axes", pane: Pane, cell: tuple[float, float], cmap: str, fonts: Lettering
) -> "AxesImage":
    from matplotlib.patches import Rectangle

    values, (width, height) = pane.values, cell
    axes.set_facecolor(EMPTY)
    image = axes.imshow(
        *(values, cmap),
        vmin=pane.low,
        vmax=pane.high,
        aspect="auto",
        interpolation="nearest",
    )
    axes.set_title(pane.title, fontsize=9, loc="left")
    layers = range(0, values.shape[0], max(1, ceil(0.2 / height)))
    axes.yaxis.set_ticks(list(layers), [f"L{i}" for i in layers], fontsize=7)
    names = pane.columns or [f"H{i}" for i in range(values.shape[1])]
    upright = _label_height(pane, width) > 0
    at = range(0, len(names), max(1, ceil((LEAST_LABEL if upright else 0.2) / width)))
    said = [fenced(fonts.spell(_short(names[i]))) for i in at]
    axes.xaxis.set_ticks(list(at), said, fontsize=7, rotation=90 if upright else 0)
    axes.tick_params(width=0.6, length=2)
    for layer, head in pane.boxed:
        corner = head - 0.5, layer - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=BOX, lw=1.4, clip_on=False, zorder=3))
    if width >= LEAST_WRITTEN:
        _write_numbers(axes, pane, image)
    return image


def _write_numbers(axes: "Axes", pane: Pane, image: "AxesImage") -> None:
    for (layer, head), value in np.ndenumerate(pane.values):
        if not isnan(value):
            color = image.to_rgba(np.array([value]), bytes=True)[0, :3]
            # what rounds to nothing has no sign
            said, ink = f"{value:z.{pane.digits}f}", "black" if is_light(color, 127.5) else "white"
            axes.text(head, layer, said, ha="center", va="center", fontsize=7, color=ink)


# Layers as colours: one for each, in order, and a bar that names them.


DARKEST, LIGHTEST = 0.0, 0.92  # of the map; what is lighter vanishes on white
ALONE = 0.3  # the shade of a single layer
NAMED = 16  # layers that the bar names at most


def layer_scale(layers: Iterable[int], cmap: str) -> "ScalarMappable":
    """A colour for each layer from 0 up to the last; inside `drawing` only."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    known = set(layers)
    n = max(known) + 1
    steps = [DARKEST + (LIGHTEST - DARKEST) * i / max(1, n - 1) for i in range(n)]
    shades = steps if len(known) > 1 else [ALONE] * n
    colors = ListedColormap([matplotlib.colormaps[cmap](shade) for shade in shades])
    return ScalarMappable(BoundaryNorm([i - 0.5 for i in range(n + 1)], n), colors)


def layer_color(scale: "ScalarMappable", layer: int) -> tuple[float, ...]:
    """Red, green, blue and opacity from 0 to 1."""
    return tuple(map(float, scale.to_rgba(np.array([layer], float))[0]))


def draw_layers(axes: "Axes", scale: "ScalarMappable", layers: Iterable[int]) -> None:
    """Fill the axes with a bar of the layers' colours."""
    n = max(layers) + 1
    every = ceil(n / NAMED)
    at = list(range(0, n, every))
    bar = axes.figure.colorbar(scale, cax=axes, ticks=at)
    bar.ax.set_yticklabels([f"L{i}" for i in at])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7, width=0.6, length=0)
    bar.set_label("layer", fontsize=8)
    bar.outline.set_linewidth(0.6)
