"""Circuits as a picture: copying by head, and a matrix of writers and readers for each way."""

from typing import TYPE_CHECKING

import numpy as np

from attnviz.draw.labels import DIVERGING, SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import draw_bar, sheet, write_line
from attnviz.draw.picture.paint import EMPTY
from attnviz.records.parts import Circuits
from attnviz.renderers.heads_titles import circuits_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE, GAP = 2.4, 1.35  # inches
APART, BAR = 0.08, 0.12
LABELS = 24  # heads along a side that are named at most


def draw(circuits: Circuits, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The panes side by side: copying first, then the compositions over what chance would give.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    title = circuits_title(circuits)
    with sheet([title], dpi=dpi, cmap=cmap) as (figure, fonts):
        left = 0.0
        if circuits.copying:
            _draw_copying(*_pane(figure, left), circuits)
            left += SIDE + GAP
        for through, scores in circuits.composed.items():
            axes, bar = _pane(figure, left)
            _draw_composition(axes, bar, circuits, scores / circuits.expected[through], cmap)
            axes.set_title(f"read through the {through}, × chance", fontsize=9, loc="left")
            left += SIDE + GAP
        write_line(figure, SIDE + 0.45, fonts.spell(title))
    return Drawn(figure, fonts.notes)


def _pane(figure: "Figure", left: float) -> "tuple[Axes, Axes]":
    """The axes of a pane, and those of its colour bar."""
    beside = place(figure, left + SIDE + APART, 0, BAR, SIDE)
    return place(figure, left, 0, SIDE, SIDE), beside


def _draw_copying(axes: "Axes", bar: "Axes", circuits: Circuits) -> None:
    values = by_head((each.head, each.eigenvalues) for each in circuits.copying)
    axes.set_facecolor(EMPTY)
    shown = axes.imshow(values, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    draw_bar(bar, shown)
    axes.set_title("copying: Σλ / Σ|λ|", fontsize=9, loc="left")
    axes.set_xticks(range(values.shape[1]), [f"H{i}" for i in range(values.shape[1])], fontsize=7)
    axes.set_yticks(range(values.shape[0]), [f"L{i}" for i in range(values.shape[0])], fontsize=7)


def _draw_composition(
    axes: "Axes",
    bar: "Axes",
    circuits: Circuits,
    scores: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]",
    cmap: str,
) -> None:
    axes.set_facecolor(EMPTY)
    shown = axes.imshow(
        scores, cmap=cmap, vmin=0, vmax=float(np.nan_to_num(scores).max()) or 1.0, aspect="auto"
    )
    draw_bar(bar, shown)
    every = max(1, len(circuits.heads) // LABELS + (len(circuits.heads) % LABELS > 0))
    at = range(0, len(circuits.heads), every)
    names = [str(circuits.heads[i]) for i in at]
    axes.set_xticks(list(at), names, fontsize=6, rotation=90)
    axes.set_yticks(list(at), names, fontsize=6)
    axes.set_xlabel("reader", fontsize=8)
    axes.set_ylabel("writer", fontsize=8)
