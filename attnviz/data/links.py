"""Links: the single (query, key, weight) entries of a map, filtered and ordered."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.data.capture import FloatArray
from attnviz.data.exhibit import Exhibit, HeadMap


@dataclass(frozen=True)
class Links:
    """Parallel arrays, one entry per link; by query, then strongest first, then by key."""

    query: NDArray[np.int64]
    key: NDArray[np.int64]
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)


def links_of(exhibit: Exhibit, head_map: HeadMap) -> Links:
    """The links of one map that the exhibit's filters leave; never one that the mask forbids.

    Filters apply in this order: queries, keys, least weight, then the strongest `top`
    of what is left in each row (ties: the earlier key).
    """
    queries, keys = np.array(exhibit.queries, int), np.array(exhibit.keys, int)
    weights = head_map.weights[np.ix_(queries, keys)]  # (queries asked for, keys asked for)
    allowed = exhibit.capture.allowed()[np.ix_(queries, keys)]
    order = np.argsort(np.where(allowed, -weights, np.inf), axis=1, kind="stable")
    row = np.arange(len(queries))[:, None]
    kept = (allowed & (weights >= exhibit.least))[row, order]
    if exhibit.top is not None:
        kept &= np.cumsum(kept, axis=1) <= exhibit.top
    at_row, at_rank = np.nonzero(kept)
    at_key = order[at_row, at_rank]
    return Links(queries[at_row], keys[at_key], weights[at_row, at_key])
