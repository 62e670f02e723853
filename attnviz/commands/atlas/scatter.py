"""Two scores of the heads that stand out, as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, cast

import numpy as np
from rich.text import Text

from attnviz.commands.atlas.headlines import HeadPoint, Scatter, outliers_said, scatter_title
from attnviz.commands.atlas.record import SCORES, Atlas
from attnviz.commands.atlas.terminal import letters, score_number
from attnviz.console import Display
from attnviz.draw.labels import LAYERS
from attnviz.draw.picture.canvas import Drawn, place, renderer_of
from attnviz.draw.picture.frame import GREY, sheet, write_line
from attnviz.draw.picture.panes import Box, axis_label, draw_layers, layer_scale, place_names
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


HEADS = 12


def render(atlas: Atlas, scatter: Scatter, top: int | None, display: Display) -> Iterator[Text]:
    """The heads farthest from the median, and the rule; `top`: how many heads, None for 12."""
    shown = scatter.outliers[: top or HEADS]
    title = letters(scatter_title(atlas, scatter), display)
    yield from folded(Text(title, "dim"), display.width)
    yield Text()
    if shown:
        columns = [Column("head")]
        for name in (scatter.x, scatter.y):
            columns += [Column(SCORES[name].label, right=True)]
            columns += [Column(letters("± error", display), right=True)]
        columns.append(Column("distance", right=True))
        rows = [
            [
                str(point.head),
                letters(score_number(scatter.x, point.x), display),
                letters(score_number(scatter.x, point.x_error), display),
                letters(score_number(scatter.y, point.y), display),
                letters(score_number(scatter.y, point.y_error), display),
                f"{point.distance:.1f}",
            ]
            for point in shown
        ]
        yield from listing(columns, rows, display.width)
        yield Text()
    said = letters(outliers_said(scatter, len(shown)), display)
    yield from folded(Text(said, "dim"), display.width)
    picture = display.speller("output", "FILE.png")
    yield from folded(Text(f"{picture} draws all heads", "dim"), display.width)


# Two scores of every head as a picture: a point for each, in the colour of its layer.


WIDTH, HEIGHT = 5.6, 4.2  # inches
NAMED = 12
LETTERS = 15  # of the line below the picture, in an inch
NAME_SIZE = 7.5
FEW = 300  # heads; the points of more are smaller
FAR_AWAY = 0.14  # inches; from there on a line joins a name to its point


def draw(
    atlas: Atlas, scatter: Scatter, *, top: int | None = None, dpi: int = 150, cmap: str = LAYERS
) -> Drawn:
    """The scatter, with at most `top` outliers named, or 12; `cmap`: the layers' colours."""
    title = scatter_title(atlas, scatter)
    with sheet([title], dpi=dpi, cmap=cmap) as (figure, fonts):
        axes = place(figure, 0, 0, WIDTH, HEIGHT)
        layers = [point.head.layer for point in scatter.points]
        scale = layer_scale(layers, cmap)
        _draw_points(axes, scatter, layers, scale)
        named = _name(axes, _Frame.of(axes), scatter, scatter.outliers[: top or NAMED])
        draw_layers(place(figure, WIDTH + 0.15, 0, 0.13, HEIGHT), scale, layers)
        lines = "; lines: ± the standard error over documents"
        said = fill(outliers_said(scatter, named) + lines, int(WIDTH * LETTERS))
        write_line(figure, -0.55, said, size=8, va="top", color=GREY)
        wrapped = fill(fonts.spell(title), int(WIDTH * LETTERS * 0.85))
        write_line(figure, HEIGHT + 0.12, wrapped)
    return Drawn(figure, fonts.notes)


@dataclass(frozen=True)
class _Frame:
    """The limits of the axes, and inches for what lies within."""

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def of(cls, axes: "Axes") -> "_Frame":
        return cls(*axes.get_xlim(), *axes.get_ylim())

    def inches(self, x: float, y: float) -> tuple[float, float]:
        """Where a point stands, from the lower left corner."""
        across = (x - self.left) / (self.right - self.left)
        return across * WIDTH, (y - self.bottom) / (self.top - self.bottom) * HEIGHT


def _draw_points(
    axes: "Axes", scatter: Scatter, layers: Sequence[int], scale: "ScalarMappable"
) -> None:
    points = scatter.points
    x, y = [p.x for p in points], [p.y for p in points]
    colors = scale.to_rgba(np.array(layers, float))
    axes.errorbar(
        *(x, y),
        xerr=[p.x_error or 0.0 for p in points],
        yerr=[p.y_error or 0.0 for p in points],
        fmt="none",
        ecolor=colors,  # type: ignore[arg-type]  # a colour for each, which the stubs do not know
        elinewidth=0.6,
        alpha=0.5,
        zorder=1,
    )
    few = len(points) <= FEW
    # the edges of many points would hide the points themselves
    size, edge, alpha = (22, 0.4, 1.0) if few else (7, 0.0, 0.75)
    axes.scatter(x, y, s=size, c=colors, edgecolors="white", linewidths=edge, alpha=alpha, zorder=2)
    axes.margins(0.07)
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    axes.set_xlabel(axis_label(SCORES[scatter.x]), fontsize=9)
    axes.set_ylabel(axis_label(SCORES[scatter.y]), fontsize=9)
    axes.tick_params(labelsize=7.5, width=0.6, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)


def _name(axes: "Axes", frame: _Frame, scatter: Scatter, outliers: Sequence[HeadPoint]) -> int:
    """Write the names of these heads where there is a place; returns how many there are."""
    places = np.array([frame.inches(p.x, p.y) for p in scatter.points])
    marked = [frame.inches(p.x, p.y) for p in outliers]
    names = [str(p.head) for p in outliers]
    sizes = [_size(axes, name) for name in names]
    boxes = place_names(marked, sizes, places, (WIDTH, HEIGHT))
    for name, point, box in zip(names, marked, boxes, strict=True):
        if box is not None:
            _write(axes, name, point, box)
    return sum(box is not None for box in boxes)


def _size(axes: "Axes", name: str) -> tuple[float, float]:
    figure = cast("Figure", axes.figure)
    text = axes.text(0, 0, name, fontsize=NAME_SIZE, parse_math=False)
    box = text.get_window_extent(renderer_of(figure))
    text.remove()
    return float(box.width / figure.dpi), float(box.height / figure.dpi)


def _write(axes: "Axes", name: str, point: tuple[float, float], box: Box) -> None:
    left, bottom, right, top = box
    near = min(max(point[0], left), right), min(max(point[1], bottom), top)
    if np.hypot(point[0] - near[0], point[1] - near[1]) > FAR_AWAY:
        axes.plot(
            [point[0] / WIDTH, near[0] / WIDTH],
            [point[1] / HEIGHT, near[1] / HEIGHT],
            color="#999999",
            linewidth=0.5,
            transform=axes.transAxes,
            zorder=1,
        )
    axes.text(
        (left + right) / 2 / WIDTH,
        (bottom + top) / 2 / HEIGHT,
        name,
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=NAME_SIZE,
        parse_math=False,
        zorder=3,
    )
