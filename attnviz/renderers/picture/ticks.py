"""Token labels along the sides of a picture: as large as fits, thinned where they are too many."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.renderers.direction import fenced
from attnviz.renderers.terminal.cells import cut, widest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 72.0  # per inch
SMALLEST, LARGEST = 6.5, 10.0
LONGEST = 22  # cells of a label
LEAST_APART = SMALLEST * 1.1 / POINTS  # inches between labels that do not touch
_LETTER = 0.62  # of the font size: an average letter's width


@dataclass(frozen=True)
class Ticks:
    """Labels and where they stand, counted in tokens along the side; `size` in points."""

    places: tuple[float, ...]
    labels: tuple[str, ...]
    size: float

    @property
    def length(self) -> float:
        """About how long the longest label is, in inches."""
        return widest(self.labels) * _LETTER * self.size / POINTS


def ticks_for(labels: Sequence[str], indices: Sequence[int], cell: float) -> Ticks:
    """Labels for these token indices, which stand `cell` inches apart.

    Where there is no room for each, every second, fifth, tenth ... keeps its label, with
    its index in front: `120 the`. Numbers keep their side of a label that is read from
    right to left.
    """
    size = min(LARGEST, max(SMALLEST, 0.72 * cell * POINTS))
    step = _round_up(LEAST_APART / cell)
    places = range(0, len(indices), step)
    shown = [labels[indices[place]] for place in places]
    if step > 1:
        shown = [
            f"{indices[place]} {re.sub('(?<=.)#[0-9]+$', '', label)}"
            for place, label in zip(places, shown, strict=True)
        ]
    return Ticks(
        tuple(place + 0.5 for place in places),
        tuple(fenced(cut(label, LONGEST)) for label in shown),
        size,
    )


def write_rows(axes: "Axes", ticks: Ticks) -> None:
    """Write the labels at the left side."""
    axes.set_yticks(ticks.places, ticks.labels, fontsize=ticks.size, parse_math=False)


def write_columns(axes: "Axes", ticks: Ticks, cell: float) -> None:
    """Write the labels below: level where they fit, slanted where there is room, else upright."""
    if ticks.length < 0.92 * cell:
        turned: dict[str, object] = {}
    elif cell > 0.24:
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    else:
        turned = {"rotation": 90}
    axes.set_xticks(
        ticks.places,
        ticks.labels,
        fontsize=ticks.size,
        parse_math=False,
        **turned,  # type: ignore[arg-type]
    )


def _round_up(step: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    if step <= 1:
        return 1
    scale = 10 ** math.floor(math.log10(step))
    return int(next(scale * n for n in (1, 2, 5, 10) if scale * n >= step))
