"""Pictures with a value for every head: layers down, heads across, one pane for each measure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, cos, isnan, pi, sin
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.labels import DIVERGING, fenced, is_light, name_of
from attnviz.draw.picture.canvas import Drawn, Lettering, place, renderer_of
from attnviz.draw.picture.frame import BOX, sheet, write_below, write_heading
from attnviz.draw.picture.paint import EMPTY, draw_bar
from attnviz.draw.view import Pane, ResultView
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.metrics import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import ArrayLike


ACROSS = 4, 3, 5  # panes in a row
LARGEST_SIDE, LARGEST_CELL = 2.4, 0.42  # inches
ALONE_SIDE, ALONE_CELL = 6.0, 0.7  # of a single pane
LEAST_WRITTEN, LEAST_FOR_ERRORS = 0.32, 0.4  # inches; smaller cells hold no number, no ±
BAR_APART, BAR = 0.07, 0.09
GAP_ACROSS, GAP_DOWN = 0.95, 0.62
LEAST_LABEL, LETTER = 0.12, 0.06
"""Inches from one name of a column to the next, and of a letter."""
LONGEST_LABEL = 24
"""Letters of a column's name; the rest is cut."""
NAMED_SIDE, LEAST_NAMED, LEAST_ROW, WIDEST = 9.0, 0.13, 0.25, 24.0
"""Inches of a pane with named columns: its width while its columns are wide enough for their names,
the least width of these, the least height of a row, and the largest width."""


More: TypeAlias = Callable[["Figure", Lettering, float], float]
"""A function that draws below a height in inches, and returns its lower end."""


def axis_label(score: Score) -> str:
    """The score's name and unit."""
    return f"{score.label} ({score.unit or 'share'})"


def score_pane(score: Score, values: FloatArray, boxed: Collection[Head] = ()) -> Pane | None:
    """A score of all heads: a share from 0 to 1, others from 0 to the largest; None without any."""
    if np.isnan(values).all():
        return None
    high = (float(np.nanmax(values)) or 1.0) if score.unit else 1.0
    digits = 0 if high >= 1000 else 1 if score.of_distances else 2
    return Pane(axis_label(score), values, 0.0, high, digits, boxed)


