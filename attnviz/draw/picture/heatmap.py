"""One head as a heatmap, with its numbers where they fit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnviz.draw.labels import is_light
from attnviz.draw.matrix import Cells, cells_of, grid_of, shown
from attnviz.draw.picture import grid as picture_grid
from attnviz.draw.picture.canvas import (
    Drawn,
    check_dpi,
    check_size,
    drawing,
    fit,
    new_figure,
    place,
    use_fonts,
)
from attnviz.draw.picture.frame import (
    POINTS,
    add_key,
    hatch_ground,
    name_sides,
    outline,
    rule,
    ticks_for,
    write_columns,
    write_rows,
    write_titles,
)
from attnviz.draw.picture.paint import (
    Lettered,
    PictureOptions,
    Scale,
    check_cmap,
    scale_of,
    words_for,
)
from attnviz.draw.titles import left_out
from attnviz.errors import UsageError
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, Place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LARGEST_CELL = 0.5  # inches; larger ones make letters small where the picture has to fit a column
LARGEST_SIDE = 9.0
# More cells than these are two pixels or less, and a strong link among them is lost to the eye.
MOST_CELLS = 512
# The smallest cells with a number in them, as 0.48 and as .48.
ROOM_FOR_FOUR, ROOM_FOR_THREE = 0.42, 0.28
LEAST_WRITTEN = 0.005  # a weight below it rounds to 0.00; a score near zero is written


def draw_one(exhibit: Exhibit, options: PictureOptions, words: Lettered) -> "Figure":
    """The exhibit's only map as a figure; everything on it may still lie outside its edges."""
    by_row, orient = options.color_scale == "row", options.orient
    cells = cells_of(exhibit, exhibit.maps[0], MOST_CELLS, by_row=by_row, orient=orient)
    queries, keys = (words.queries, exhibit.queries), (words.keys, exhibit.keys)
    rows, columns = (keys, queries) if orient == "key-rows" else (queries, keys)
    height, width = (_cell(n, options.dpi) * n for n in cells.shape)
    figure = new_figure(options.dpi)
    axes = place(figure, 0, 0, width, height)
    hatch_ground(axes)
    scale = scale_of(exhibit, options, [cells.values])
    down, across = cells.block
    axes.imshow(
        scale.paint(cells.values),
        extent=(0, across * cells.values.shape[1], down * cells.values.shape[0], 0),
        interpolation="nearest",
        aspect="auto",
        zorder=1,
    )
    axes.set_xlim(0, cells.shape[1])
    axes.set_ylim(cells.shape[0], 0)
    outline(axes, [(0, 0, *cells.shape)])
    cell = height / cells.shape[0], width / cells.shape[1]
    blank = False
    if min(cell) >= ROOM_FOR_THREE:
        rule(axes, cells.shape)
        weights = shown(exhibit, exhibit.maps[0])
        weights = weights.T if orient == "key-rows" else weights
        blank = _write_numbers(axes, scale, weights, cells, cell[1])
    write_rows(axes, ticks_for(rows, cell[0]))
    write_columns(axes, ticks_for(columns, cell[1]), cell[1])
    name_sides(axes, orient, exhibit.sides, sums=cells.sums, block=cells.block)
    write_titles(axes, words, width)
    empty = left_out(exhibit) if np.isnan(cells.values).any() else ""
    said = f"no number: under {LEAST_WRITTEN:g}" if blank else ""
    add_key(figure, scale, (width, 0.0, height), empty=empty, blank=said)
    return figure


def _cell(n: int, dpi: int) -> float:
    """How wide or high one of `n` cells is, in inches: whole pixels while there are enough."""
    pixels = min(LARGEST_CELL, LARGEST_SIDE / n) * dpi
    return (int(pixels) if pixels >= 1 else pixels) / dpi


def _write_numbers(
    axes: "Axes", scale: Scale, weights: FloatArray, cells: Cells, cell: float
) -> bool:
    """The weights themselves in the cells, black or white, whichever can be read.

    Returns:
        Whether some are too small to be written.
    """
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


# One head as a heatmap, several as a mosaic; a link that the mask forbids is hatched grey.


def most_cells(maps: Sequence[Place], tokens: int, options: PictureOptions) -> int:
    """The cells a side to which a picture reduces each of these maps."""
    if len(maps) == 1:
        return MOST_CELLS
    return picture_grid.most_cells(grid_of(maps), tokens, options.dpi)


def draw(exhibit: Exhibit, options: PictureOptions | None = None) -> Drawn:
    """The exhibit as a figure: a heatmap of its one map, or a mosaic of them all.

    Raises:
        UsageError: no such colour map, a resolution that makes no usable picture, or nothing
            to draw.
    """
    options = options or PictureOptions()
    if not exhibit.queries or not exhibit.keys:
        raise UsageError("nothing is left to draw", "leave fewer tokens out")
    check_dpi(options.dpi)
    with drawing():
        check_cmap(options.cmap)
        words = words_for(exhibit, options)
        use_fonts(words.fonts.families)
        draw_it = draw_one if len(exhibit.maps) == 1 else picture_grid.draw_mosaic
        figure = draw_it(exhibit, options, words)
        fit(figure)
    check_size(figure, options.dpi)
    return Drawn(figure, words.fonts.notes)
