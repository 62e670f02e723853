"""A token's trajectory through the layers, in the plane of two read-outs.

An arrow for each addition to its vector, in the layer's colour; dotted where it is of no head.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.labels import LAYERS
from attnviz.draw.picture.canvas import Drawn, Lettering, place
from attnviz.draw.picture.frame import sheet, write_below, write_titles
from attnviz.draw.picture.paint import PictureWords
from attnviz.draw.picture.panes import draw_layers, layer_scale, write_names
from attnviz.records.heads import Head
from attnviz.records.meaning import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 5.6, 4.6
"""Inches of the plane."""
NAMED, FAR = 6, 0.06
"""The most additions to name, and the least share of the widest side that a named one moves."""
NAME_SIZE, MARGIN = 8.0, 0.12


def draw(
    trajectory: Trajectory, head: Head, facts: str, *, dpi: int = 150, cmap: str = LAYERS
) -> Drawn:
    """Draw a trajectory; `head`, which is explained, is thicker; `cmap`: the layers' colours."""
    title, subtitle = titles(trajectory, head)
    names = [axis.name for axis in trajectory.axes]
    words = PictureWords(title, f"{subtitle} · {facts}", names, (), ())
    with sheet(words.all, dpi=dpi, cmap=cmap) as (figure, fonts):
        axes = place(figure, 0, 0, WIDTH, HEIGHT)
        layers = range(trajectory.layer)
        scale = layer_scale(layers, cmap)
        _prepare(axes, trajectory, fonts)
        _draw_moves(axes, trajectory, head, scale.to_rgba(np.array(layers, float)))
        _write_names(axes, trajectory)
        draw_layers(place(figure, WIDTH + 0.15, 0, 0.13, HEIGHT), scale, layers)
        write_titles(axes, words.spelled(fonts), WIDTH, above=4)
        write_below(figure, -0.55, WIDTH, notes(trajectory, head), fonts)
    return Drawn(figure, fonts.notes)


def titles(trajectory: Trajectory, head: Head) -> tuple[str, str]:
    """What is read where it ends, and how far the head moves it."""
    read = dict.fromkeys(axis.said for axis in trajectory.axes)
    title = f"“{trajectory.query}” before layer {trajectory.layer} reads as: {', '.join(read)}"
    at = next((i for i, point in enumerate(trajectory.waypoints) if point.part == head), None)
    if at is None:
        return title, f"{head} adds to it only later"
    across, up = np.subtract(trajectory.waypoints[at].place, trajectory.waypoints[at - 1].place)
    first, second = (axis.label for axis in trajectory.axes)
    return title, f"{head} moves it by {across:+.2f} ({first}) and {up:+.2f} ({second})"


def notes(trajectory: Trajectory, head: Head) -> Iterator[str]:
    """What the axes are, how often they are right, and where that was measured."""
    readouts = {axis.readout.name: axis for axis in trajectory.axes}.values()
    for axis in readouts:
        own = axis.readout
        yield (
            f"{own.name}: a linear read-out of the stream before layer {trajectory.layer}, right "
            f"for {axis.accuracy:.2f} of {own.n} held-out words; chance {own.chance:.2f}, from the "
            f"token alone {own.token:.2f}"
        )
    yield (
        "only the last point is where these were measured; those before it are projections. "
        f"Solid: heads; thick: {head}; dotted: position and MLPs (with b_O)"
    )


def _prepare(axes: "Axes", trajectory: Trajectory, fonts: Lettering) -> None:
    """Equal units on both axes, around every point and 0."""
    places, names = trajectory.places, [fonts.spell(axis.name) for axis in trajectory.axes]
    low, high = np.minimum(places.min(axis=0), 0), np.maximum(places.max(axis=0), 0)
    half = max((high - low) / (WIDTH, HEIGHT)) * (0.5 + MARGIN)
    middle = (low + high) / 2
    axes.set_xlim(middle[0] - half * WIDTH, middle[0] + half * WIDTH)
    axes.set_ylim(middle[1] - half * HEIGHT, middle[1] + half * HEIGHT)
    axes.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    axes.axvline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    axes.tick_params(labelsize=7.5, width=0.6, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(names[0], fontsize=9, parse_math=False)
    axes.set_ylabel(names[1], fontsize=9, parse_math=False)


def _draw_moves(
    axes: "Axes", trajectory: Trajectory, head: Head, colors: NDArray[np.float64]
) -> None:
    """Draw an arrow to each point from the one before it."""
    places = trajectory.places
    axes.plot(*places[0], "o", color="black", markersize=5, zorder=4)
    axes.plot(*places[-1], "o", markerfacecolor="white", color="black", markersize=6, zorder=4)
    layer = 0
    for i, part in enumerate([each.part for each in trajectory.waypoints][1:], start=1):
        layer = part.layer if isinstance(part, Head) else layer
        width, line = 3.0 if part == head else 1.4, "-" if isinstance(part, Head) else ":"
        style = {"color": colors[layer], "linewidth": width, "shrinkA": 0, "shrinkB": 0}
        style |= {"linestyle": line, "arrowstyle": "->"}
        axes.annotate("", places[i], places[i - 1], arrowprops=style, zorder=3)


def _write_names(axes: "Axes", trajectory: Trajectory) -> None:
    """Name both ends, and the farthest moves."""
    places = trajectory.places
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    wide = max(np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim()))
    far = [i for i in np.argsort(-lengths)[:NAMED].tolist() if lengths[i] > FAR * wide]
    names = ["embedding", f"before layer {trajectory.layer}"]
    names += [str(trajectory.waypoints[i + 1].part) for i in far]
    covered = [places[1:] * share + places[:-1] * (1 - share) for share in (0, 0.25, 0.5, 0.75, 1)]
    marked = np.array([places[0], places[-1], *covered[2][far]])
    write_names(axes, names, marked, np.concatenate(covered), NAME_SIZE)
