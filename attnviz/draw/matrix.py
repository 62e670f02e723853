"""The part of a map that is shown, as numbers; and its reduction to fewer, larger blocks.

In these matrices NaN means "nothing to show here": the mask forbids the link, or
a filter left it out. A weight of zero is 0.0, and looks different.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import (
    CellMap,
    Exhibit,
    HeadMap,
    HeadPlace,
    Map,
    Orient,
    links_of,
    whole_map,
)
from attnviz.records.heads import Head
from attnviz.records.transforms import UNBOUNDED, ErrorsOverTexts, Implicit


def shown(exhibit: Exhibit, head_map: Map) -> FloatArray:
    """The weights that the exhibit's filters leave (queries, keys); NaN elsewhere."""
    whole, dropped = whole_map(head_map).weights, whole_map(head_map).dropped
    queries, keys = np.array(exhibit.queries, int), np.array(exhibit.keys, int)
    picked = np.ix_(queries, keys)
    if not exhibit.filtered:
        visible = exhibit.capture.allowed()[picked] & ~np.isin(keys, dropped)
    else:
        links = links_of(exhibit, head_map)
        kept: NDArray[np.bool_] = np.zeros(whole.shape, np.bool_)
        kept[links.query, links.key] = True
        visible = kept[picked]
    weights = whole[picked].astype(np.float32)  # (queries, keys)
    return np.where(visible, weights, np.float32(np.nan))


@dataclass(frozen=True, eq=False)
class Cells:
    """A map as it is drawn: `values` (rows, columns), reduced from `shape` (rows, columns).

    `weights`: the values before they were scaled by row and reduced; None if not kept.
    `sums`: whether its rows sum to 1, which a reduced map no longer shows.
    """

    values: FloatArray
    weights: FloatArray | None
    shape: tuple[int, int]
    sums: bool

    @property
    def block(self) -> tuple[int, int]:
        """The numbers of rows and columns of weights in each cell."""
        rows, columns = map(math.ceil, np.divide(self.shape, self.values.shape))
        return rows, columns


def cells_of(
    exhibit: Exhibit,
    head_map: Map,
    most: int | None,
    *,
    by_row: bool,
    orient: Orient = "query-rows",
) -> Cells:
    """Reduce a map's weights to at most `most` cells a side, scaled by row and turned if wanted."""
    if isinstance(head_map, CellMap):  # already reduced to that many
        cells = Cells(head_map.cells, None, head_map.shape, head_map.sums)
    else:
        weights = shown(exhibit, head_map)
        values = per_row(weights) if by_row else weights
        values = block_maximum(values, most, most) if most else values
        rows, columns = weights.shape
        cells = Cells(values, weights, (rows, columns), rows_sum_to_one(weights))
    if orient == "query-rows":
        return cells
    turned = None if cells.weights is None else cells.weights.T
    return Cells(cells.values.T, turned, cells.shape[::-1], cells.sums)


@dataclass(frozen=True)
class SideLabels:
    """The labels of all tokens, and the positions of those along a side of a map."""

    labels: Sequence[str]
    positions: Sequence[int]

    @property
    def shown(self) -> list[str]:
        return [self.labels[position] for position in self.positions]


def sides_of(
    exhibit: Exhibit, queries: Sequence[str], keys: Sequence[str], orient: Orient
) -> tuple[SideLabels, SideLabels]:
    """The labels of the rows and of the columns, from those of all query and key tokens."""
    rows, columns = SideLabels(queries, exhibit.queries), SideLabels(keys, exhibit.keys)
    return (columns, rows) if orient == "key-rows" else (rows, columns)


def per_row(weights: FloatArray) -> FloatArray:
    """The weights (queries, keys), each row divided by its strongest one."""
    most = np.fmax.reduce(weights, axis=1, initial=0.0)[:, None]
    return np.divide(weights, np.where(most > 0, most, 1), dtype=np.float32)


def block_maximum(values: FloatArray, rows: int, columns: int) -> FloatArray:
    """Reduce values to at most `rows` x `columns` blocks, each with its strongest weight."""
    for axis, most in enumerate((rows, columns)):
        if values.shape[axis] > most:
            step = math.ceil(values.shape[axis] / most)
            starts = np.arange(0, values.shape[axis], step)
            values = np.fmax.reduceat(values, starts, axis=axis)
    return values


