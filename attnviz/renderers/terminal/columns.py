"""How the table's keys are laid out side by side: what each column takes, and how long bars are."""

from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_BAR, SHORTEST_BAR = 10, 4
NUMBER = len(" 0.48 ")
GAP = 2


@dataclass(frozen=True)
class Rank:
    """What the k-th strongest keys of all rows need: their widest label, their largest weight."""

    label: int
    strongest: float


@dataclass(frozen=True)
class Columns:
    """The layout: per column the cells of (key label, bar).

    A bar of a weight of `full` is `bar` cells long; columns of weaker ranks are narrower,
    as the second strongest of a row that sums to 1 cannot be more than a half.
    """

    cells: tuple[tuple[int, int], ...]
    bar: int
    full: float


def arrange(
    ranks: Sequence[Rank], n: int, room: int, *, shortest: int = SHORTEST_BAR
) -> Columns | None:
    """`n` columns (fewer if there are fewer ranks) with the longest bars that fit in `room` cells.

    Rank k goes to column k modulo n. None where even bars of `shortest` cells do not fit.
    """
    n = max(1, min(n, len(ranks)))
    full = max([1.0, *(rank.strongest for rank in ranks)])
    for bar in range(LONGEST_BAR, shortest - 1, -1):
        cells = []
        for column in range(n):
            mine = ranks[column::n]
            label = max((rank.label for rank in mine), default=0)
            most = max((rank.strongest for rank in mine), default=0.0)
            cells.append((label, max(1, round(bar * most / full))))
        if sum(label + NUMBER + drawn for label, drawn in cells) + GAP * (n - 1) <= room:
            return Columns(tuple(cells), bar, full)
    return None
