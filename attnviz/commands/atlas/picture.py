"""Pictures of a scan: its scores as grids, two of them as a scatter, and over checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.atlas.rows import SCATTER
from attnviz.commands.atlas.views import (
    Development,
    Scatter,
    atlas_title,
    development_title,
    outliers_said,
    scatter_of,
    scatter_title,
    two_scores,
)
from attnviz.corpus.record import SCORES
from attnviz.corpus.tables import Atlas
from attnviz.draw.labels import LAYERS, SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn, Lettering, place
from attnviz.draw.picture.frame import GREY, sheet, write_line
from attnviz.draw.picture.panes import (
    axis_label,
    draw_layers,
    draw_panes,
    layer_color,
    layer_scale,
    score_pane,
    spread,
    write_names,
)
from attnviz.errors import UsageError, readable
from attnviz.kit.option import check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable


def draw_atlas(atlas: Atlas, *, plot: str | None = None, **look: Any) -> Drawn:
    """Draw the scores of all heads, each as a grid; or two against each other, `plot`."""
    if plot is None:
        return _draw_grids(atlas, **look)
    top = look.pop("top", SCATTER.top)
    check_number("top", top, 1, whole=True)
    return draw_scatter(scatter_of(atlas, *two_scores(plot)), top=top, **look)


def _draw_grids(atlas: Atlas, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """Draw the scores of all heads: shares from 0 to 1, others from 0 to the largest."""
    values = (
        (score, zip(atlas.heads, atlas.values(name), strict=True)) for name, score in SCORES.items()
    )
    panes = (score_pane(score, by_head(of_heads)) for score, of_heads in values)
    measured = [pane for pane in panes if pane is not None]
    return draw_panes(atlas_title(atlas), measured, dpi=dpi, cmap=cmap)


def _plain(axes: "Axes", tick: float) -> None:
    """Axes without a frame on two sides, over a light grid."""
    axes.tick_params(width=0.6, length=tick)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)


# Two scores of every head: a point for each, in the colour of its layer.


WIDTH, HEIGHT = 5.6, 4.2  # inches
LETTERS = 15  # of the line below the picture, in an inch
NAME_SIZE = 7.5
FEW = 300  # heads; the points of more are smaller


def draw_scatter(scatter: Scatter, *, top: int, dpi: int = 150, cmap: str = LAYERS) -> Drawn:
    """Draw the scatter, with at most `top` outliers named; `cmap`: the layers' colours."""
    title = scatter_title(scatter)
    with sheet([title], dpi=dpi, cmap=cmap) as (figure, fonts):
        axes = place(figure, 0, 0, WIDTH, HEIGHT)
        layers = [point.head.layer for point in scatter.points]
        scale = layer_scale(layers, cmap)
        _draw_points(axes, scatter, scale.to_rgba(np.array(layers, float)))
        places = [(point.x, point.y) for point in scatter.points]
        names = [str(point.head) for point in scatter.outliers[:top]]
        named = write_names(axes, names, places[: len(names)], places, NAME_SIZE)
        draw_layers(place(figure, WIDTH + 0.15, 0, 0.13, HEIGHT), scale, layers)
        rule = outliers_said(scatter, named)
        if scatter.mean_over == "documents":
            rule += "; lines: ± the standard error over documents"
        rule = fill(rule, int(WIDTH * LETTERS))
        write_line(figure, -0.55, rule, size=8, va="top", color=GREY)
        wrapped = fill(fonts.spell(title), int(WIDTH * LETTERS * 0.85))
        write_line(figure, HEIGHT + 0.12, wrapped)
    return Drawn(figure, fonts.notes)


def _draw_points(axes: "Axes", scatter: Scatter, colors: NDArray[np.float64]) -> None:
    points = scatter.points
    x, y = [p.x for p in points], [p.y for p in points]
    axes.errorbar(
        x=x,
        y=y,
        xerr=[p.x_error or 0.0 for p in points],
        yerr=[p.y_error or 0.0 for p in points],
        fmt="none",
        ecolor=colors,  # type: ignore[arg-type]  # a colour for each, which the stubs do not know
        elinewidth=0.6,
        alpha=0.5,
        zorder=1,
    )
    # the edges of many points would hide the points themselves
    size, edge, alpha = (22, 0.4, 1.0) if len(points) <= FEW else (7, 0.0, 0.75)
    axes.scatter(x, y, s=size, c=colors, edgecolors="white", linewidths=edge, alpha=alpha, zorder=2)
    axes.margins(0.07)
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    axes.set_xlabel(axis_label(SCORES[scatter.x]), fontsize=9)
    axes.set_ylabel(axis_label(SCORES[scatter.y]), fontsize=9)
    axes.tick_params(labelsize=7.5)
    _plain(axes, tick=3)


# How scores develop over checkpoints: a panel for each score, a line for each head.


ACROSS = 3
PANEL_WIDTH, PANEL_HEIGHT = 2.7, 1.7  # inches
GAP_ACROSS, GAP_DOWN = 1.2, 0.65
MANY = 60  # heads; the lines of more are thinner
NAME_HEIGHT = 0.13  # inches
TITLE_LETTERS = 12  # in an inch
LONGEST = 18  # letters of a checkpoint's name
TICK = 0.07  # inches of a letter below the axis
EVEN = 4  # times as large as the smallest gap: the mean gap of steps that are not even