def draw_panes(
    title: str,
    panes: Sequence[Pane],
    *,
    about: str = "",
    below: Sequence[str] = (),
    dpi: int,
    cmap: str,
    more: More | None = None,
) -> Drawn:
    """Draw the panes as one figure, with `about` in small letters above them, and `below` below.

    `more` draws under the panes.
    """
    names = panes[0].columns or ()
    if any(pane.errors is not None and np.isfinite(pane.errors).any() for pane in panes):
        below = [*below, "±: standard error"]
    with sheet([title, about, *below, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        cell = _cell_of(panes)
        rows, columns = panes[0].values.shape
        width, height = columns * cell[0], rows * cell[1]
        bottom, in_row = 0.0, panes_across(len(panes))
        for i, pane in enumerate(panes):
            down, across = divmod(i, in_row)
            left, bottom = across * (width + GAP_ACROSS), -down * (height + GAP_DOWN)
            image = _draw_one(place(figure, left, bottom, width, height), pane, cell, cmap, fonts)
            if pane.bar is not None:
                beside = place(figure, left + width + BAR_APART, bottom, BAR, height)
                draw_bar(beside, image, pane.bar)
        bottom -= max(map(_label_height, panes, [cell[0]] * len(panes)))
        if more:
            bottom = more(figure, fonts, bottom - GAP_DOWN)
        line = in_row * (width + GAP_ACROSS)
        write_heading(figure, height + 0.4, line, title, about, fonts)
        write_below(figure, bottom - 0.35, line, below, fonts)
    return Drawn(figure, fonts.notes)


def panes_across(count: int) -> int:
    """How many of these panes stand in a row, with as few places without one as possible."""
    return min(min(ACROSS, key=lambda across: -count % across), count)


def draw_view(view: ResultView, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """The maps of a view, as many layers and heads in each, with its sentences around them."""
    panes, shape = list[Pane](), np.max([own.values.shape for own in view.maps], axis=0)
    for own in view.maps:
        values, columns = _filled_up(own.values, shape), own.columns
        errors = None if own.errors is None else _filled_up(own.errors, shape)
        if own.quoted:
            columns = [name_of(each) for each in own.across]
        bar = view.bar if own is view.maps[-1] else None
        own = replace(own, low=-view.scale, high=view.scale, bar=bar)
        panes.append(replace(own, values=values, errors=errors, columns=columns))
    below = [*(view.about if view.under is None else view.under)]
    if view.empty and any(np.isnan(pane.values).any() for pane in panes):
        below.append(f"grey: {view.empty}")
    about, more = view.caption, view.graph
    return draw_panes(view.title, panes, about=about, below=below, dpi=dpi, cmap=cmap, more=more)


def _filled_up(values: FloatArray, shape: Sequence[int]) -> FloatArray:
    """Values with NaN behind them, up to a shape."""
    every = np.full(shape, np.nan, np.float32)
    every[tuple(map(slice, values.shape))] = values
    return every


def _cell_of(panes: Sequence[Pane]) -> tuple[float, float]:
    rows, columns = panes[0].values.shape
    if panes[0].columns is not None:
        least = min(LEAST_NAMED, WIDEST / columns)
        width = min(ALONE_CELL, max(NAMED_SIDE / columns, least))
        return width, min(max(width, LEAST_ROW), ALONE_SIDE / rows)
    alone = len(panes) == 1
    largest = ALONE_SIDE if alone else LARGEST_SIDE
    side = min(ALONE_CELL if alone else LARGEST_CELL, largest / max(rows, columns))
    return side, side


def _label_height(pane: Pane, width: float) -> float:
    """The height of a pane's column names in inches if they are upright, else 0."""
    longest = LETTER * max((len(_short(name)) for name in pane.columns or ()), default=0)
    return longest if longest > width else 0.0


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"


def _draw_one(
    axes: "Axes", pane: Pane, cell: tuple[float, float], cmap: str, fonts: Lettering
) -> "AxesImage":
    from matplotlib.patches import Rectangle

    values, (width, height) = pane.values, cell
    axes.set_facecolor(EMPTY)
    image = axes.imshow(
        *(values, cmap), vmin=pane.low, vmax=pane.high, aspect="auto", interpolation="nearest"
    )
    axes.set_title(pane.title, fontsize=9, loc="left")
    layers = range(0, values.shape[0], max(1, ceil(0.2 / height)))
    down = [f"L{i}" if pane.rows is None else fenced(fonts.spell(pane.rows[i])) for i in layers]
    axes.yaxis.set_ticks(list(layers), down, fontsize=7)
    names = pane.columns or [f"H{i}" for i in range(values.shape[1])]
    upright = _label_height(pane, width) > 0
    at = range(0, len(names), max(1, ceil((LEAST_LABEL if upright else 0.2) / width)))
    labels = [fenced(fonts.spell(_short(names[i]))) for i in at]
    axes.xaxis.set_ticks(list(at), labels, fontsize=7, rotation=90 if upright else 0)
    axes.tick_params(width=0.6, length=2)
    for layer, head in pane.boxed:
        corner = head - 0.5, layer - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=BOX, lw=1.4, clip_on=False, zorder=3))
    if width >= LEAST_WRITTEN:
        _write_numbers(axes, pane, image, with_errors=height >= LEAST_FOR_ERRORS)
    return image


def _write_numbers(axes: "Axes", pane: Pane, image: "AxesImage", *, with_errors: bool) -> None:
    """Write the value of each cell, with ± its standard error below it if there is room."""
    for (layer, head), value in np.ndenumerate(pane.values):
        if not isnan(value):
            color = image.to_rgba(np.array([value]), bytes=True)[0, :3]
            ink = "black" if is_light(color, 127.5) else "white"
            number = f"{value:z.{pane.digits}f}"  # a number that rounds to 0 has no sign
            if with_errors and pane.errors is not None and not isnan(pane.errors[layer, head]):
                number += f"\n±{pane.errors[layer, head]:.1g}"
            axes.text(head, layer, number, ha="center", va="center", fontsize=7, color=ink)


# Layers as colours: one for each, in order, and a bar that names them.

DARKEST, LIGHTEST = 0.0, 0.78  # of the map; lighter colours vanish on white
ALONE = 0.3  # the shade of a single layer
NAMED = 16  # layers that the bar names at most


def layer_scale(layers: Iterable[int], cmap: str) -> "ScalarMappable":
    """A colour for each layer from 0 up to the last; only inside `drawing`."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    known = set(layers)
    n = max(known) + 1
    steps = [DARKEST + (LIGHTEST - DARKEST) * i / max(1, n - 1) for i in range(n)]
    shades = steps if len(known) > 1 else [ALONE] * n
    colors = ListedColormap([matplotlib.colormaps[cmap](shade) for shade in shades])
    return ScalarMappable(BoundaryNorm([i - 0.5 for i in range(n + 1)], n), colors)


def layer_color(scale: "ScalarMappable", layer: int) -> tuple[float, ...]:
    """A layer's red, green, blue and opacity, from 0 to 1."""
    return tuple(map(float, scale.to_rgba(np.array([layer], float))[0]))


def draw_layers(axes: "Axes", scale: "ScalarMappable", layers: Iterable[int]) -> None:
    """Fill the axes with a bar of the layers' colours."""
    n = max(layers) + 1
    every = ceil(n / NAMED)
    at = list(range(0, n, every))
    bar = axes.figure.colorbar(scale, cax=axes, ticks=at)
    bar.ax.set_yticklabels([f"L{i}" for i in at])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7, width=0.6, length=0)
    bar.set_label("layer", fontsize=8)
    bar.outline.set_linewidth(0.6)


