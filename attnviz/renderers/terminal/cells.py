"""Labels in terminal cells: cut, padded, measured. 楚 takes two cells, a combining mark none."""

import re
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size


def cut(label: str, width: int, *, unicode: bool = True) -> str:
    """The label, cut with `…` (ASCII: `~`) where it is wider than `width` cells.

    The number that tells repeated tokens apart is kept while there is room for it.
    """
    if cell_len(label) <= width:
        return label
    if width <= 0:
        return ""
    mark = "…" if unicode else "~"
    number = re.search(r"#\d+$", label)
    tail = mark + number[0] if number and len(number[0]) + 2 <= width else mark
    room = max(0, width - cell_len(tail))
    # set_cell_size puts a space where half of a wide letter would be left over.
    return set_cell_size(label, room).rstrip(" ") + tail


def pad(label: str, width: int, *, right: bool = False) -> str:
    """The label filled with spaces to `width` cells; `right` puts it at the right edge."""
    space = " " * max(0, width - cell_len(label))
    return space + label if right else label + space


def widest(labels: Sequence[str]) -> int:
    """The width in cells of the widest of these labels; 0 of none."""
    return max(map(cell_len, labels), default=0)
