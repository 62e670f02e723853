"""Pictures: one head as a heatmap, several as a mosaic, for PNG, SVG and PDF.

Queries are rows and keys are columns, unless `key-rows` asks for the other way round.
A link that the mask forbids is hatched grey, never the colour of zero.
"""

from collections.abc import Sequence

from attnviz.errors import UsageError
from attnviz.records.exhibit import Exhibit, Place
from attnviz.renderers.arrangement import grid_of
from attnviz.renderers.picture import grid, heatmap
from attnviz.renderers.picture.canvas import (
    Drawn,
    check_dpi,
    check_size,
    drawing,
    fit,
    use_fonts,
)
from attnviz.renderers.picture.paint import check_cmap
from attnviz.renderers.picture.words import PictureOptions, words_for


def most_cells(maps: Sequence[Place], tokens: int, options: PictureOptions) -> int:
    """Into how many cells a side the picture of these maps reduces each of them."""
    if len(maps) == 1:
        return heatmap.MOST_CELLS
    return grid.most_cells(grid_of(maps), tokens, options.dpi)


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
        draw_it = heatmap.draw_one if len(exhibit.maps) == 1 else grid.draw_mosaic
        figure = draw_it(exhibit, options, words)
        fit(figure)
    check_size(figure, options.dpi)
    return Drawn(figure, words.fonts.notes)
