"""How a picture of several axes begins and ends, and the lines of text beside them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING

from attnviz.renderers.direction import fenced
from attnviz.renderers.picture.canvas import (
    check_dpi,
    check_size,
    drawing,
    fit,
    new_figure,
    place,
    use_fonts,
)
from attnviz.renderers.picture.fonts import Lettering, lettering
from attnviz.renderers.picture.frame import GREY, LEAST_LINE
from attnviz.renderers.picture.paint import check_cmap, number_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

LETTERS, SMALL_LETTERS = 12, 15  # of a line of text, in an inch


@contextmanager
def sheet(texts: Iterable[str], *, dpi: int, cmap: str) -> Iterator[tuple["Figure", Lettering]]:
    """An empty figure, and letters for these texts; at the end it is as large as what is on it.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    check_dpi(dpi)
    with drawing():
        check_cmap(cmap)
        fonts = lettering(list(texts))
        use_fonts(fonts.families)
        figure = new_figure(dpi)
        yield figure, fonts
        fit(figure)
    check_size(figure, dpi)


def write_heading(
    figure: "Figure", bottom: float, width: float, title: str, about: str, fonts: Lettering
) -> None:
    """A title, and lines in small letters below it that say what was run, wrapped to `width`.

    `bottom` and `width` are inches.
    """
    line = max(LEAST_LINE, width)
    said = fill(fonts.spell(about), int(line * SMALL_LETTERS))
    write_line(figure, bottom, said, size=8, color=GREY)
    above = bottom + 0.05 + 0.15 * (said.count("\n") + 1) * bool(said)
    write_line(figure, above, fill(fonts.spell(title), int(line * LETTERS)))


def draw_bar(axes: "Axes", image: "AxesImage", label: str = "") -> None:
    """Fill narrow axes with the colour bar of an image."""
    bar = axes.figure.colorbar(image, cax=axes)
    number_ends(bar)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=6.5, width=0.6, length=2)
    bar.outline.set_linewidth(0.6)


def write_line(
    figure: "Figure",
    bottom: float,
    text: str,
    *,
    size: float = 10,
    va: str = "bottom",
    color: str = "black",
) -> None:
    """Text at the left edge of the figure, from `bottom` inches on up (or down, `va="top"`)."""
    axes = place(figure, 0, bottom, 0.01, 0.01)
    axes.set_axis_off()
    axes.text(0, 0, fenced(text), fontsize=size, va=va, color=color, parse_math=False)
