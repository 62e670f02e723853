"""Where each of many heads stands in a grid: layers down, heads across."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Place
from attnviz.records.heads import Head
from attnviz.records.parts import Part


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


def by_head(values: Iterable[tuple[Head, float]]) -> FloatArray:
    """(layers, heads), NaN where there is no head."""
    pairs = list(values)
    shape = max(head.layer for head, _ in pairs) + 1, max(head.head for head, _ in pairs) + 1
    made = np.full(shape, np.nan, np.float32)
    for head, value in pairs:
        made[head] = value
    return made


OTHER_PARTS = {"mlp": "MLP", "layer": "layer"}
"""Parts that a layer has one of, and their names."""


def by_part(values: Iterable[tuple[Part, float]]) -> tuple[FloatArray, tuple[str, ...]]:
    """(layers, columns), NaN where there is nothing, and the names of the columns.

    The columns are the heads, then the MLP and the whole layer, as far as there are values of them.
    """
    pairs = list(values)
    heads = max((part.head + 1 for part, _ in pairs if part.head is not None), default=0)
    others = [kind for kind in OTHER_PARTS if any(part.kind == kind for part, _ in pairs)]
    column = {kind: heads + i for i, kind in enumerate(others)}
    layers = max(part.layer or 0 for part, _ in pairs) + 1
    made = np.full((layers, heads + len(others)), np.nan, np.float32)
    for part, value in pairs:
        across = column[part.kind] if part.head is None else part.head
        made[part.layer or 0, across] = value
    return made, (*map(head_name, range(heads)), *(OTHER_PARTS[kind] for kind in others))


def largest(values: FloatArray) -> float:
    """The value farthest from zero, as a size; 0 where there is none."""
    return 0.0 if np.isnan(values).all() else float(np.nanmax(np.abs(values)))


def digits_for(most: float) -> int:
    """Behind the point, so that the largest value does not look like nothing."""
    return 2 if most >= 0.1 else 3 if most >= 0.01 else 4