def draw_development(
    development: Development, *, top: int, dpi: int = 150, cmap: str = LAYERS
) -> Drawn:
    """Draw a panel for each score that was measured.

    `top`: the number of heads to name in each, those that change most; `cmap`: the layers' colours.
    """
    layers = [head.layer for head in development.heads]
    title = development_title(development)
    if len(layers) > top:
        title += "; named: the heads that change most from first to last"
    means = development.means
    scores = [score for score in SCORES if score in means and not np.isnan(means[score]).all()]
    if not scores:
        raise UsageError(f"no head has a value of {', '.join(means)}", "choose another score")
    names = [readable(name) for name in development.names]
    with sheet([title, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        scale = layer_scale(layers, cmap)
        ticks = _ticks(development, fonts)
        down = PANEL_HEIGHT + GAP_DOWN + ticks.height
        for i, score in enumerate(scores):
            left, bottom = i % ACROSS * (PANEL_WIDTH + GAP_ACROSS), -(i // ACROSS) * down
            axes = place(figure, left, bottom, PANEL_WIDTH, PANEL_HEIGHT)
            _draw_lines(axes, development, score, scale, ticks)
            _name_heads(axes, development, score, top, scale, ticks)
        right = min(ACROSS, len(scores)) * (PANEL_WIDTH + GAP_ACROSS)
        if len(set(layers)) > 1:
            draw_layers(place(figure, right - 0.5, 0, 0.13, PANEL_HEIGHT), scale, layers)
        heading = fill(fonts.spell(title), int(right * TITLE_LETTERS))
        write_line(figure, PANEL_HEIGHT + 0.42, heading)
    return Drawn(figure, fonts.notes)


@dataclass(frozen=True)
class _Ticks:
    """The places of checkpoints along the axis, from 0 to 1, and those that are named there.

    `turned`: names are upright, as they are long; `height`: their room below, in inches.
    """

    places: Sequence[float]
    names: Sequence[str]
    turned: bool
    height: float
    label: str


def _ticks(development: Development, fonts: Lettering) -> _Ticks:
    """Steps along a line, or along a logarithmic one where they grow; else even distances."""
    steps, label = development.steps, ""
    if steps is None:
        values = np.arange(len(development.names), dtype=float)
    else:
        values, label = np.array(steps, float), "training step"
        gaps = [after - before for before, after in pairwise(steps)]
        if min(gaps) * len(gaps) * EVEN < steps[-1] - steps[0]:
            values = np.log(values - values[0] + max(1.0, values[1] - values[0]))
            label = "training step, logarithmic"
    places = (values - values[0]) / (values[-1] - values[0])
    names = [
        name if len(name) <= LONGEST else name[: LONGEST // 2] + "…" + name[-LONGEST // 2 + 1 :]
        for name in (fonts.spell(readable(str(at))) for at in steps or development.names)
    ]
    longest = max(map(len, names)) * TICK
    gap = float(np.diff(places).min()) * PANEL_WIDTH
    turned = longest > max(gap, PANEL_WIDTH / len(names) * 0.6)
    shown = _apart(places.tolist(), names, NAME_HEIGHT if turned else longest)
    return _Ticks(places.tolist(), shown, turned, longest if turned else 0.12, label)


def _apart(places: Sequence[float], names: Sequence[str], room: float) -> list[str]:
    """The names, empty where one would cover another; the first and the last always stay."""
    shown, before = [names[0]], places[0]
    for at, name in zip(places[1:-1], names[1:-1], strict=True):
        free = (at - before) * PANEL_WIDTH >= room and (places[-1] - at) * PANEL_WIDTH >= room
        shown.append(name if free else "")
        before = at if free else before
    return [*shown, names[-1]]


def _draw_lines(
    axes: "Axes", development: Development, score: str, scale: "ScalarMappable", ticks: _Ticks
) -> None:
    from matplotlib.collections import LineCollection

    # by head before layer, so that the last layers do not hide all others
    order = sorted(range(len(development.heads)), key=lambda i: development.heads[i][::-1])
    lines = [np.column_stack((ticks.places, development.means[score][i])) for i in order]
    colors = [layer_color(scale, development.heads[i].layer) for i in order]
    width, alpha = (0.8, 0.8) if len(lines) <= MANY else (0.5, 0.35)
    axes.add_collection(
        LineCollection(lines, colors=colors, linewidths=width, alpha=alpha, zorder=2)
    )
    axes.autoscale()
    axes.set_title(axis_label(SCORES[score]), fontsize=9, loc="left")
    turn = 90 if ticks.turned else 0
    axes.set_xticks(ticks.places, ticks.names, fontsize=6.5, rotation=turn, parse_math=False)
    axes.set_xlabel(ticks.label, fontsize=7, color=GREY)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(axes.get_ylim())
    axes.tick_params(axis="y", labelsize=7)
    _plain(axes, tick=2.5)


def _name_heads(
    axes: "Axes",
    development: Development,
    score: str,
    top: int,
    scale: "ScalarMappable",
    ticks: _Ticks,
) -> None:
    """Draw the heads that change most in full, with their names right of the last checkpoint."""
    changes, (low, high) = development.changes(score)[:top], axes.get_ylim()
    ends = [(each.means[-1] - low) / (high - low) * PANEL_HEIGHT for each in changes]
    placed = spread(ends, NAME_HEIGHT, PANEL_HEIGHT)
    for each, end, at in zip(changes, ends, placed, strict=True):
        color = layer_color(scale, each.head.layer)
        axes.plot(ticks.places, each.means, color=color, linewidth=1.7, zorder=3)
        axes.plot(
            [1.0, 1.0 + 0.1 / PANEL_WIDTH],
            [end / PANEL_HEIGHT, at / PANEL_HEIGHT],
            color=color,
            linewidth=0.7,
            transform=axes.transAxes,
            clip_on=False,
        )
        axes.text(
            1 + 0.13 / PANEL_WIDTH,
            at / PANEL_HEIGHT,
            str(each.head),
            transform=axes.transAxes,
            fontsize=7,
            va="center",
            parse_math=False,
        )
