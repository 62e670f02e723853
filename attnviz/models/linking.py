"""The strongest links of heads in windows of text.

Letters in the shape comments as in `reducing.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from attnviz.models.loaded import HeadRows, LoadedModel, RowReduction, SomeHeadRows
from attnviz.models.products import fast_products
from attnviz.records.capture import FloatArray, IntArray, Wanted
from attnviz.records.heads import Head, by_layer, grouped
from attnviz.records.metrics import HeadLinks

MOST_LINKS, LEAST_LINK = 8, 0.005
"""The most links that are kept of a row, and their least weight."""
GiveLinks: TypeAlias = Callable[[HeadLinks], None]


def link_windows(
    model: LoadedModel,
    windows: Sequence[Sequence[int]],
    heads: Sequence[Sequence[Head]],
    give: GiveLinks,
) -> None:
    """Run windows of tokens (B, n), and give the strongest links of the heads of each."""
    ids = torch.tensor(windows)
    wanted = grouped(
        (head.layer, (window, head.head)) for window, own in enumerate(heads) for head in own
    )
    of = by_layer({head for own in heads for head in own})
    with fast_products(model):
        model.reduce(ids, Wanted(of), _LinksAlone(wanted, StrongestLinks(ids.size(1), give)))


@dataclass(frozen=True)
class _LinksAlone(RowReduction):
    """The strongest links of the (window, head) that are wanted, by layer."""

    asks_again = True
    wanted: Mapping[int, Sequence[tuple[int, int]]]
    links: "StrongestLinks"

    def take(self, rows: HeadRows) -> None:
        """Nothing: each head is wanted by itself."""

    def again(self, layer: int, windows: slice) -> list[tuple[int, int]]:
        return [p for p in self.wanted.get(layer, ()) if windows.start <= p[0] < windows.stop]

    def take_again(self, rows: SomeHeadRows) -> None:
        self.links(rows)


TWO_BITS = int(np.float32(2.0).view(np.int32))
"""The bits of a weight that none reaches; those of positive floats are in their order."""
WEIGHT_BITS, KEY_BITS = 27, 22
ROWS = 1 << 13
"""Rows at a time, so that one integer holds row, weight and key."""


def strongest(weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The strongest links of rows (r, m): rows, keys and weights.

    They are sorted by row, and by falling weight, the earlier key first of two with one weight.
    """
    parts = [_strongest(weights[at : at + ROWS], at) for at in range(0, len(weights), ROWS)]
    rows, keys, kept = map(np.concatenate, zip(*parts, strict=True))
    return rows, keys, kept


def _strongest(weights: FloatArray, first: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Find the strongest links of a few rows, as integers, which are sorted faster than rows."""
    flat = np.flatnonzero(weights >= LEAST_LINK)
    rows, keys = np.divmod(flat, weights.shape[1])
    lack = TWO_BITS - weights.ravel()[flat].view(np.int32).astype(np.int64)
    order = np.sort((((rows << WEIGHT_BITS) | lack) << KEY_BITS) | keys)
    rows = order >> (WEIGHT_BITS + KEY_BITS)
    rank = np.arange(len(rows)) - np.searchsorted(rows, np.arange(len(weights)))[rows]
    order, rows = order[rank < MOST_LINKS], rows[rank < MOST_LINKS]
    keys = order & ((1 << KEY_BITS) - 1)
    lack = (order >> KEY_BITS) & ((1 << WEIGHT_BITS) - 1)
    return rows + first, keys, (TWO_BITS - lack).astype(np.int32).view(np.float32)


def picked(weights: torch.Tensor) -> tuple[IntArray, IntArray, FloatArray]:
    """Pick the strongest links on the device of the rows, so that few numbers leave it."""
    kept = weights.topk(min(MOST_LINKS, weights.size(1)), dim=-1)
    values, keys = kept.values.cpu().numpy(), kept.indices.cpu().numpy()
    rows, rank = np.nonzero(values >= LEAST_LINK)
    return rows, keys[rows, rank], values[rows, rank]


@dataclass
class StrongestLinks:
    """Keeps the strongest links of heads in windows of n tokens.

    `give` is called once for each, when its last row has come.
    """

    n: int
    give: GiveLinks
    _parts: dict[tuple[int, int], list[list[NDArray[Any]]]] = field(default_factory=dict)

    def __call__(self, rows: SomeHeadRows) -> None:
        weights = rows.weights.float().contiguous()
        h, r, m = weights.shape
        flat = weights.view(h * r, m)
        row, keys, kept = strongest(flat.numpy()) if flat.device.type == "cpu" else picked(flat)
        ends = np.searchsorted(row, np.arange(1, h) * r)
        parts = (np.split(part, ends) for part in (row % r + rows.first, keys, kept))
        inner = weights[:, (1 if rows.first == 0 else 0) :, 1:].flatten(1)
        most = inner.amax(dim=1) if inner.size(1) else weights.new_zeros(h)
        for pair, *own in zip(rows.pairs, *parts, most.cpu().numpy()[:, None], strict=True):
            self._parts.setdefault(pair, []).append(own)
            if rows.first + r == self.n:
                self._give(rows.layer, pair)

    def _give(self, layer: int, pair: tuple[int, int]) -> None:
        (window, head), parts = pair, zip(*self._parts.pop(pair), strict=True)
        queries, keys, kept, largest = map(np.concatenate, parts)
        self.give(
            HeadLinks(
                window=window,
                layer=layer,
                head=head,
                queries=queries,
                keys=keys,
                weights=kept,
                largest=float(largest.max()),
            )
        )
