"""The strongest paths as a graph: layers upward, an arrow for each path, as wide as its share."""

from typing import TYPE_CHECKING

from attnviz.commands.patch.record import PatchReport
from attnviz.draw.labels import SIGNED
from attnviz.draw.picture.canvas import Lettering, place
from attnviz.draw.picture.frame import GREY, write_line
from attnviz.records.interventions import Site
from attnviz.records.paths import LOGITS, Receiver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]

MOST, LEAST = 20, 0.01
"""Paths that are drawn at most, and the least share of one."""
ACROSS, UP, TALLEST, WIDEST = 0.62, 0.62, 7.0, 10.0
"""Inches from head to head and from layer to layer, and of the whole graph at most."""
WIDE, THIN = 6.0, 0.4
"""The width of an arrow with a share of 1, and the least one, in points."""
LETTERS = {"q": -0.3, "k": 0.0, "v": 0.3}
"""The offsets of a head's queries, keys and values from its middle; below it, by `DOWN`."""
DOWN, BEND = 0.3, 0.2


def draw_graph(report: PatchReport, figure: "Figure", fonts: Lettering, top: float) -> float:
    """Draw the graph below a height in inches; its lower end."""
    heads_per_layer = report.capture.model.heads_per_layer
    paths = [each for each in report.strongest[:MOST] if abs(each.share.mean) >= LEAST]
    if not paths:
        write_line(figure, top, f"no path has a share of {LEAST:g} or more", size=9, va="top")
        return top - UP / 2
    layers, heads = len(heads_per_layer), max(heads_per_layer)
    lowest = min(effect.site.layer for effect in paths)
    above = any(each.receiver is None or each.receiver.layer is None for each in paths)
    height = min(TALLEST, UP * (layers - lowest + above))
    axes = place(figure, 0.0, top - height, min(WIDEST, ACROSS * (heads + 1)), height)
    axes.set_frame_on(False)
    axes.set_xticks([])
    axes.set_yticks(range(lowest, layers), [f"L{layer}" for layer in range(lowest, layers)])
    axes.tick_params(length=0, labelsize=7)
    axes.set_xlim(-0.5, heads + 0.5)
    axes.set_ylim(lowest - 0.5, layers - 0.5 + above)
    names: dict[Point, str] = {}
    for effect in reversed(paths):  # the strongest is on top
        to = effect.receiver or LOGITS
        sender, receiver = (_point(part, layers, heads) for part in (effect.site, to))
        names |= {sender: _name(effect.site), receiver: _name(to)}
        if to.letter:
            receiver = receiver[0] + LETTERS[to.letter], receiver[1] - DOWN
            names[receiver] = to.letter
        _arrow(axes, effect.share.mean, sender, receiver)
    for (x, y), name in names.items():
        box = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": GREY, "lw": 0.6}
        axes.text(x, y, name, ha="center", va="center", fontsize=7, bbox=box, zorder=4)
    said = "the strongest paths, as wide as their shares: blue is below 0, red above"
    axes.set_title(fonts.spell(said), fontsize=9, loc="left")
    return top - height


def _point(part: Site | Receiver, layers: int, heads: int) -> Point:
    """MLPs are beside the heads, between their layer and the next one; the logits above all."""
    if part.layer is None:
        return (heads - 1) / 2, layers
    return (heads, part.layer + 0.5) if part.head is None else (part.head, part.layer)


def _name(part: Site | Receiver) -> str:
    if part.layer is None:
        return "logits"
    return f"L{part.layer} MLP" if part.head is None else f"L{part.layer}H{part.head}"


def _arrow(axes: "Axes", share: float, sender: Point, receiver: Point) -> None:
    """An arrow; it bends around the heads between its ends."""
    from matplotlib.patches import FancyArrowPatch

    upright = abs(sender[0] - receiver[0]) < 0.5 and receiver[1] - sender[1] > 1
    arrow = FancyArrowPatch(
        sender,
        receiver,
        arrowstyle="-|>,head_length=4,head_width=2",
        connectionstyle=f"arc3,rad={-BEND if upright else 0}",
        linewidth=max(THIN, WIDE * abs(share)),
        color=[part / 255 for part in SIGNED[1 if share < 0 else 2]],
        shrinkA=7,
        shrinkB=7,
        zorder=2,
    )
    axes.add_patch(arrow)
