"""Pictures: one head as a heatmap, several as a mosaic, for PNG, SVG and PDF.

Queries are rows and keys are columns, unless `key-rows` asks for the other way round.
A link that the mask forbids is hatched grey, never the colour of zero.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.data.exhibit import Exhibit
from attnviz.renderers.canvas import check_dpi, check_size, drawing, figure_bytes, fit, use_fonts
from attnviz.renderers.mosaic import draw_mosaic
from attnviz.renderers.onehead import draw_one
from attnviz.renderers.paint import check_cmap
from attnviz.renderers.wording import PictureOptions, words_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawn", "PictureOptions", "draw", "figure_bytes"]


@dataclass(frozen=True)
class Drawn:
    """A figure, and what is to be said about it on stderr: one sentence each."""

    figure: "Figure"
    notes: tuple[str, ...] = ()


def draw(exhibit: Exhibit, options: PictureOptions | None = None) -> Drawn:
    """The exhibit as a figure: a heatmap of its one map, or a mosaic of them all.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    options = options or PictureOptions()
    check_dpi(options.dpi)
    with drawing():
        check_cmap(options.cmap)
        words = words_for(exhibit, options)
        use_fonts(words.fonts.families)
        draw_it = draw_one if len(exhibit.maps) == 1 else draw_mosaic
        figure = draw_it(exhibit, options, words)
        fit(figure)
    check_size(figure, options.dpi)
    note = words.fonts.note
    return Drawn(figure, (note,) if note else ())
