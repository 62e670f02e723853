"""What is kept of the blocks of rows that a model hands over: everything, links, or cells.

Each of these is the consumer of one run. Reduced, a long text takes memory for what is shown
of it and never for its n x n matrices.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attnviz.data.capture import FloatArray, IntArray, PatternBlock
from attnviz.data.exhibit import CellMap, LinkMap, Links
from attnviz.data.heads import Head


@dataclass
class KeepLinks:
    """The strongest `top` links of each row to the keys asked for, none weaker than `least`."""

    n_queries: int
    keys: Sequence[int]
    causal: bool
    top: int
    least: float
    _kept: dict[Head, list[tuple[IntArray, IntArray, FloatArray, FloatArray]]] = field(
        default_factory=dict
    )

    def __call__(self, block: PatternBlock) -> None:
        totals = block.weights.sum(axis=2)  # (heads, rows)
        left = _visible(block, self.keys, self.causal)  # (heads, rows, n), -1 where not
        top = min(self.top, left.shape[2])
        keys = np.empty((*totals.shape, top), np.int64)
        weights = np.empty((*totals.shape, top), np.float32)
        for rank in range(top):  # argmax is so fast that a few of them beat any sorting
            strongest = left.argmax(axis=2)[..., None]
            keys[..., rank : rank + 1] = strongest
            weights[..., rank : rank + 1] = np.take_along_axis(left, strongest, axis=2)
            np.put_along_axis(left, strongest, -1, axis=2)
        for i, head in enumerate(block.heads):
            rows = block.queries, keys[i], weights[i], totals[i]
            self._kept.setdefault(Head(block.layer, head), []).append(rows)

    def maps(self) -> tuple[LinkMap, ...]:
        """A map for each head."""
        return tuple(self._map(head) for head in sorted(self._kept))

    def _map(self, head: Head) -> LinkMap:
        parts = self._kept[head]
        queries = np.concatenate([rows[0] for rows in parts])
        # the first rows of a text may see fewer keys than `top`
        most = max(rows[1].shape[1] for rows in parts)
        keys = np.concatenate([_widened(rows[1], most) for rows in parts])  # (rows, top)
        weights = np.concatenate([_widened(rows[2], most) for rows in parts])
        row, rank = np.nonzero((weights >= 0) & (weights >= self.least))
        totals = np.zeros(self.n_queries, np.float32)
        totals[queries] = np.concatenate([rows[3] for rows in parts])
        links = Links(queries[row], keys[row, rank], weights[row, rank])
        return LinkMap(head.layer, head.head, links=links, totals=totals)


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
        down, across = (math.ceil(len(asked) / self.most) for asked in (self.queries, self.keys))
        shape = math.ceil(len(self.queries) / down), math.ceil(len(self.keys) / across)
        columns = np.array(self.keys)[np.array(self.keys) < block.weights.shape[2]]
        shown = _visible(block, self.keys, self.causal)[:, :, columns]  # (heads, rows, columns)
        sums = (np.maximum(shown, 0).sum(axis=2) - 1) ** 2 < 0.005**2  # (heads, rows)
        starts = np.arange(0, len(columns), across)
        reduced = np.maximum.reduceat(shown, starts, axis=2) if len(starts) else shown
        rows = np.searchsorted(self.queries, block.queries) // down  # (rows), rising
        touched, starts = np.unique(rows, return_index=True)
        reduced = np.maximum.reduceat(reduced, starts, axis=1)  # (heads, touched, columns)
        for i, head in enumerate(Head(block.layer, head) for head in block.heads):
            cells = self._kept.setdefault(head, np.full(shape, -1, np.float32))
            place = touched[:, None], np.arange(reduced.shape[2])
            cells[place] = np.maximum(cells[place], reduced[i])
            self._sums[head] = self._sums.get(head, True) and bool(sums[i].all())

    def maps(self) -> tuple[CellMap, ...]:
        """A map for each head."""
        shape = len(self.queries), len(self.keys)
        return tuple(
            CellMap(
                head.layer,
                head.head,
                cells=np.where(cells < 0, np.float32(np.nan), cells),
                shape=shape,
                sums=self._sums[head],
            )
            for head, cells in sorted(self._kept.items())
        )


def _visible(block: PatternBlock, keys: Sequence[int], causal: bool) -> FloatArray:
    """A copy of the block's weights, -1 where the mask forbids a link or its key was not asked."""
    n = block.weights.shape[2]
    hidden = np.zeros((len(block.queries), n), np.bool_)
    if causal:
        hidden |= np.arange(n) > block.queries[:, None]
    hidden |= ~np.isin(np.arange(n), keys)
    return np.where(hidden, np.float32(-1), block.weights)


def _widened(rows: np.ndarray, columns: int) -> np.ndarray:
    return np.pad(rows, ((0, 0), (0, columns - rows.shape[1])), constant_values=-1)
