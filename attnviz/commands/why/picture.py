"""A contrast as a picture: the table of its terms, or the tree that its parts were made by.

The tree is drawn as a circuit: tokens across, layers up. A line leads from the token that a head
read to the token at which it wrote; it is dashed on the side of the keys. The lines at the top are
the head's own weights; all others are parts of the contrast.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.commands.why.titles import asked_why
from attnviz.draw.effects import part_name
from attnviz.draw.labels import DIVERGING, names_of
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import sheet, write_heading
from attnviz.draw.picture.paint import draw_bar
from attnviz.draw.titles import caption
from attnviz.records.parts import Node, Side, Why

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL, LAYER, TOKEN = 0.55, 0.75, 0.95  # inches
LEGEND = (
    "below the weights: the strongest parts of the contrast. Solid: what the query asks with; "
    "dashed: what the keys answer with;\nred raises the contrast, blue lowers it"
)


def draw(why: Why, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """The tree where there is one, else the table of terms."""
    names = names_of(why.tokens)
    title, about = asked_why(why, names), caption(why.capture)
    with sheet([title, about, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        names = tuple(map(fonts.spell, names))
        axes = _circuit(figure, why, names) if why.trees else _table(figure, why, names, cmap)
        box = axes.get_window_extent()
        write_heading(figure, box.height / dpi + 0.1, box.width / dpi, title, about, fonts)
    return Drawn(figure, fonts.notes)


def _table(figure: "Figure", why: Why, names: Sequence[str], cmap: str) -> "Axes":
    rows, columns = why.table.shape
    axes = place(figure, 0, 0, columns * CELL, rows * CELL)
    most = float(np.abs(why.table).max()) or 1.0
    image = axes.imshow(why.table, cmap=cmap, vmin=-most, vmax=most, aspect="auto")
    draw_bar(place(figure, columns * CELL + 0.1, 0, 0.12, rows * CELL), image, "score")
    for (row, column), value in np.ndenumerate(why.table):
        ink = "white" if abs(value) > 0.6 * most else "black"
        number = f"{value:z.2f}"
        axes.text(column, row, number, ha="center", va="center", fontsize=7, color=ink)
    parts = [part_name(part, names) for part in why.key_parts]
    axes.set_xticks(range(columns), parts, fontsize=7, rotation=40, ha="right", parse_math=False)
    parts = [part_name(part, names) for part in why.query_parts]
    axes.set_yticks(range(rows), parts, fontsize=7, parse_math=False)
    axes.set_xlabel("part at the keys", fontsize=8)
    axes.set_ylabel("part at the query", fontsize=8)
    return axes


@dataclass(frozen=True)
class Edge:
    """A line of the circuit from (token, layer) to (token, layer), and its label.

    `at`: where on the line the label stands. `weight`: it is a weight of the head itself, and no
    part of the contrast.
    """

    start: tuple[int, float]
    end: tuple[int, float]
    label: str
    side: Side
    value: float
    at: float = 0.5
    weight: bool = False

    @property
    def text(self) -> str:
        """`L1H2 +0.53`."""
        number = f"{abs(self.value):.2f}" if self.weight else f"{self.value:+z.2f}"
        return f"{self.label} {number}"


def _circuit(figure: "Figure", why: Why, names: Sequence[str]) -> "Axes":
    top = why.head.layer + 1
    axes = place(figure, 0, 0, max(4.5, len(names) * TOKEN), (top + 0.6) * LAYER)
    edges = _edges(why)
    most = max((abs(edge.value) for edge in edges), default=1.0) or 1.0
    used = {token for edge in edges for token in (edge.start[0], edge.end[0])}
    for token in range(len(names)):
        axes.axvline(token, color="0.9", linewidth=0.8, zorder=0)
    for edge in edges:
        color = "#b2182b" if edge.value > 0 else "#2166ac"
        width = 0.6 + 3.4 * abs(edge.value) / most
        across, up = zip(edge.start, edge.end, strict=True)
        style = "-" if edge.side == "query" else (0, (4, 1.5))
        axes.plot(across, up, color=color, linewidth=width, linestyle=style, zorder=1)
        x, y = (start + edge.at * (end - start) for start, end in (across, up))
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
        axes.text(
            x, y, edge.text, fontsize=6.5, ha="center", va="center", bbox=box, parse_math=False
        )
    axes.plot([why.query], [top], marker="o", color="black", markersize=7, zorder=2)
    axes.text(why.query, top + 0.18, str(why.head), fontsize=8, ha="center", va="bottom")
    axes.set_xticks(range(len(names)), names, fontsize=8, rotation=40, ha="right", parse_math=False)
    axes.set_yticks(range(top), [f"L{layer}" for layer in range(top)], fontsize=8)
    axes.set_xlabel(LEGEND, fontsize=7.5, color="0.35")
    axes.set_ylim(-0.75, top + 0.5)
    axes.set_xlim(-0.6, len(names) - 0.4)
    for token, label in enumerate(axes.get_xticklabels()):
        label.set_color("black" if token in used else "0.6")
    return axes


def _edges(why: Why) -> Collection[Edge]:
    """The lines from the top down; those that lie on each other are one."""
    edges = dict[tuple[object, ...], Edge]()
    for edge in _lines(why):
        line = edge.start, edge.end, edge.label, edge.side
        value = edge.value + (edges[line].value if line in edges else 0.0)
        edges[line] = replace(edge, value=value)
    return edges.values()


def _lines(why: Why) -> Iterator[Edge]:
    top = why.head.layer + 1.0
    query, weights = (why.query, top), why.row.weights
    for key, sign in ((why.key, 1), (why.versus, -1)):
        if key is not None:
            value = sign * float(weights[key])
            yield Edge((key, top - 1), query, "weight", "query", value, at=0.2, weight=True)
    for side, nodes in why.trees:
        at = why.query if side == "query" else why.key
        height = top if side == "query" else top - 1
        yield from _lines_to(nodes, (at, height), side)


def _lines_to(nodes: Sequence[Node], to: tuple[int, float], side: Side) -> Iterator[Edge]:
    for node in nodes:
        part = node.part
        if part is None or part.source is None:
            continue
        if part.kind == "head":
            assert part.layer is not None
            row = to[0] if node.query is None else node.query
            start, end = (part.source, part.layer - 0.35), (row, part.layer + 0.35)
            yield Edge(start, end, f"L{part.layer}H{part.head}", side, node.value)
            yield from _lines_to(node.children, start, side)
        elif part.kind == "mlp":
            assert part.layer is not None
            low, high = (part.source, part.layer + 0.1), (part.source, part.layer + 0.6)
            yield Edge(low, high, f"L{part.layer} MLP", side, node.value)
        else:
            low, high = (part.source, -0.7), (part.source, -0.3)
            yield Edge(low, high, part.kind, side, node.value)
