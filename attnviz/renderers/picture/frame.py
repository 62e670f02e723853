"""What stands around the cells of a picture: title, axis labels, colour bar, hatched ground."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from attnviz.records.exhibit import Orient, Sides
from attnviz.renderers.direction import fenced
from attnviz.renderers.picture.canvas import place
from attnviz.renderers.picture.paint import EMPTY, HATCH, LINES, Scale, draw_color_bar
from attnviz.renderers.picture.ticks import POINTS
from attnviz.renderers.picture.words import Lettered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE, SUBTITLE = 11.5, 8.5
GREY, BOX = "#555555", "#e4572e"
LEAST_FOR_SUMS = 1.45  # inches
LEAST_LINE, BESIDE = 4.6, 1.1  # inches of a line of text; how far it may go beyond the cells
BAR_LEFT, BAR_WIDTH, BAR_LEAST, BAR_MOST = 0.18, 0.15, 1.1, 4.5  # inches
SWATCH = 0.15


def hatch_ground(axes: "Axes") -> None:
    """Hatch the whole ground; cells are drawn over it, and where there is none it shows."""
    from matplotlib.patches import Rectangle

    axes.set_facecolor(EMPTY)
    ground = Rectangle(
        (0, 0), 1, 1, transform=axes.transAxes, fill=False, hatch="////", ec=HATCH, lw=0, zorder=0
    )
    axes.add_patch(ground)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, pad=3)


def outline(axes: "Axes", panes: Sequence[Sequence[float]]) -> None:
    """A thin line around each pane (top, left, height, width), as its lightest cells are white."""
    from matplotlib.collections import LineCollection

    boxes = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)] for y, x, h, w in panes]
    lines = LineCollection(boxes, colors=LINES, linewidths=0.7, clip_on=False, zorder=2)
    axes.add_collection(lines, autolim=False)


def rule(axes: "Axes", shape: Sequence[int]) -> None:
    """Thin lines between (rows, columns) of cells, along which an eye finds a label."""
    axes.hlines(range(1, shape[0]), 0, shape[1], colors=LINES, linewidth=0.5, zorder=1.5)
    axes.vlines(range(1, shape[1]), 0, shape[0], colors=LINES, linewidth=0.5, zorder=1.5)


def write_titles(axes: "Axes", words: Lettered, width: float, above: float = 0.0) -> None:
    """Title and subtitle over the axes, `above` points higher, wrapped to about `width` inches."""
    room = max(LEAST_LINE, width + BESIDE) * POINTS
    letters, small = int(room / (TITLE * 0.55)), int(room / (SUBTITLE * 0.55))
    subtitle = fill(words.subtitle, small)
    title = fill(words.title, letters)
    height = (subtitle.count("\n") + 1) * SUBTITLE * 1.25 if subtitle else 0.0
    write(axes, subtitle, (0, 1), (0, above + 7), size=SUBTITLE, coords="axes fraction")
    up = above + 9 + height
    write(axes, title, (0, 1), (0, up), size=TITLE, coords="axes fraction", color="black")


def write(
    axes: "Axes",
    text: str,
    at: tuple[float, float],
    off: tuple[float, float],
    *,
    size: float,
    align: tuple[Literal["left", "center", "right"], Literal["bottom", "center"]] = (
        "left",
        "bottom",
    ),
    coords: Literal["data", "axes fraction"] = "data",
    color: str = GREY,
) -> None:
    """Write a text `off` points from a place on the axes; `$` in it is a letter."""
    if text:
        axes.annotate(
            fenced(text),
            at,
            xycoords=coords,
            xytext=off,
            textcoords="offset points",
            ha=align[0],
            va=align[1],
            fontsize=size,
            color=color,
            parse_math=False,
        )


def name_sides(
    axes: "Axes", orient: Orient, sides: Sides, *, sums: bool, block: Sequence[int] = (1, 1)
) -> None:
    """Say which side the queries are on; and that their weights sum to 1, where they do.

    A cell may stand for a `block` of (rows, columns) links; then this is said, too.
    """
    # On a picture of few rows there is no room for more than the word.
    height = axes.get_window_extent().height / axes.figure.dpi
    sums = sums and (orient == "key-rows" or height > LEAST_FOR_SUMS)
    one = "each row sums to 1" if orient == "query-rows" else "each column sums to 1"
    query = f"{sides.row} ({one})" if sums else sides.row
    across, down = (sides.column, query) if orient == "query-rows" else (query, sides.column)
    if max(block) > 1:
        across += f"\neach cell shows the strongest of {block[0]} × {block[1]} weights"
    axes.set_xlabel(across, fontsize=9, color=GREY)
    axes.set_ylabel(down, fontsize=9, color=GREY)


def add_key(
    figure: "Figure", scale: Scale, corner: Sequence[float], *, empty: str, blank: str = ""
) -> None:
    """The colour bar to the right of `corner` (right, bottom, height in inches).

    Below it a sample of empty cells with what they mean, and which cells hold no number.
    """
    right, bottom, height = corner
    below = (SWATCH + 0.25 if empty else 0.0) + (SWATCH if blank else 0.0)
    bar = min(BAR_MOST, max(BAR_LEAST, height - below))
    top = bottom + height
    draw_color_bar(place(figure, right + BAR_LEFT, top - bar, BAR_WIDTH, bar), scale)
    down = top - bar - 0.25
    if empty:
        down -= SWATCH
        sample = place(figure, right + BAR_LEFT, down, BAR_WIDTH, SWATCH)
        hatch_ground(sample)
        _say(sample, empty, (1, 0.5), (4, 0))
    if blank:
        _say(place(figure, right + BAR_LEFT, down - SWATCH - 0.05, BAR_WIDTH, SWATCH), blank)


def _say(
    axes: "Axes", text: str, at: tuple[float, float] = (0, 0.5), off: tuple[float, float] = (0, 0)
) -> None:
    """Small letters of the key."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.patch.set_visible(bool(off[0]))
    axes.spines[:].set_visible(False)
    write(axes, text, at, off, size=7, align=("left", "center"), coords="axes fraction")
