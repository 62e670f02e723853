"""What is kept of the blocks of rows that a model hands over: links, or cells of a picture.

Each of these is the consumer of one run. Reduced, a long text takes memory for what is shown
of it and never for its n x n matrices.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attnviz.data.blocks import FloatArray, IntArray, PatternBlock
from attnviz.data.exhibit import CellMap, LinkMap, Links
from attnviz.data.head import Head


@dataclass(frozen=True, eq=False)
class _Rows:
    """The strongest links of a head: keys and weights (n, top), -1 where none; sums of rows (n)."""

    keys: IntArray
    weights: FloatArray
    totals: FloatArray


@dataclass
class KeepLinks:
    """The strongest `top` links of each row to the keys asked for, none weaker than `least`,
    and none over a distance (query minus key) that is to be skipped."""

    n_queries: int
    keys: Sequence[int]
    causal: bool
    top: int
    least: float
    skip: tuple[int, ...] = ()
    _kept: dict[Head, _Rows] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        apart = block.queries[:, None] - np.arange(block.weights.shape[2])
        hidden = np.isin(apart, self.skip) if self.skip else None
        keys, weights = _strongest(block.weights, self._asked, self.top, hidden)
        if self.causal:  # a first row sees fewer keys than `top`
            weights[keys > block.queries[:, None]] = -1
        for i, head in enumerate(block.heads):
            rows = self._rows(Head(block.layer, head))
            rows.keys[block.queries, : keys.shape[2]] = keys[i]
            rows.weights[block.queries, : keys.shape[2]] = weights[i]
            rows.totals[block.queries] = block.sums[i]

    @cached_property
    def _asked(self) -> IntArray:
        return np.array(self.keys, np.int64)

    def _rows(self, head: Head) -> _Rows:
        if head not in self._kept:
            shape = self.n_queries, self.top
            nothing = np.full(shape, -1), np.full(shape, -1, np.float32)
            self._kept[head] = _Rows(*nothing, np.zeros(self.n_queries, np.float32))
        return self._kept[head]

    def maps(self) -> tuple[LinkMap, ...]:
        """A map for each head."""
        return tuple(self._map(head, rows) for head, rows in sorted(self._kept.items()))

    def _map(self, head: Head, rows: _Rows) -> LinkMap:
        query, rank = np.nonzero((rows.weights >= 0) & (rows.weights >= self.least))
        links = Links(query, rows.keys[query, rank], rows.weights[query, rank])
        return LinkMap(head.layer, head.head, links=links, totals=rows.totals)


def _strongest(
    weights: FloatArray, asked: IntArray, top: int, hidden: NDArray[np.bool_] | None
) -> tuple[IntArray, FloatArray]:
    """Of each row the strongest weights on these keys: keys and weights (heads, rows, ≤ top).

    `hidden` (rows, n) are links that count for -1.

    Of equal ones the earlier key comes first, and so none that the mask forbids, whose weight
    is 0, before one that it allows.
    """
    seen = asked[asked < weights.shape[2]]
    left = weights.copy() if hidden is None else np.where(hidden, np.float32(-1), weights)
    left = left if len(seen) == weights.shape[2] else left[:, :, seen]
    shape = *left.shape[:2], min(top, len(seen))
    flat = left.reshape(shape[0] * shape[1], left.shape[2])
    keys, values = (np.empty((len(flat), shape[2]), kind) for kind in (np.int64, np.float32))
    row = np.arange(len(flat))
    for rank in range(shape[2]):  # argmax is so fast that a few of them beat any sorting
        strongest = flat.argmax(axis=1)
        keys[:, rank], values[:, rank] = seen[strongest], flat[row, strongest]
        flat[row, strongest] = -1
    return keys.reshape(shape), values.reshape(shape)


@dataclass
class KeepCells:
    """Blocks of at most `most` a side over the queries and keys asked for, as `CellMap`s."""

    queries: Sequence[int]
    keys: Sequence[int]
    causal: bool
    most: int
    _kept: dict[Head, FloatArray] = field(default_factory=dict)
    _sums: dict[Head, bool] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        down, across = self._block
        columns = bisect_left(self.keys, block.weights.shape[2])  # of the keys asked for
        everything = columns == block.weights.shape[2]
        shown = block.weights if everything else block.weights[:, :, self.keys[:columns]]
        sums = block.sums if everything else shown.sum(axis=2)  # (heads, rows)
        off: FloatArray = np.abs(sums - 1).max(axis=1)  # (heads)
        rows = np.searchsorted(self.queries, block.queries) // down  # (rows), rising
        touched, starts = np.unique(rows, return_index=True)
        bounds = zip(starts, (*starts[1:], len(rows)), strict=True)
        # several times faster than numpy's reduceat
        reduced = np.stack([shown[:, a:b].max(axis=1) for a, b in bounds], axis=1)
        padded = np.pad(reduced, ((0, 0), (0, 0), (0, -columns % across)))
        reduced = np.maximum.reduce([padded[:, :, i::across] for i in range(across)])
        for i, head in enumerate(Head(block.layer, head) for head in block.heads):
            cells = self._kept.setdefault(head, np.zeros(self._shape, np.float32))
            place = touched[:, None], np.arange(reduced.shape[2])
            cells[place] = np.maximum(cells[place], reduced[i])
            self._sums[head] = self._sums.get(head, True) and bool(off[i] < 0.005)

    @property
    def _block(self) -> tuple[int, int]:
        """How many (queries, keys) a cell stands for."""
        down, across = (math.ceil(len(asked) / self.most) for asked in (self.queries, self.keys))
        return down, across

    @property
    def _shape(self) -> tuple[int, int]:
        down, across = self._block
        return math.ceil(len(self.queries) / down), math.ceil(len(self.keys) / across)

    def maps(self) -> tuple[CellMap, ...]:
        """A map for each head."""
        hidden = self._hidden()
        return tuple(
            CellMap(
                head.layer,
                head.head,
                cells=np.where(hidden, np.float32(np.nan), cells),
                shape=(len(self.queries), len(self.keys)),
                sums=self._sums[head],
            )
            for head, cells in sorted(self._kept.items())
        )

    def _hidden(self) -> NDArray[np.bool_]:
        """True for cells of whose links the mask forbids every one."""
        if not self.causal:
            return np.zeros(self._shape, np.bool_)
        down, across = self._block
        last = np.minimum(np.arange(self._shape[0]) * down + down, len(self.queries)) - 1
        hidden: NDArray[np.bool_] = (
            np.array(self.keys)[::across] > np.array(self.queries)[last][:, None]
        )
        return hidden
