"""The frame of a picture's cells: title, axis labels, colour bar, hatched ground."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.labels import fenced
from attnviz.draw.matrix import SideLabels
from attnviz.draw.picture.canvas import (
    Lettering,
    check_dpi,
    check_size,
    drawing,
    fit,
    new_figure,
    place,
    use_fonts,
)
from attnviz.draw.picture.paint import (
    BAR_LABEL,
    EMPTY,
    HATCH,
    LINES,
    PictureWords,
    Scale,
    check_cmap,
    draw_color_bar,
)
from attnviz.draw.picture.paper import told_apart
from attnviz.draw.terminal.cells import cut, widest
from attnviz.records.exhibit import Orient, Sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TITLE, SUBTITLE = 11.5, 8.5
GREY, BOX = "#555555", "#e4572e"
LEAST_FOR_SUMS = 1.45  # inches
LEAST_LINE, BESIDE = 4.6, 1.1  # inches of a line of text, and of its part beyond the cells
BAR_LEFT, BAR_WIDTH, BAR_LEAST, BAR_MOST = 0.18, 0.15, 1.1, 4.5  # inches
SWATCH = 0.15


def hatch_ground(axes: "Axes") -> None:
    """Hatch the whole ground, over which cells are drawn; it is visible between them."""
    from matplotlib.patches import Rectangle

    axes.set_facecolor(EMPTY)
    ground = Rectangle(
        (0, 0), 1, 1, transform=axes.transAxes, fill=False, hatch="////", ec=HATCH, lw=0, zorder=0
    )
    axes.add_patch(ground)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, pad=3)


def paint_cells(
    axes: "Axes", colors: NDArray[np.uint8], shape: Sequence[int], block: Sequence[int] = (1, 1)
) -> None:
    """Draw colours (rows, columns, 4) over hatched ground of this `shape` (rows, columns).

    A cell stands for a `block`; the last block may reach beyond the ground.
    """
    hatch_ground(axes)
    rows, columns = np.multiply(colors.shape[:2], block)
    axes.imshow(
        colors, extent=(0, columns, rows, 0), interpolation="nearest", aspect="auto", zorder=1
    )
    axes.set_xlim(0, shape[1])
    axes.set_ylim(shape[0], 0)


def outline(axes: "Axes", panes: Sequence[Sequence[float]]) -> None:
    """Draw a thin line around each pane (top, left, height, width), as cells may be white."""
    from matplotlib.collections import LineCollection

    boxes = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)] for y, x, h, w in panes]
    lines = LineCollection(boxes, colors=LINES, linewidths=0.7, clip_on=False, zorder=2)
    axes.add_collection(lines, autolim=False)


def rule(axes: "Axes", shape: Sequence[int]) -> None:
    """Draw thin lines between rows and columns of cells, which lead to their labels."""
    axes.hlines(range(1, shape[0]), 0, shape[1], colors=LINES, linewidth=0.5, zorder=1.5)
    axes.vlines(range(1, shape[1]), 0, shape[0], colors=LINES, linewidth=0.5, zorder=1.5)


def write_titles(axes: "Axes", words: PictureWords, width: float, above: float = 0.0) -> None:
    """Write title and subtitle `above` points over the axes, wrapped to about `width` inches."""
    room = max(LEAST_LINE, width + BESIDE) * POINTS
    letters, small = int(room / (TITLE * 0.55)), int(room / (SUBTITLE * 0.55))
    subtitle = fill(words.subtitle, small)
    title = fill(words.title, letters)
    if told_apart(title, subtitle):
        return
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
    """Write a text `off` points from a place on the axes; `$` in it is an ordinary letter."""
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
    axes: "Axes", orient: Orient, sides: Sides, *, sums: bool, block: Sequence[int]
) -> None:
    """Label the side of the queries, and say that their weights sum to 1, if they do.

    If a cell stands for a `block` of (rows, columns) links, the label says so.
    """
    # On a picture of few rows there is room only for the word.
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
    figure: "Figure", scale: Scale, left: float, top: float, *, empty: str, blank: str = ""
) -> None:
    """Draw the colour bar downwards from `left` and `top` (inches), with a legend below it."""
    below = (SWATCH + 0.25 if empty else 0.0) + (SWATCH if blank else 0.0)
    bar = min(BAR_MOST, max(BAR_LEAST, top - below))
    label = fill(scale.label, int(bar * POINTS / (BAR_LABEL * 0.6)))
    axes = place(figure, left + BAR_LEFT, top - bar, BAR_WIDTH, bar)
    draw_color_bar(axes, replace(scale, label=label))
    down = top - bar - 0.25
    if empty:
        down -= SWATCH
        sample = place(figure, left + BAR_LEFT, down, BAR_WIDTH, SWATCH)
        hatch_ground(sample)
        _say(sample, empty, (1, 0.5), (4, 0))
    if blank:
        _say(place(figure, left + BAR_LEFT, down - SWATCH - 0.05, BAR_WIDTH, SWATCH), blank)


def _say(
    axes: "Axes", text: str, at: tuple[float, float] = (0, 0.5), off: tuple[float, float] = (0, 0)
) -> None:
    """Write small letters of the key."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.patch.set_visible(bool(off[0]))
    axes.spines[:].set_visible(False)
    write(axes, text, at, off, size=7, align=("left", "center"), coords="axes fraction")


