"""What a view or a format needs of a text too long to keep its patterns whole."""

from collections.abc import Sequence

from attnviz.commands.deliver import Look
from attnviz.console import Display
from attnviz.data.exhibit import Place
from attnviz.data.head import Head
from attnviz.runs.show import Needs
from attnviz.transforms.apply import ShowOptions
from attnviz.writers.formats import Format

MOST_LINKS = 64  # of a row; more of them are sooner kept whole


def needs_of(
    form: Format, look: Look, show: ShowOptions, display: Display, *, norms: bool = False
) -> Needs:
    """The links of each row, or blocks of a picture, or everything."""
    if form.picture:
        return _blocks_of_picture(look)
    if form.name == "txt" and look.view == "grid":
        return _blocks_of_grid(display)
    if form.name == "npz":
        return Needs(norms=norms)
    if form.name in ("json", "html") or look.view == "heatmap":
        return Needs()
    from attnviz.renderers.terminal.table import MOST_SHOWN

    links = show.top
    if links is None and show.least > 0:
        links = int(1 / show.least) + 1  # the weights of a row sum to 1 at most
    if links is None and form.name == "txt" and look.view != "text":
        links = MOST_SHOWN
    return Needs(links=links if links is not None and links <= MOST_LINKS else None)


def _blocks_of_picture(look: Look) -> Needs:
    from attnviz.renderers.picture import figure

    options = look.of_picture()
    if options.color_scale == "row":
        return Needs()

    def most(heads: Sequence[Head], tokens: tuple[int, int]) -> int:
        places = [Place(*head) for head in heads]
        return figure.most_cells(places, max(tokens), options)

    return Needs(cells=most)


def _blocks_of_grid(display: Display) -> Needs:
    from attnviz.renderers.terminal import grid

    def most(heads: Sequence[Head], tokens: tuple[int, int]) -> int:
        return grid.most_cells([Place(*head) for head in heads], max(tokens), display)

    return Needs(cells=most)