def key_shares(exhibit: Exhibit) -> FloatArray | None:
    """The share of the weight on each shown key, shape (keys); None if values are not shares.

    The sums are over all maps and the shown rows that might attend to more than one key.
    """
    capture, seen = exhibit.capture, exhibit.capture.allowed_count()
    rows = [query for query in exhibit.queries if seen[query] > 1]
    whole = [head_map.weights for head_map in exhibit.maps if isinstance(head_map, HeadMap)]
    no_shares = capture.signed or capture.transformed_by(UNBOUNDED | ErrorsOverTexts)
    if no_shares or not rows or not whole or len(whole) < len(exhibit.maps):
        return None
    total = sum(weights[rows].sum(axis=0) for weights in whole)  # (n_keys)
    shares: FloatArray = np.asarray(total / max(float(np.sum(total)), 1e-9), np.float32)
    return shares[list(exhibit.keys)]


def strongest(matrices: list[FloatArray]) -> float:
    """The largest weight in any of them: the top of their common scale; 1.0 if all are empty."""
    most = max((float(np.fmax.reduce(m, axis=None, initial=0.0)) for m in matrices), default=0.0)
    return most if most > 0 else 1.0


def farthest(matrices: list[FloatArray]) -> float:
    """The largest distance from zero in any of them: both ends of a scale with a sign."""
    ends = [float(np.fmax.reduce(np.abs(m), axis=None, initial=0.0)) for m in matrices]
    return max(ends, default=0.0) or 1.0


def unit_of(exhibit: Exhibit, most: float) -> float:
    """The power of ten in which implicit weights up to `most` are written; 1 if they are large.

    Their scale is the model's own, and two digits after the point may be 0 in all of them.
    """
    if most >= WRITTEN or not exhibit.capture.transformed_by(Implicit):
        return 1.0
    return 10.0 ** math.floor(math.log10(most))


WRITTEN = 0.1


def rows_sum_to_one(weights: FloatArray) -> bool:
    """Whether each row of shown weights (queries, keys) sums to 1, as a reader may add them up."""
    return bool(np.allclose(np.nansum(weights, axis=1), 1.0, atol=0.005))


# The places of many heads in a grid: layers down, heads across.


@dataclass(frozen=True)
class Grid:
    """The layers and heads that a grid shows, in order; None means "reduced over all"."""

    layers: tuple[int | None, ...]
    heads: tuple[int | None, ...]

    def slot(self, head_map: HeadPlace) -> tuple[int, int]:
        return self.layers.index(head_map.layer), self.heads.index(head_map.head)


def grid_of(maps: Sequence[HeadPlace]) -> Grid:
    """The rows and columns that these maps need."""

    def ordered(numbers: set[int | None]) -> tuple[int | None, ...]:
        return tuple(sorted(numbers, key=lambda n: (n is None, n or 0)))

    return Grid(ordered({m.layer for m in maps}), ordered({m.head for m in maps}))


def layer_name(layer: int | None) -> str:
    """A layer's name: `L1`, or `all` if layers were reduced to one."""
    return "all" if layer is None else f"L{layer}"


def head_name(head: int | None) -> str:
    """A head's name: `H2`, or `all` if heads were reduced to one."""
    return "all" if head is None else f"H{head}"


def by_head(values: Iterable[tuple[Head, float]]) -> FloatArray:
    """Values as a matrix (layers, heads), NaN without a head."""
    pairs = list(values)
    shape = max(head.layer for head, _ in pairs) + 1, max(head.head for head, _ in pairs) + 1
    matrix = np.full(shape, np.nan, np.float32)
    for head, value in pairs:
        matrix[head] = value
    return matrix


def largest(values: FloatArray) -> float:
    """The absolute value farthest from zero; 0 if there are no values."""
    return 0.0 if np.isnan(values).all() else float(np.nanmax(np.abs(values)))


def digits_of(values: FloatArray) -> int:
    """Decimals for a map of these values, with which the largest does not round to zero."""
    most = largest(values) or 1.0
    return 2 if most >= 0.1 else 3 if most >= 0.01 else 4
