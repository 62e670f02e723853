"""Names beside points: where each can stand so that none covers another or leaves the picture."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

AWAY = (0.06, 0.12, 0.2, 0.32, 0.48, 0.7)  # inches from the point
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
    """A box for each name, near its point; None where there is no place for it.

    Each name takes, in order, the place that covers the fewest points, and of such places the
    nearest.

    Args:
        marked: the points that have names, in inches from the lower left corner.
        sizes: width and height of each name, in inches.
        points (n, 2): all points, which names should not cover.
        room: width and height of the picture; no box leaves it.
    """
    taken: list[Box] = []
    found: list[Box | None] = []
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
        found.append(best)
        taken += [best] if best else []
    return found


def spread(heights: Sequence[float], least: float, top: float) -> list[float]:
    """The nearest heights that lie at least so far apart, from 0 up to `top`, in the same order.

    Where there is no room for all of them, they are closer.
    """
    if not heights:
        return []
    apart = min(least, top / max(1, len(heights) - 1))
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    wanted = np.array([heights[i] for i in order]) - apart * np.arange(len(order))
    # the nearest rising sequence: means of neighbours that are out of order, until none is
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