# Token labels along the sides of a picture: as large as fits, thinned if they are too many.

POINTS = 72.0  # per inch
SMALLEST, LARGEST = 6.5, 10.0
LONGEST = 22  # cells of a label
LEAST_APART = SMALLEST * 1.1 / POINTS  # inches between labels that do not touch
_LETTER = 0.62  # of the font size: an average letter's width


@dataclass(frozen=True)
class Ticks:
    """Labels and their places, counted in tokens along the side; `size` in points."""

    places: tuple[float, ...]
    labels: tuple[str, ...]
    size: float

    @property
    def length(self) -> float:
        """The approximate length of the longest label, in inches."""
        return widest(self.labels) * _LETTER * self.size / POINTS


def ticks_for(side: SideLabels, cell: float) -> Ticks:
    """Labels for the tokens along a side, which are `cell` inches apart.

    Without room for each, every second, fifth, tenth ... keeps its label, with its index in
    front: `120 the`.
    """
    labels, positions = side.labels, side.positions
    size = min(LARGEST, max(SMALLEST, 0.72 * cell * POINTS))
    least = max(1.0, LEAST_APART / cell)  # the next of 1, 2, 5, 10, 20, 50, ...
    scale = 10 ** math.floor(math.log10(least))
    step = next(scale * n for n in (1, 2, 5, 10) if scale * n >= least)
    places = range(0, len(positions), step)
    shown = [labels[positions[place]] for place in places]
    if step > 1:
        bare = (re.sub("(?<=.)#[0-9]+$", "", label) for label in shown)
        shown = [f"{positions[place]} {label}" for place, label in zip(places, bare, strict=True)]
    cut_labels = tuple(fenced(cut(label, LONGEST)) for label in shown)
    return Ticks(tuple(place + 0.5 for place in places), cut_labels, size)


def write_rows(axes: "Axes", ticks: Ticks) -> None:
    axes.set_yticks(ticks.places, ticks.labels, fontsize=ticks.size, parse_math=False)


def write_columns(axes: "Axes", ticks: Ticks, cell: float) -> None:
    """Write the labels below: level if they fit, slanted if there is room, else upright."""
    if ticks.length < 0.92 * cell:
        turned: dict[str, object] = {}
    elif cell > 0.24:
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    else:
        turned = {"rotation": 90}
    axes.set_xticks(
        ticks.places,
        ticks.labels,
        fontsize=ticks.size,
        parse_math=False,
        **turned,  # type: ignore[arg-type]
    )


# The beginning and end of a picture of several axes, and their lines of text.

LETTERS, SMALL_LETTERS = 12, 15  # of a line of text, in an inch


@contextmanager
def sheet(texts: Iterable[str], *, dpi: int, cmap: str) -> Iterator[tuple["Figure", Lettering]]:
    """An empty figure, and letters for these texts; at the end it is fitted to its content."""
    check_dpi(dpi)
    with drawing():
        check_cmap(cmap)
        fonts = use_fonts(texts)
        figure = new_figure(dpi)
        yield figure, fonts
        fit(figure)
    check_size(figure, dpi)


def write_heading(
    figure: "Figure", bottom: float, width: float, title: str, about: str, fonts: Lettering
) -> None:
    """Write a title `bottom` inches high, and small lines below it about the run."""
    line = max(LEAST_LINE, width)
    lines = fill(fonts.spell(about), int(line * SMALL_LETTERS))
    write_line(figure, bottom, lines, size=8, color=GREY)
    above = bottom + 0.05 + 0.15 * (lines.count("\n") + 1) * bool(lines)
    write_line(figure, above, fill(fonts.spell(title), int(line * LETTERS)))


def write_below(
    figure: "Figure", top: float, width: float, sentences: Iterable[str], fonts: Lettering
) -> None:
    """Write sentences in small letters down from `top` inches, each on lines of its own."""
    most = int(max(LEAST_LINE, width) * SMALL_LETTERS)
    lines = "\n".join(fill(fonts.spell(each), most) for each in sentences)
    write_line(figure, top, lines, size=7.5, va="top", color=GREY)


def write_line(
    figure: "Figure",
    bottom: float,
    text: str,
    *,
    size: float = 10,
    va: str = "bottom",
    color: str = "black",
) -> None:
    """Write text at the left edge of the figure, up from `bottom` inches (down with `va="top"`)."""
    if va == "bottom" and told_apart(text):
        return
    axes = place(figure, 0, bottom, 0.01, 0.01)
    axes.set_axis_off()
    axes.text(0, 0, fenced(text), fontsize=size, va=va, color=color, parse_math=False)
