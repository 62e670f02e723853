"""Pictures with a value for every head: layers down, heads across, one pane for each measure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, isnan
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.blocks import FloatArray
from attnviz.data.head import Head
from attnviz.renderers.colors import is_light
from attnviz.renderers.picture.canvas import Drawn, place
from attnviz.renderers.picture.fonts import Lettering
from attnviz.renderers.picture.frame import BOX, GREY, LEAST_LINE
from attnviz.renderers.picture.paint import EMPTY
from attnviz.renderers.picture.sheet import (
    SMALL_LETTERS,
    draw_bar,
    sheet,
    write_heading,
    write_line,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

ACROSS = 4  # panes in a row
LARGEST_SIDE, LARGEST_CELL = 2.4, 0.42  # inches
ALONE_SIDE, ALONE_CELL = 6.0, 0.7  # of a single pane
LEAST_WRITTEN = 0.32  # inches; smaller cells hold no number
BAR_APART, BAR = 0.07, 0.09
GAP_ACROSS, GAP_DOWN = 0.95, 0.62
LEAST_LABEL, LETTER = 0.12, 0.055
"""Inches from one name of a column to the next, and those that a letter takes."""


@dataclass(frozen=True, eq=False)
class Pane:
    """One measure: `values` (layers, heads), NaN where there is nothing, from `low` to `high`.

    `digits`: behind the point, where the cells have room for numbers. `boxed`: heads that are
    marked. `columns`: what stands across in place of heads.
    """

    title: str
    values: FloatArray
    low: float
    high: float
    digits: int = 2
    boxed: Collection[Head] = ()
    columns: Sequence[str] | None = None


UNITS = {"entropy": "nats", "distance": "tokens", "distance_variance": "tokens²"}
"""All other scores are shares."""


def axis_label(score: str) -> str:
    """The score's name and unit; a share of weight has none."""
    unit = UNITS.get(score)
    return score.replace("_", " ") + (f" ({unit})" if unit else "")


def score_pane(name: str, values: FloatArray, boxed: Collection[Head] = ()) -> Pane | None:
    """A score of all heads: a share from 0 to 1, another from 0 to the largest; None of nothing."""
    if np.isnan(values).all():
        return None
    high = (float(np.nanmax(values)) or 1.0) if name in UNITS else 1.0
    digits = 0 if high >= 1000 else 1 if name.startswith("distance") else 2
    return Pane(axis_label(name), values, 0.0, high, digits, boxed)


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
    with sheet([title, about, *below], dpi=dpi, cmap=cmap) as (figure, fonts):
        shape = panes[0].values.shape
        alone = len(panes) == 1
        largest = ALONE_SIDE if alone else LARGEST_SIDE
        cell = min(ALONE_CELL if alone else LARGEST_CELL, largest / max(shape))
        height, width = (n * cell for n in shape)
        bottom = 0.0
        for i, pane in enumerate(panes):
            down, across = divmod(i, ACROSS)
            left, bottom = across * (width + GAP_ACROSS), -down * (height + GAP_DOWN)
            image = _draw_one(place(figure, left, bottom, width, height), pane, cell, cmap, fonts)
            draw_bar(place(figure, left + width + BAR_APART, bottom, BAR, height), image)
        bottom -= longest_label(panes)
        line = min(ACROSS, len(panes)) * (width + GAP_ACROSS)
        write_heading(figure, height + 0.4, line, title, about, fonts)
        small = int(max(LEAST_LINE, line) * SMALL_LETTERS)
        said = "\n".join(fill(fonts.spell(each), small) for each in below)
        write_line(figure, bottom - 0.35, said, size=7.5, va="top", color=GREY)
    return Drawn(figure, fonts.notes)


def longest_label(panes: Sequence[Pane]) -> float:
    """Inches below the panes that names of columns take."""
    longest = max((len(name) for pane in panes for name in pane.columns or ()), default=0)
    return LETTER * longest


def _draw_one(axes: "Axes", pane: Pane, cell: float, cmap: str, fonts: Lettering) -> "AxesImage":
    from matplotlib.patches import Rectangle

    values = pane.values
    axes.set_facecolor(EMPTY)
    image = axes.imshow(
        *(values, cmap),
        vmin=pane.low,
        vmax=pane.high,
        aspect="auto",
        interpolation="nearest",
    )
    axes.set_title(pane.title, fontsize=9, loc="left")
    every = max(1, ceil(0.2 / cell))
    for axis, n, letter in ((axes.xaxis, values.shape[1], "H"), (axes.yaxis, values.shape[0], "L")):
        at = range(0, n, every)
        axis.set_ticks(list(at), [f"{letter}{i}" for i in at], fontsize=7)
    if pane.columns is not None:
        at = range(0, len(pane.columns), max(1, ceil(LEAST_LABEL / cell)))
        names = [fonts.spell(pane.columns[i]) for i in at]
        axes.xaxis.set_ticks(list(at), names, fontsize=7, rotation=90)
    axes.tick_params(width=0.6, length=2)
    for layer, head in pane.boxed:
        corner = head - 0.5, layer - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=BOX, lw=1.4, clip_on=False, zorder=3))
    if cell >= LEAST_WRITTEN:
        _write_numbers(axes, pane, image)
    return image


def _write_numbers(axes: "Axes", pane: Pane, image: "AxesImage") -> None:
    for (layer, head), value in np.ndenumerate(pane.values):
        if not isnan(value):
            color = image.to_rgba(np.array([value]), bytes=True)[0, :3]
            # what rounds to nothing has no sign
            said, ink = f"{value:z.{pane.digits}f}", "black" if is_light(color, 127.5) else "white"
            axes.text(head, layer, said, ha="center", va="center", fontsize=7, color=ink)
