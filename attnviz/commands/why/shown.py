"""Contrasts, shown: sentences, bars and tables in a terminal, and a picture.

The picture is the table of the contrast's terms, or the tree that its parts were made by, drawn as
a circuit: tokens across, layers up. A line leads from the token that a head read to the token at
which it wrote; it is dashed on the side of the keys. The lines at the top are the head's own
weights; all others are parts of the contrast.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.why.titles import (
    about_write,
    asked_why,
    chosen_in_mean,
    difference,
    found_in_mean,
    found_why,
    identity,
    summed_in_mean,
)
from attnviz.console import Display
from attnviz.draw.effects import mean_parts, part_name, said_of_features, strongest_parts
from attnviz.draw.labels import DIVERGING, fenced, names_of
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import sheet, write_heading
from attnviz.draw.picture.paint import draw_bar
from attnviz.draw.terminal.around import in_ascii
from attnviz.draw.terminal.cells import Column, cut, folded, listing, named_bars, table, words
from attnviz.draw.titles import caption
from attnviz.records.parts import Shares
from attnviz.records.why import Node, Reader, Removal, Side, Why, WhyMean, Write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACCOUNTING = (
    "an accounting with norms and attention held fixed: it says what adds up to the score, not "
    "what would happen without it"
)


def side_title(why: Why, side: Side, names: Sequence[str]) -> str:
    """The title of a column of parts."""
    if side == "query":
        return f"what the query asks with: the parts at {names[why.query]}"
    keys = names[why.key] if why.versus is None else f"{names[why.key]} and {names[why.versus]}"
    return f"what the keys answer with: the parts at {keys}" + (
        ", and at the other keys" if why.versus is None else ""
    )


KEPT = (
    "taken away only from what this head reads on that side: the other side, and what earlier "
    "parts made of it, stay as they were"
)
"""The parts of a run that a removal leaves as they were."""


def removed(why: Why, removal: Removal, names: Sequence[str]) -> str:
    """The effect of the removal of a part."""
    side = "query" if removal.side == "query" else "keys"
    effect = (
        f"without {part_name(removal.part, names)} at the {side}: {removal.predicted:+.3f} by the "
        f"sum, {removal.fixed:+.3f} computed with norms held fixed"
    )
    if removal.free is None or removal.weight is None:
        return f"{effect}; no norm before this head's attention could be recomputed"
    return (
        f"{effect}, {removal.free:+.3f} with norms recomputed (weight "
        f"{why.row.weights[why.key]:.2f} to {removal.weight:.2f})"
    )


# In a terminal.

SOURCES, READERS = 8, 8
SIDE = {"query": "query", "key": "keys"}
READ_BY = {"query": "its query", "key": "its keys", "value": "its values"}


def render(why: Why, display: Display, top: int) -> Iterator[RenderableType]:
    """Render the contrast, its parts on both sides, the strongest pairs, the trees and removals."""

    def bold(sentence: str) -> list[Text]:
        return folded(Text(sentence, "bold"), display.width)

    names = [fenced(name) for name in names_of(why.tokens, unicode=display.unicode)]
    yield from bold(_letters(found_why(why, names), display))
    yield from folded(Text(difference(why, names), "dim"), display.width)
    sides: tuple[tuple[Side, Shares], ...] = (("query", why.query_shares), ("key", why.key_shares))
    for side, shares in sides:
        yield Text()
        yield from bold(side_title(why, side, names))
        yield from named_bars(strongest_parts(shares, top, names), display)
    yield Text()
    title = "the strongest terms: a part at the query × a part at the keys"
    yield from bold(_letters(title, display))
    rows = [
        (f"{part_name(pair.query, names)} × {part_name(pair.key, names)}", pair.value)
        for pair in why.pairs
        if pair.query is not None and pair.key is not None
    ][:top]
    rest = why.contrast - sum(value for _, value in rows)
    rows = [(_letters(name, display), value) for name, value in rows]
    yield from named_bars([*rows, ("all others", rest)], display)
    for side, nodes in why.trees:
        yield Text()
        yield from bold(f"what the strongest parts at the {SIDE[side]} are made of")
        yield from _tree(nodes, names, display)
    if why.removals:
        yield Text()
        for removal in why.removals:
            yield from folded(Text(removed(why, removal, names)), display.width)
        yield from folded(Text(KEPT, "dim"), display.width)
    yield Text()
    closing = f"{ACCOUNTING}; error of the sums: {why.error:.0e} of their terms' sizes"
    of_features = [said_of_features(why.explained)] if why.explained else []
    for sentence in (*of_features, identity(why), closing):
        yield from folded(Text(sentence, "dim"), display.width)


def render_mean(mean: WhyMean, display: Display, top: int) -> Iterator[RenderableType]:
    """Render the mean contrast, and its parts on both sides."""
    for line in (found_in_mean(mean), summed_in_mean(mean)):
        yield from folded(Text(_letters(line, display), "bold"), display.width)
    yield from folded(Text(chosen_in_mean(mean), "dim"), display.width)
    for title, shares in (
        ("what the queries ask with", mean.query_shares),
        ("what the keys answer with", mean.key_shares),
    ):
        yield Text()
        yield Text(title, "bold")
        yield from mean_parts(shares, mean.roles, top, display.width)
    yield Text()
    note = "± s.e.: standard error over these texts; a part below two of them may be chance"
    of_features = [said_of_features(mean.explained)] if mean.explained else []
    for sentence in (*of_features, note, ACCOUNTING):
        yield from folded(Text(sentence, "dim"), display.width)


def _letters(sentence: str, display: Display) -> str:
    """A sentence in letters that the display has."""
    return sentence if display.unicode else in_ascii(sentence)


def _tree(
    nodes: Sequence[Node], names: Sequence[str], display: Display, depth: int = 1
) -> Iterator[Text]:
    """Each part below the one that it is part of; a head with the options that ask about it."""
    for node in nodes:
        line = Text(f"{'  ' * depth}{part_name(node.part, names)}  {node.value:+z.3f}")
        if node.part is not None and node.part.kind == "head":
            head = f"L{node.part.layer}H{node.part.head}"
            values = (("head", head), ("query", node.query), ("key", node.key))
            options = " ".join(display.speller(name, str(value)) for name, value in values)
            line.append(f"  why {options}", "dim")
        yield from folded(line, display.width)
        yield from _tree(node.children, names, display, depth + 1)


def render_write(write: Write, display: Display) -> Iterator[RenderableType]:
    """Render a head's addition from each token, the tokens it moves, and its readers."""
    names = [fenced(name) for name in names_of(write.tokens, unicode=display.unicode)]
    about = _letters(about_write(write, names), display)
    yield from folded(Text(about, "bold"), display.width)
    yield Text()
    columns = [
        words("token it reads", lambda i: names[i]),
        words("weight on it", lambda i: f"{write.weights[i]:.2f}", right=True),
        words("length it adds", lambda i: f"{write.lengths[i]:.2f}", right=True),
    ]
    order = np.argsort(-write.lengths, kind="stable")[:SOURCES].tolist()
    shown = [i for i in order if write.weights[i] >= 0.005 or write.lengths[i] >= 0.005]
    yield from table(shown, columns, display.width)
    if write.moved:
        yield Text()
        title = (
            "direct effect on the logits of the next token, with the last norm held fixed, minus "
            "its mean over all tokens"
        )
        yield from folded(Text(title, "bold"), display.width)
        rows = []
        for label, moved in write.moved:
            sign = 1 if moved.effect > 0 else -1
            source = int(np.argmax(sign * np.array(moved.by_source)))
            share = f"{names[source]} {moved.by_source[source]:+z.2f}"
            rows.append((fenced(label), f"{moved.effect:+z.2f}", share))
        heads = [Column("next token"), Column("change of its logit", right=True)]
        yield from listing([*heads, Column("most of it from")], rows, display.width)
    for through, by in READ_BY.items():
        readers = [reader for reader in write.readers if reader.through == through]
        if readers:
            yield Text()
            title = f"later heads that read it through {by}"
            yield from folded(Text(title, "bold"), display.width)
            yield from _readers(readers, names, display)


