"""Token labels for a place of limited width: told apart, cut, padded, in ASCII where needed.

Widths are terminal cells: 楚 takes two, a combining mark none.
"""

import re
from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from attnviz.data.tokens import Token


def distinct_labels(tokens: Sequence[Token], *, unicode: bool = True) -> tuple[str, ...]:
    """One label per token; where a label occurs more than once, `the#1`, `the#2` and so on.

    The number is the one that `--query the#2` takes. Without `unicode`, letters beyond
    ASCII are written as escapes.
    """
    named = told_apart([standing(token.label) for token in tokens])
    return tuple(named if unicode else map(ascii_only, named))


def told_apart(labels: Sequence[str]) -> list[str]:
    """The labels, those that occur more than once with a number each."""
    total, seen = Counter(labels), Counter[str]()
    named = []
    for label in labels:
        seen[label] += 1
        named.append(f"{label}#{seen[label]}" if total[label] > 1 else label)
    return named


def standing(label: str) -> str:
    """The label so that it stands alone: a combining mark at its start gets a dotted circle."""
    return f"◌{label}" if label and cell_len(label[0]) == 0 else label


def ascii_only(text: str) -> str:
    """The text with every letter beyond ASCII as an escape, such as `\\u695a`."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


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
