"""The strongest paths as a graph: layers upward, an arrow for each path, as wide as its effect."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnviz.commands.patch.record import PatchEffect, PatchReport
from attnviz.draw.labels import SIGNED
from attnviz.draw.picture.canvas import Lettering, place
from attnviz.draw.picture.frame import GREY
from attnviz.records.interventions import Site
from attnviz.records.paths import LOGITS, Receiver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]

MOST, LEAST = 20, 0.01
"""Paths that are drawn at most, and the least effect of one, as a share of the strongest."""
ACROSS, UP, TALLEST, WIDEST = 0.62, 0.55, 7.0, 10.0
"""Inches from head to head and from layer to layer, and of the whole graph at most."""
WIDE, THIN = 5.0, 0.4
BENDS = {"q": -0.25, "k": 0.0, "v": 0.25}
"""How far arrows to a head's queries, keys and values bend apart."""


def strongest_paths(report: PatchReport) -> Sequence[PatchEffect]:
    """The paths that are drawn, the strongest first."""
    strongest = report.strongest[:MOST]
    least = LEAST * abs(strongest[0].share.mean)
    return [effect for effect in strongest if abs(effect.share.mean) >= least]


def draw_graph(report: PatchReport, figure: "Figure", fonts: Lettering, top: float) -> float:
    """Draw the graph below a height in inches; its lower end."""
    heads_per_layer, paths = report.capture.model.heads_per_layer, strongest_paths(report)
    layers, heads = len(heads_per_layer), max(heads_per_layer)
    lowest = min(effect.site.layer for effect in paths)
    height = min(TALLEST, UP * (layers - lowest + 1))
    axes = place(figure, 0.0, top - height, min(WIDEST, ACROSS * (heads + 1)), height)
    axes.set_frame_on(False)
    axes.set_xticks([])
    axes.set_yticks(range(lowest, layers), [f"L{layer}" for layer in range(lowest, layers)])
    axes.tick_params(length=0, labelsize=7)
    axes.set_xlim(-0.5, heads + 0.5)
    axes.set_ylim(lowest - 0.5, layers + 0.5)
    for layer in range(lowest, layers):
        own = heads_per_layer[layer]
        axes.plot(range(own), [layer] * own, "o", color="#dddddd", markersize=3, zorder=0)
    names: dict[Point, str] = {}
    for effect in reversed(paths):  # the strongest lies above
        ends = []
        for part in (effect.site, effect.receiver or LOGITS):
            ends.append(_point(part, layers, heads))
            names[ends[-1]] = _name(part)
        _arrow(axes, effect, ends, abs(paths[0].share.mean))
    box = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": GREY, "lw": 0.6}
    for (x, y), name in names.items():
        axes.text(x, y, name, ha="center", va="center", fontsize=7, bbox=box, zorder=4)
    said = "the strongest paths, as wide as their shares: blue is below 0, red above"
    axes.set_title(fonts.spell(said), fontsize=9, loc="left")
    return top - height


def _point(part: Site | Receiver, layers: int, heads: int) -> Point:
    """MLPs stand beside the heads, between their layer and the next one; the logits above all."""
    if part.layer is None:
        return (heads - 1) / 2, layers
    return (heads, part.layer + 0.5) if part.head is None else (part.head, part.layer)


def _name(part: Site | Receiver) -> str:
    if part.layer is None:
        return "logits"
    return f"L{part.layer} MLP" if part.head is None else f"L{part.layer}H{part.head}"


def _arrow(axes: "Axes", effect: PatchEffect, ends: Sequence[Point], largest: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    letter = effect.receiver.letter if effect.receiver else None
    share, bend = effect.share.mean, BENDS[letter] if letter else 0.0
    color = [part / 255 for part in SIGNED[1 if share < 0 else 2]]
    arrow = FancyArrowPatch(
        ends[0],
        ends[1],
        arrowstyle="-|>,head_length=4,head_width=2",
        connectionstyle=f"arc3,rad={bend}",
        linewidth=max(THIN, WIDE * abs(share) / largest),
        color=color,
        shrinkA=7,
        shrinkB=7,
        zorder=2,
    )
    axes.add_patch(arrow)
    if letter:
        (x0, y0), (x1, y1) = ends
        part = 0.6
        axes.text(
            x0 + part * (x1 - x0) + bend * 0.42 * (y1 - y0),
            y0 + part * (y1 - y0) - bend * 0.42 * (x1 - x0),
            letter,
            fontsize=6.5,
            color=color,
            ha="center",
            va="center",
            bbox={"boxstyle": "circle,pad=0.1", "fc": "white", "ec": "none"},
            zorder=3,
        )
