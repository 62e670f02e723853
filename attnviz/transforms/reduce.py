"""Several heads to one map: the mean or the maximum, entry by entry."""

from collections.abc import Callable, Sequence

import numpy as np

from attnviz.data.exhibit import HeadMap
from attnviz.data.transforms import How, Over


def reduce_maps(maps: Sequence[HeadMap], how: How, over: Over) -> tuple[HeadMap, ...]:
    """Reduce maps of shape (n_queries, n_keys) over the heads of each layer, over layers, or all.

    Rows of a mean still sum to 1; rows of a maximum do not.
    """
    groups: dict[tuple[int | None, int | None], list[HeadMap]] = {}
    key = _KEYS[over]
    for head_map in maps:
        groups.setdefault(key(head_map), []).append(head_map)
    return tuple(
        HeadMap(layer, head, how, weights=_reduced(group, how))
        for (layer, head), group in groups.items()
    )


_KEYS: dict[Over, Callable[[HeadMap], tuple[int | None, int | None]]] = {
    "heads": lambda head_map: (head_map.layer, None),
    "layers": lambda head_map: (None, head_map.head),
    "all": lambda head_map: (None, None),
}


def _reduced(group: Sequence[HeadMap], how: How) -> np.ndarray:
    """One matrix at a time, so that memory stays that of a single map."""
    result = group[0].weights.astype(np.float32, copy=True)
    for head_map in group[1:]:
        if how == "mean":
            result += head_map.weights
        else:
            np.maximum(result, head_map.weights, out=result)
    return result / np.float32(len(group)) if how == "mean" else result