# Names beside points: places in which none covers another or leaves the picture.


AWAY = (0.1, 0.14, 0.2, 0.32, 0.48, 0.7)  # inches from the point
FAR_AWAY = 0.14  # inches; from there on a line joins a name to its point
TURNS = 16
GAP = 0.025  # inches between two names

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in inches."""


def place_names(
    marked: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    points: NDArray[np.float64],
    room: tuple[float, float],
) -> list[Box | None]:
    """Find a box for each name, near its point; None without a place for it.

    Each name takes, in order, the nearest of the places that cover the fewest `points` (n, 2). All
    is in inches, from the lower left corner: the `marked` points, the `sizes` of their names, and
    the `room`, which no box leaves.
    """
    taken: list[Box] = []
    boxes: list[Box | None] = []
    for point, size in zip(marked, sizes, strict=True):
        best: Box | None = None
        least = np.inf
        for away, box in _places(point, size):
            inside = min(box) >= 0 and box[2] <= room[0] and box[3] <= room[1]
            if not inside or any(_overlap(box, other) for other in taken):
                continue
            cost = _covered(box, points) + away
            if cost < least:
                best, least = box, cost
        boxes.append(best)
        taken += [best] if best else []
    return boxes


def write_names(
    axes: "Axes",
    names: Sequence[str],
    marked: "ArrayLike",
    points: "ArrayLike",
    size: float,
) -> int:
    """Write the names of marked places (n, 2) where there is room, off `points`; in data units.

    A line joins a name that is far away to its place. Returns the number of names written.
    """
    dpi, renderer = axes.figure.dpi, renderer_of(cast("Figure", axes.figure))
    room = np.array(axes.get_window_extent().size) / dpi
    to_axes = axes.transData + axes.transAxes.inverted()
    inches, covered = (to_axes.transform(np.reshape(at, (-1, 2))) * room for at in (marked, points))
    texts = [axes.text(0, 0, name, fontsize=size, parse_math=False, zorder=5) for name in names]
    sizes = np.array([text.get_window_extent(renderer).size for text in texts]) / dpi
    boxes = place_names(inches.tolist(), sizes.tolist(), covered, (room[0], room[1]))
    for text, (x, y), box in zip(texts, inches, boxes, strict=True):
        if box is None:
            text.remove()
            continue
        text.set_transform(axes.transAxes)
        text.set_position((box[0] / room[0], box[1] / room[1]))
        near = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        if np.hypot(x - near[0], y - near[1]) > FAR_AWAY:
            ends = np.array([(x, y), near]) / room
            axes.plot(*ends.T, color="#999999", lw=0.5, transform=axes.transAxes, zorder=1)
    return sum(box is not None for box in boxes)


def spread(heights: Sequence[float], least: float, top: float) -> list[float]:
    """The nearest heights from 0 to `top` that are `least` apart, or closer if necessary."""
    if not heights:
        return []
    apart = min(least, top / max(1, len(heights) - 1))
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    wanted = np.array([heights[i] for i in order]) - apart * np.arange(len(order))
    # the nearest rising sequence: average neighbours until all are in order
    runs: list[list[float]] = []
    for value in wanted.tolist():
        runs.append([value, 1.0])
        while len(runs) > 1 and runs[-2][0] > runs[-1][0]:
            (mean, n), (before, m) = runs.pop(), runs.pop()
            runs.append([(mean * n + before * m) / (n + m), n + m])
    level = [mean for mean, n in runs for _ in range(int(n))]
    most = top - apart * (len(order) - 1)
    placed = [0.0] * len(order)
    for rank, i in enumerate(order):
        placed[i] = min(max(level[rank], 0.0), max(most, 0.0)) + apart * rank
    return placed


def _places(point: tuple[float, float], size: tuple[float, float]) -> Iterator[tuple[float, Box]]:
    (x, y), (width, height) = point, size
    for away, turn in product(AWAY, range(TURNS)):
        across, up = cos(2 * pi * turn / TURNS), sin(2 * pi * turn / TURNS)
        left = x + away * across - width * (1 - across) / 2
        bottom = y + away * up - height * (1 - up) / 2
        yield away + turn * 1e-4, (left, bottom, left + width, bottom + height)


def _overlap(one: Box, other: Box) -> bool:
    across = one[0] < other[2] + GAP and other[0] < one[2] + GAP
    return across and one[1] < other[3] + GAP and other[1] < one[3] + GAP


def _covered(box: Box, points: NDArray[np.float64]) -> int:
    across = (points[:, 0] > box[0] - GAP) & (points[:, 0] < box[2] + GAP)
    return int((across & (points[:, 1] > box[1] - GAP) & (points[:, 1] < box[3] + GAP)).sum())
