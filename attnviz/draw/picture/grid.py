"""Many heads as one picture: one array of colours, drawn by one image, however many heads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.matrix import Grid, cells_of, farthest, grid_of, head_name, layer_name
from attnviz.draw.picture.canvas import new_figure, place, renderer_of
from attnviz.draw.picture.frame import (
    LEAST_APART,
    POINTS,
    Named,
    Ticks,
    add_key,
    hatch_ground,
    name_sides,
    outline,
    ticks_for,
    write,
    write_columns,
    write_rows,
    write_titles,
)
from attnviz.draw.picture.paint import Lettered, PictureOptions, Scale, scale_of
from attnviz.draw.titles import left_out
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_SIDE = 14.0  # inches, for all panes of a row or a column
LARGEST_PANE, LEAST_PANE = 2.6, 0.4
LABELLED_PANE = 4.0  # a pane may be as large as this where each token then gets its label
LARGEST_CELL = 0.4
MOST_CELLS = 2400  # along a side of the whole picture
MOST_TITLED = 36  # more panes than these are named by row and column alone
PANE_TITLE, LAYER_NAME = 8.0, 34.0  # points: a title's height, a layer name's width
LEAST_LABELLED = LEAST_APART / 5  # inches: every fifth token has a label, or none has


@dataclass(frozen=True)
class Mosaic:
    """The measures of the one array: all in cells, but `cell` (height, width) in inches."""

    grid: Grid
    pane: tuple[int, int]
    gap: tuple[int, int]
    cell: tuple[float, float]

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = len(self.grid.layers), len(self.grid.heads)
        down = rows * (self.pane[0] + self.gap[0]) - self.gap[0]
        across = columns * (self.pane[1] + self.gap[1]) - self.gap[1]
        return down, across

    def corner(self, slot: tuple[int, int]) -> tuple[int, int]:
        """The first row and column of the pane in this slot."""
        return slot[0] * (self.pane[0] + self.gap[0]), slot[1] * (self.pane[1] + self.gap[1])


def draw_mosaic(exhibit: Exhibit, options: PictureOptions, words: Lettered) -> "Figure":
    """All maps of the exhibit as one figure; what is on it may still lie outside its edges."""
    grid = grid_of(exhibit.maps)
    rows, columns = (words.queries, exhibit.queries), (words.keys, exhibit.keys)
    if options.orient == "key-rows":
        rows, columns = columns, rows
    tokens = max(len(rows[1]), len(columns[1]))
    size = _pane_inches(grid, tokens, options.dpi)
    most, by_row = most_cells(grid, tokens, options.dpi), options.color_scale == "row"
    made = [
        cells_of(exhibit, head_map, most, by_row=by_row, orient=options.orient)
        for head_map in exhibit.maps
    ]
    panes = [cells.values for cells in made]
    titled = len(panes) <= MOST_TITLED
    mosaic = _measure(grid, panes[0].shape, size, options.dpi, titled)
    if exhibit.capture.signed:  # heads' scores differ by powers of ten
        panes = [pane / np.float32(farthest([pane])) for pane in panes]
    scale = scale_of(exhibit, options, panes)
    figure = new_figure(options.dpi)
    height, width = (n * cell for n, cell in zip(mosaic.shape, mosaic.cell, strict=True))
    axes = place(figure, 0, 0, width, height)
    hatch_ground(axes)
    slots = [grid.slot(head_map) for head_map in exhibit.maps]
    axes.imshow(
        assemble(mosaic, scale, slots, panes),
        extent=(0, mosaic.shape[1], mosaic.shape[0], 0),
        interpolation="nearest",
        aspect="auto",
        zorder=1,
    )
    outline(axes, [(*mosaic.corner(slot), *mosaic.pane) for slot in slots])
    _write_tokens(axes, mosaic, rows, columns)
    if titled:
        _write_titles(axes, mosaic, slots, words)
    else:
        _write_names(axes, mosaic)
    sums = all(cells.sums for cells in made)
    name_sides(axes, options.orient, exhibit.sides, sums=sums, block=made[0].block)
    write_titles(axes, words, width, above=PANE_TITLE + 7)
    empty = left_out(exhibit) if any(np.isnan(pane).any() for pane in panes) else ""
    add_key(figure, scale, (width, 0.0, height), empty=empty)
    return figure


def assemble(
    mosaic: Mosaic, scale: Scale, slots: Sequence[tuple[int, int]], panes: Sequence[FloatArray]
) -> NDArray[np.uint8]:
    """The one array, (rows, columns, 4): white between the panes and where there is none."""
    image = np.full((*mosaic.shape, 4), 255, np.uint8)
    for slot, pane in zip(slots, panes, strict=True):
        top, left = mosaic.corner(slot)
        image[top : top + pane.shape[0], left : left + pane.shape[1]] = scale.paint(pane)
    return image


def most_cells(grid: Grid, tokens: int, dpi: int) -> int:
    """The cells a side of each reduced map, so that none is smaller than a pixel."""
    fitting = MOST_CELLS // max(len(grid.layers), len(grid.heads), 1)
    return max(8, min(fitting, int(_pane_inches(grid, tokens, dpi) * dpi)))


def _pane_inches(grid: Grid, tokens: int, dpi: int) -> float:
    """How large a pane is: smaller where there are many, larger where labels then fit."""
    most = max(len(grid.layers), len(grid.heads), 1)
    usual = max(LEAST_PANE, min(LARGEST_PANE, 0.86 * LARGEST_SIDE / most))
    labelled = tokens * math.ceil(LEAST_APART * dpi) / dpi + 1e-6  # cells are whole pixels
    fits = labelled <= min(LABELLED_PANE, 0.93 * LARGEST_SIDE / most)
    return max(usual, labelled) if fits else usual


def _measure(grid: Grid, pane: tuple[int, ...], size: float, dpi: int, titled: bool) -> Mosaic:
    down, across = (max(1, int(min(LARGEST_CELL, size / n) * dpi)) / dpi for n in pane)
    room = (PANE_TITLE + 7) / POINTS if titled else 0.09
    gap = max(1, -int(-room // down)), max(1, -int(-0.09 // across))
    return Mosaic(grid, (pane[0], pane[1]), gap, (down, across))


def _write_tokens(axes: "Axes", mosaic: Mosaic, rows: Named, columns: Named) -> None:
    """Token labels at the left of every layer and below every head, where they can be read."""
    axes.set_xticks([])
    axes.set_yticks([])
    if len(rows[1]) == mosaic.pane[0] and mosaic.cell[0] >= LEAST_LABELLED:
        tops = [mosaic.corner((n, 0))[0] for n in range(len(mosaic.grid.layers))]
        write_rows(axes, _repeated(ticks_for(rows, mosaic.cell[0]), tops))
    if len(columns[1]) == mosaic.pane[1] and mosaic.cell[1] >= LEAST_LABELLED:
        lefts = [mosaic.corner((0, n))[1] for n in range(len(mosaic.grid.heads))]
        ticks = _repeated(ticks_for(columns, mosaic.cell[1]), lefts)
        write_columns(axes, ticks, mosaic.cell[1])


def _repeated(ticks: Ticks, starts: Sequence[int]) -> Ticks:
    places = tuple(start + place for start in starts for place in ticks.places)
    return Ticks(places, ticks.labels * len(starts), min(ticks.size, 8.0))


def _write_titles(
    axes: "Axes", mosaic: Mosaic, slots: Sequence[tuple[int, int]], words: Lettered
) -> None:
    from matplotlib.font_manager import FontProperties

    figure = axes.get_figure(root=True)
    assert figure is not None  # the axes were placed on it
    renderer, font = renderer_of(figure), FontProperties(size=PANE_TITLE)
    room = mosaic.pane[1] * mosaic.cell[1] * figure.dpi

    def width(title: str) -> float:
        return renderer.get_text_width_height_descent(title, font, False)[0]

    for slot, titles in zip(slots, words.panes, strict=True):
        top, left = mosaic.corner(slot)
        title = next((title for title in titles if width(title) <= room), titles[-1])
        write(axes, title, (left, top), (0, 3), size=PANE_TITLE)


def _write_names(axes: "Axes", mosaic: Mosaic) -> None:
    """Names of many panes: `L1` at the left of each row and `H2` over each column."""
    for n, head in enumerate(mosaic.grid.heads):
        at = mosaic.corner((0, n))[1] + mosaic.pane[1] / 2, 0.0
        write(axes, head_name(head), at, (0, 3), size=PANE_TITLE, align=("center", "bottom"))
    figure = axes.get_figure(root=True)
    assert figure is not None  # the axes were placed on it
    tokens = axes.yaxis.get_tightbbox(renderer_of(figure), for_layout_only=True)
    out = 14 + (tokens.width / figure.dpi * POINTS if tokens else 0.0)
    for n, layer in enumerate(mosaic.grid.layers):
        at = 0.0, mosaic.corner((n, 0))[0] + mosaic.pane[0] / 2
        write(axes, layer_name(layer), at, (-out, 0), size=PANE_TITLE, align=("right", "center"))
    axes.yaxis.labelpad += LAYER_NAME
