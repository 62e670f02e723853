"""Keys left out of patterns, such as the sink; what is left of a row is brought to 1 again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnviz.data.blocks import FloatArray
from attnviz.data.exhibit import HeadMap
from attnviz.transforms.between import Between, each, go_on

NOTHING = 1e-6
"""A row with less left than this attended to nothing else; rounding leaves it no zero."""


@dataclass(frozen=True, eq=False)
class Dropped:
    """Maps without some keys; `share` is how much of the weight of the queries shown was on them.

    `empty` are the queries that attended to nothing else; their rows are zero.
    """

    maps: tuple[HeadMap, ...]
    share: float
    empty: tuple[int, ...]


def without_keys(
    maps: Sequence[HeadMap],
    keys: Sequence[int],
    queries: Sequence[int],
    between: Between = go_on,
) -> Dropped:
    """Take keys (columns) out of maps (n_queries, n_keys), and renormalise.

    Args:
        maps: at least one.
        keys: the positions to leave out.
        queries: the rows that are shown and that might attend to other keys.
        between: called before each map.
    """
    kept, shares = [], []
    for head_map in each(maps, between):
        weights = head_map.weights.astype(np.float32, copy=True)
        sums = weights.sum(axis=1)
        weights[:, list(keys)] = 0
        left = weights.sum(axis=1)
        shares.append(np.divide(left, sums, out=np.zeros_like(left), where=sums > 0))
        kept.append(replace(head_map, weights=_to_one(weights, left)))
    left_of = np.array(shares)[:, list(queries)]  # (maps, queries shown)
    some: NDArray[np.bool_] = np.any(left_of > NOTHING, axis=0)
    empty = tuple(query for query, able in zip(queries, some.tolist(), strict=True) if not able)
    return Dropped(tuple(kept), float(1 - left_of.mean()) if queries else 1.0, empty)


def _to_one(weights: FloatArray, sums: FloatArray) -> FloatArray:
    some = sums[:, None] > NOTHING
    scaled: FloatArray = np.divide(weights, sums[:, None], out=np.zeros_like(weights), where=some)
    return scaled
