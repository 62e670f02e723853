"""One head as a heatmap, with its numbers if they fit; several as a mosaic.

A link that the mask forbids is hatched grey.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.labels import is_light
from attnviz.draw.matrix import (
    Cells,
    Grid,
    SideLabels,
    cells_of,
    farthest,
    grid_of,
    head_name,
    layer_name,
    sides_of,
    unit_of,
)
from attnviz.draw.picture.canvas import Drawn, place, renderer_of
from attnviz.draw.picture.frame import (
    LEAST_APART,
    POINTS,
    SUBTITLE,
    Ticks,
    add_key,
    name_sides,
    outline,
    paint_cells,
    rule,
    sheet,
    ticks_for,
    write,
    write_columns,
    write_rows,
    write_titles,
)
from attnviz.draw.picture.paint import PictureOptions, PictureWords, Scale, scale_of, words_for
from attnviz.draw.picture.paper import current_page
from attnviz.draw.titles import left_out
from attnviz.errors import UsageError
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, HeadPlace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LARGEST_CELL = 0.5  # inches; larger ones make letters small in a picture fitted to a column
LARGEST_SIDE = 9.0
# More cells than these are two pixels or less, and a strong link among them is invisible.
MOST_CELLS = 512
# The smallest cells with a number in them, as 0.48 and as .48.
ROOM_FOR_FOUR, ROOM_FOR_THREE = 0.42, 0.28
LEAST_WRITTEN = 0.005  # a weight below it rounds to 0.00; a score near zero is written


def draw(exhibit: Exhibit, options: PictureOptions | None = None) -> Drawn:
    """Draw the exhibit as a figure: a heatmap of its one map, or a mosaic of all.

    Raises:
        UsageError: no such colour map, a resolution that makes no usable picture, or nothing
            to draw.
    """
    options = options or PictureOptions()
    if not exhibit.queries or not exhibit.keys:
        raise UsageError("nothing is left to draw", "leave fewer tokens out")
    words = words_for(exhibit, options)
    with sheet(words.all, dpi=options.dpi, cmap=options.cmap) as (figure, fonts):
        draw_it = _draw_one if len(exhibit.maps) == 1 else _draw_mosaic
        if any(token.time for token in exhibit.capture.key_tokens):
            from attnviz.draw.picture.sound import draw_in_time, lies_in_time

            draw_it = draw_in_time if lies_in_time(exhibit, options) else draw_it
        draw_it(figure, exhibit, options, words.spelled(fonts))
    return Drawn(figure, fonts.notes)


def most_cells(maps: Sequence[HeadPlace], tokens: int, options: PictureOptions) -> int:
    """The cells a side to which a picture reduces each of these maps."""
    if len(maps) == 1:
        return MOST_CELLS
    return mosaic_cells(grid_of(maps), tokens, options.dpi)


def _draw_one(
    figure: "Figure", exhibit: Exhibit, options: PictureOptions, words: PictureWords
) -> None:
    by_row, orient = options.color_scale == "row", options.orient
    cells = cells_of(exhibit, exhibit.maps[0], MOST_CELLS, by_row=by_row, orient=orient)
    rows, columns = sides_of(exhibit, words.queries, words.keys, orient)
    height, width = (_cell(n, options.dpi) * n for n in cells.shape)
    axes = place(figure, 0, 0, width, height)
    scale = scale_of(exhibit, options, [cells.values])
    paint_cells(axes, scale.paint(cells.values), cells.shape, cells.block)
    outline(axes, [(0, 0, *cells.shape)])
    down, across = height / cells.shape[0], width / cells.shape[1]
    blank = False
    written = unit_of(exhibit, scale.high) == 1  # the colours' key suits small numbers better
    if written and min(down, across) >= ROOM_FOR_THREE and cells.weights is not None:
        rule(axes, cells.shape)
        blank = _write_numbers(axes, scale, cells.weights, cells, across)
    write_rows(axes, ticks_for(rows, down))
    write_columns(axes, ticks_for(columns, across), across)
    write_titles(axes, words, width)
    if current_page():  # its title goes into the file
        write(axes, words.panes[0][-1], (0, 1), (0, 5), size=SUBTITLE, coords="axes fraction")
    name_sides(axes, orient, exhibit.sides, sums=cells.sums, block=cells.block)
    empty = left_out(exhibit) if np.isnan(cells.values).any() else ""
    note = f"no number: under {LEAST_WRITTEN:g}" if blank else ""
    add_key(figure, scale, width, height, empty=empty, blank=note)


def _cell(n: int, dpi: int) -> float:
    """The side of one of `n` cells, in inches: whole pixels while there are enough."""
    pixels = min(LARGEST_CELL, LARGEST_SIDE / n) * dpi
    return (int(pixels) if pixels >= 1 else pixels) / dpi


def _write_numbers(
    axes: "Axes", scale: Scale, weights: FloatArray, cells: Cells, cell: float
) -> bool:
    """Write the weights in their cells, black or white; whether some are too small to write."""
    small = (weights < LEAST_WRITTEN) & (scale.low >= 0)
    size = min(9.0, cell * POINTS * (0.3 if cell >= ROOM_FOR_FOUR else 0.36))
    digits = 1 if scale.low < 0 else 2
    light = is_light(scale.paint(cells.values)[..., :3], 130)
    for row, column in np.argwhere(~np.isnan(weights) & ~small):
        number = f"{weights[row, column]:z.{digits}f}"
        axes.text(
            column + 0.5,
            row + 0.5,
            number if cell >= ROOM_FOR_FOUR else number.replace("0.", "."),
            ha="center",
            va="center_baseline",
            fontsize=size,
            color="black" if light[row, column] else "white",
        )
    return bool(small.any())


# Many heads as one picture: one array of colours, drawn at once, however many heads.

LARGEST_MOSAIC = 14.0  # inches, for all panes of a row or a column
LARGEST_PANE, LEAST_PANE = 2.6, 0.4
LABELLED_PANE = 4.0  # a pane may be this large if each token then gets its label
LARGEST_SMALL = 0.4
MOST_ACROSS = 2400  # along a side of the whole picture
MOST_TITLED = 36  # more panes than these are named only by row and column
PANE_TITLE, LAYER_NAME = 8.0, 34.0  # points: a title's height, a layer name's width
LEAST_LABELLED = LEAST_APART / 5  # inches: every fifth token has a label, or none has


@dataclass(frozen=True)
class Mosaic:
    """The measures of the one array: all in cells, except `cell` (height, width) in inches."""

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


def _draw_mosaic(
    figure: "Figure", exhibit: Exhibit, options: PictureOptions, words: PictureWords
) -> None:
    grid, by_row = grid_of(exhibit.maps), options.color_scale == "row"
    most = mosaic_cells(grid, max(len(exhibit.queries), len(exhibit.keys)), options.dpi)
    cells = [
        cells_of(exhibit, head_map, most, by_row=by_row, orient=options.orient)
        for head_map in exhibit.maps
    ]
    panes = [each.values for each in cells]
    if exhibit.capture.signed:  # heads' scores differ by powers of ten
        panes = [pane / np.float32(farthest([pane])) for pane in panes]
    scale = scale_of(exhibit, options, panes)
    titled = len(panes) <= MOST_TITLED
    mosaic = _measure(exhibit, grid, panes[0].shape, options.dpi, titled)
    height, width = (n * cell for n, cell in zip(mosaic.shape, mosaic.cell, strict=True))
    axes = place(figure, 0, 0, width, height)
    slots = [grid.slot(head_map) for head_map in exhibit.maps]
    paint_cells(axes, assemble(mosaic, scale, slots, panes), mosaic.shape)
    outline(axes, [(*mosaic.corner(slot), *mosaic.pane) for slot in slots])
    _write_tokens(axes, mosaic, *sides_of(exhibit, words.queries, words.keys, options.orient))
    if titled:
        _write_pane_titles(axes, mosaic, slots, words)
    else:
        _write_names(axes, mosaic)
    sums = all(each.sums for each in cells)
    name_sides(axes, options.orient, exhibit.sides, sums=sums, block=cells[0].block)
    write_titles(axes, words, width, above=PANE_TITLE + 7)
    empty = left_out(exhibit) if any(np.isnan(pane).any() for pane in panes) else ""
    add_key(figure, scale, width, height, empty=empty)


def assemble(
    mosaic: Mosaic, scale: Scale, slots: Sequence[tuple[int, int]], panes: Sequence[FloatArray]
) -> NDArray[np.uint8]:
    """The one array, (rows, columns, 4): white between the panes and where there is none."""
    painted = np.full((*mosaic.shape, 4), 255, np.uint8)
    for slot, pane in zip(slots, panes, strict=True):
        top, left = mosaic.corner(slot)
        painted[top : top + pane.shape[0], left : left + pane.shape[1]] = scale.paint(pane)
    return painted


def mosaic_cells(grid: Grid, tokens: int, dpi: int) -> int:
    """The cells a side of each reduced map, so that none is smaller than a pixel."""
    fitting = MOST_ACROSS // max(len(grid.layers), len(grid.heads), 1)
    return max(8, min(fitting, int(_pane_inches(grid, tokens, dpi) * dpi)))


def _pane_inches(grid: Grid, tokens: int, dpi: int) -> float:
    """The side of a pane: smaller if there are many, larger if labels then fit."""
    most = max(len(grid.layers), len(grid.heads), 1)
    usual = max(LEAST_PANE, min(LARGEST_PANE, 0.86 * LARGEST_MOSAIC / most))
    labelled = tokens * math.ceil(LEAST_APART * dpi) / dpi + 1e-6  # cells are whole pixels
    fits = labelled <= min(LABELLED_PANE, 0.93 * LARGEST_MOSAIC / most)
    return max(usual, labelled) if fits else usual


def _measure(exhibit: Exhibit, grid: Grid, pane: tuple[int, ...], dpi: int, titled: bool) -> Mosaic:
    size = _pane_inches(grid, max(len(exhibit.queries), len(exhibit.keys)), dpi)
    down, across = (max(1, int(min(LARGEST_SMALL, size / n) * dpi)) / dpi for n in pane)
    room = (PANE_TITLE + 7) / POINTS if titled else 0.09
    gap = max(1, -int(-room // down)), max(1, -int(-0.09 // across))
    return Mosaic(grid, (pane[0], pane[1]), gap, (down, across))


def _write_tokens(axes: "Axes", mosaic: Mosaic, rows: SideLabels, columns: SideLabels) -> None:
    """Write token labels at the left of every layer and below every head, if they are legible."""
    axes.set_xticks([])
    axes.set_yticks([])
    if len(rows.positions) == mosaic.pane[0] and mosaic.cell[0] >= LEAST_LABELLED:
        tops = [mosaic.corner((n, 0))[0] for n in range(len(mosaic.grid.layers))]
        write_rows(axes, _repeated(ticks_for(rows, mosaic.cell[0]), tops))
    if len(columns.positions) == mosaic.pane[1] and mosaic.cell[1] >= LEAST_LABELLED:
        lefts = [mosaic.corner((0, n))[1] for n in range(len(mosaic.grid.heads))]
        ticks = _repeated(ticks_for(columns, mosaic.cell[1]), lefts)
        write_columns(axes, ticks, mosaic.cell[1])


def _repeated(ticks: Ticks, starts: Sequence[int]) -> Ticks:
    places = tuple(start + place for start in starts for place in ticks.places)
    return Ticks(places, ticks.labels * len(starts), min(ticks.size, 8.0))


def _write_pane_titles(
    axes: "Axes", mosaic: Mosaic, slots: Sequence[tuple[int, int]], words: PictureWords
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
    """Write names of many panes: `L1` at the left of each row and `H2` over each column."""
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