def _readers(readers: Sequence[Reader], names: Sequence[str], display: Display) -> Iterator[Text]:
    by_value = readers[0].through == "value"
    sign, wide, unicode = "" if by_value else "+", 20, display.unicode
    of = "of a value of" if by_value else "to a contrast of"
    columns = [
        words("later head", lambda reader: str(reader.head)),
        words("its query", lambda reader: cut(names[reader.query], wide, unicode=unicode)),
        words("its key", lambda reader: cut(names[reader.key], wide, unicode=unicode)),
        words("length" if by_value else "adds", lambda r: f"{r.value:{sign}.2f}", right=True),
        words(of, lambda reader: f"{reader.total:{sign}.2f}", right=True),
    ]
    strongest = sorted(readers, key=lambda reader: -abs(reader.value))[:READERS]
    yield from table(strongest, columns, display.width)


# As a picture.

CELL, LAYER, TOKEN = 0.55, 0.75, 0.95  # inches
LEGEND = (
    "black: weights; below: the strongest parts of the contrast, red raises it, blue lowers it.\n"
    "Wider: larger; solid: what the query asks with; dashed: what the keys answer with"
)


def draw(why: Why, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """Draw the tree where there is one, else the table of terms."""
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
    drawn = axes.imshow(why.table, cmap=cmap, vmin=-most, vmax=most, aspect="auto")
    draw_bar(place(figure, columns * CELL + 0.1, 0, 0.12, rows * CELL), drawn, "score")
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

    `at`: the place of the label on the line. `weight`: it is a weight of the head itself, and no
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
        color = "0.2" if edge.weight else "#b2182b" if edge.value > 0 else "#2166ac"
        width = 0.6 + 3.4 * abs(edge.value) / most
        across, up = zip(edge.start, edge.end, strict=True)
        style = "-" if edge.side == "query" else (0, (4, 1.5))
        axes.plot(across, up, color=color, linewidth=width, linestyle=style, zorder=1)
        x, y = (start + edge.at * (end - start) for start, end in (across, up))
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
        off, ha = (0.04, "left") if edge.side == "query" else (-0.04, "right")
        off, ha = (off, ha) if across[0] == across[1] else (0.0, "center")  # beside upright lines
        text = axes.text(x + off, y, edge.text, fontsize=6.5, va="center", parse_math=False)
        text.set(ha=ha, bbox=box)
    axes.plot([why.query], [top], marker="o", color="black", markersize=7, zorder=2)
    axes.text(why.query, top + 0.18, str(why.head), fontsize=8, ha="center", va="bottom")
    axes.set_xticks(range(len(names)), names, fontsize=8, rotation=40, ha="right", parse_math=False)
    axes.set_yticks(range(top), [f"L{layer}" for layer in range(top)], fontsize=8)
    axes.set_xlabel(LEGEND, fontsize=7.5, color="0.35", loc="left")
    axes.set_ylim(-0.75, top + 0.5)
    axes.set_xlim(-0.85, len(names) - 0.15)
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
            at = 0.7 if side == "query" else 0.3  # so that lines that cross are told apart
            yield Edge(start, end, f"L{part.layer}H{part.head}", side, node.value, at)
            yield from _lines_to(node.children, start, side)
        elif part.kind == "mlp":
            assert part.layer is not None
            low, high = (part.source, part.layer + 0.1), (part.source, part.layer + 0.6)
            yield Edge(low, high, f"L{part.layer} MLP", side, node.value)
        else:
            low, high = (part.source, -0.7), (part.source, -0.3)
            name = part.kind if part.feature is None else f"feature {part.feature}"
            yield Edge(low, high, name, side, node.value)
