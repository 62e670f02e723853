"""How a picture of several axes begins and ends, and the lines of text beside them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
from attnviz.renderers.picture.paint import check_cmap

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    axes.text(0, 0, text, fontsize=size, va=va, color=color, parse_math=False)
