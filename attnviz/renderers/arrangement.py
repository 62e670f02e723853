"""Where each of many heads stands in a grid: layers down, heads across."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.data.exhibit import Place


@dataclass(frozen=True)
class Grid:
    """The layers and heads that a grid shows, in order; None stands for "reduced over all"."""

    layers: tuple[int | None, ...]
    heads: tuple[int | None, ...]

    def slot(self, head_map: Place) -> tuple[int, int]:
        """The row and column of a map."""
        return self.layers.index(head_map.layer), self.heads.index(head_map.head)


def grid_of(maps: Sequence[Place]) -> Grid:
    """The rows and columns that these maps need."""

    def ordered(numbers: set[int | None]) -> tuple[int | None, ...]:
        return tuple(sorted(numbers, key=lambda n: (n is None, n or 0)))

    return Grid(ordered({m.layer for m in maps}), ordered({m.head for m in maps}))


def layer_name(layer: int | None) -> str:
    """`L1`; `all` where layers were reduced to one."""
    return "all" if layer is None else f"L{layer}"


def head_name(head: int | None) -> str:
    """`H2`; `all` where heads were reduced to one."""
    return "all" if head is None else f"H{head}"
