"""Links: the single (query, key, weight) entries of a map, filtered and ordered."""

from collections.abc import Sequence

import numpy as np

from attnviz.data.capture import FloatArray, IntArray
from attnviz.data.exhibit import CellMap, Exhibit, HeadMap, LinkMap, Links, Map

__all__ = ["Links", "links_of", "row_totals"]


def links_of(exhibit: Exhibit, head_map: Map) -> Links:
    """The links of one map that the exhibit's filters leave; never one that the mask forbids.

    Filters apply in this order: queries, keys, distances, least weight, then the strongest
    `top` of what is left in each row (ties: the earlier key).
    """
    if isinstance(head_map, LinkMap):
        return head_map.links
    parts = [
        _links_of_rows(exhibit, whole_map(head_map), exhibit.queries[first : first + ROWS])
        for first in range(0, len(exhibit.queries), ROWS)
    ]
    return Links(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


ROWS = 512
"""Rows that are sorted at a time: of a long text, sorting takes many times what it keeps."""


def _links_of_rows(
    exhibit: Exhibit, whole: HeadMap, asked: Sequence[int]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Queries, keys and weights of the links of some rows."""
    queries, keys = np.array(asked, int), np.array(exhibit.keys, int)
    weights = whole.weights[np.ix_(queries, keys)]  # (rows, keys asked for)
    allowed = keys < exhibit.capture.allowed_count()[queries][:, None]
    allowed &= ~np.isin(queries[:, None] - keys, exhibit.skip)
    order = np.argsort(np.where(allowed, -weights, np.inf), axis=1, kind="stable")
    row = np.arange(len(queries))[:, None]
    kept = (allowed & (weights >= exhibit.least))[row, order]
    if exhibit.top is not None:
        kept &= np.cumsum(kept, axis=1) <= exhibit.top
    at_row, at_rank = np.nonzero(kept)
    at_key = order[at_row, at_rank]
    return queries[at_row], keys[at_key], weights[at_row, at_key]


def row_totals(exhibit: Exhibit, head_map: Map) -> list[float]:
    """The sums of the rows asked for, over all keys that a query may see, in order."""
    if isinstance(head_map, LinkMap):
        return [float(head_map.totals[query]) for query in exhibit.queries]
    weights, seen = whole_map(head_map).weights, exhibit.capture.allowed_count()
    return [float(weights[query, : seen[query]].sum()) for query in exhibit.queries]


def whole_map(head_map: Map) -> HeadMap:
    """A map that was kept whole, for what needs every weight of it.

    Raises:
        TypeError: it was reduced, which is a mistake of the program.
    """
    if isinstance(head_map, LinkMap | CellMap):
        raise TypeError(f"of {head_map.label} only a reduced form was kept")
    return head_map
