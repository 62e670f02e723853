"""Heads that are alike, shown: tables, and a tree of groups beside a map of the heads."""

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from attnviz.commands.atlas.alike import AlikeHeads, HeadGroup, HeadGroups
from attnviz.commands.atlas.record import SCORES
from attnviz.commands.atlas.terminal import letters, score_number
from attnviz.commands.atlas.views import size_of
from attnviz.console import Display
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import GREY, sheet, write_line
from attnviz.draw.terminal.cells import Column, folded, listing
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.records.capture import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STANDING = 2
"""How many scores of a group are named."""
APART = "distance: of all scores, each in standard deviations over the heads that are compared"
COLORS = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"
"""Okabe and Ito's colours, which are told apart in every form of colour-blindness."""
BRIGHT = COLORS[3:6]
"""Those on which letters are black."""


def _about(of: AlikeHeads | HeadGroups) -> str:
    return f"scan of {size_of(of.size)}: means over {of.mean_over}"


def alike_title(alike: AlikeHeads) -> str:
    model, other = readable(alike.model), readable(alike.other)
    if alike.asked is not None:
        there = "" if model == other else f" of {other}"
        return f"the heads{there} most like {alike.asked} of {model}, {_about(alike)}"
    if alike.best:
        return f"each head of {model} and the most similar one of {other}, {_about(alike)}"
    return f"each head of {model} and the same one of {other}, {_about(alike)}"


def render_alike(alike: AlikeHeads, display: Display, top: int) -> Iterator[Text]:
    """The pairs in a table, with the score in which they differ most."""
    yield from folded(Text(letters(alike_title(alike), display), "dim"), display.width)
    yield Text()
    columns = [
        *([] if alike.asked else [Column("head")]),
        *([Column("head" if alike.asked else "most like")] if alike.best else []),
        Column("distance", right=True),
        *([Column("mutual")] if alike.best else []),
        Column("differ most in"),
    ]
    rows = [
        (
            *([] if alike.asked else [str(each.head)]),
            *([str(each.other)] if alike.best else []),
            f"{each.distance:.2f}",
            *(["yes" if each.mutual else ""] if alike.best else []),
            letters(
                f"{SCORES[each.score].label} {score_number(each.score, each.value, display)} → "
                f"{score_number(each.score, each.other_value, display)}",
                display,
            ),
        )
        for each in alike.pairs[:top]
    ]
    yield from listing(columns, rows, display.width)
    yield Text()
    nearest = "; mutual: each is the nearest to the other" if alike.best else ""
    yield from folded(Text(f"{APART}{nearest}", "dim"), display.width)


def groups_title(groups: HeadGroups) -> str:
    heads = f"{readable(groups.model)}, {amount(len(groups.heads), 'head')}"
    return f"{heads} in {amount(len(groups.groups), 'group')} by their scores, {_about(groups)}"


def _stands_out(group: HeadGroup, display: Display) -> str:
    """`induction 0.612 (+2.9), copies 0.3 (+1.8)`."""
    return ", ".join(
        f"{SCORES[name].label} {score_number(name, mean, display)} ({far:+.1f})"
        for name, mean, far in group.scores[:STANDING]
    )


def render_groups(groups: HeadGroups, display: Display, top: int) -> Iterator[Text]:
    """Each group: its heads, the nearest to the centre first, and what makes it stand out."""
    yield from folded(Text(letters(groups_title(groups), display), "dim"), display.width)
    for group in groups.groups:
        yield Text()
        named, more = group.heads[:top], len(group.heads) - top
        heads = " ".join(map(str, named)) + (f" and {more} more" if more > 0 else "")
        title = f"group {group.number}, {amount(len(group.heads), 'head')}: "
        title += _stands_out(group, display)
        yield from folded(Text(letters(title, display), "bold"), display.width)
        yield from folded(Text(f"  {heads}"), display.width)
    yield Text()
    note = (
        "behind each score: how far the group's mean is from that of all heads, in standard "
        "deviations over heads; Ward's method"
    )
    yield from folded(Text(note, "dim"), display.width)


LEAF, WIDE, CELL, APART_BY = 0.17, 3.2, 0.34, 1.0  # inches
LETTERS = 15  # of a line, in an inch


def draw_groups(groups: HeadGroups, *, dpi: int = 150, cmap: str = "") -> Drawn:
    """The tree of all heads, and beside it their map, in the colours of their groups."""
    title, tall = groups_title(groups), max(len(groups.heads) * LEAF, 2.0)
    with sheet([title], dpi=dpi, cmap=cmap or "viridis") as (figure, fonts):
        _draw_tree(place(figure, 0, 0, WIDE, tall), groups)
        numbers = by_head((head, float(n)) for head, n in groups.group_of.items())
        layers, across = numbers.shape
        left, height = WIDE + APART_BY, layers * CELL
        _draw_map(place(figure, left, tall - height, across * CELL, height), numbers)
        legend = "\n".join(f"{g.number}: {_stands_out(g, Display())}" for g in groups.groups)
        write_line(figure, -0.6, legend, size=8, va="top", color=GREY)
        room = int((left + across * CELL) * LETTERS * 0.8)
        write_line(figure, tall + 0.12, fill(fonts.spell(title), room))
    return Drawn(figure, fonts.notes)


def _color(group: float) -> str:
    return COLORS[int(group - 1) % len(COLORS)]


def _draw_tree(axes: "Axes", groups: HeadGroups) -> None:
    """The order in which Ward's method joined the heads; grey above the groups."""
    from scipy.cluster.hierarchy import dendrogram

    of_head = groups.group_of
    below = [{of_head[head]} for head in groups.heads]  # the groups under each node
    for one, other in groups.tree[:, :2].astype(int).tolist():
        below.append(below[one] | below[other])
    colors = [_color(min(each)) if len(each) == 1 else GREY for each in below]
    drawn = dendrogram(
        groups.tree,
        labels=[str(head) for head in groups.heads],
        orientation="left",
        ax=axes,
        leaf_font_size=7,
        link_color_func=colors.__getitem__,
    )
    for label, leaf in zip(axes.get_yticklabels(), drawn["leaves"], strict=True):
        label.set_color(colors[leaf])
    axes.set_xlabel("distance at which groups are joined", fontsize=8)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)


def _draw_map(axes: "Axes", numbers: FloatArray) -> None:
    """Each head's group (layers, heads), NaN where there is no head."""
    from matplotlib.colors import to_rgb

    layers, across = numbers.shape
    shown = np.ones((layers, across, 3))
    for (layer, head), value in np.ndenumerate(numbers):
        if not np.isnan(value):
            number = float(value)
            shown[layer, head] = to_rgb(_color(number))
            ink = "black" if _color(number) in BRIGHT else "white"
            axes.text(head, layer, f"{number:.0f}", ha="center", va="center", fontsize=7, color=ink)
    axes.imshow(shown, aspect="auto")
    axes.set_xticks(range(across), [f"H{head}" for head in range(across)])
    axes.set_yticks(range(layers), [f"L{layer}" for layer in range(layers)])
    axes.tick_params(labelsize=7, length=0)
