"""Links: the (query, key, weight) entries of a map, filtered and ordered."""

from collections.abc import Sequence

import numpy as np

from attnviz.data.capture import FloatArray, IntArray
from attnviz.data.exhibit import CellMap, Exhibit, HeadMap, LinkMap, Links, Map


def links_of(exhibit: Exhibit, head_map: Map) -> Links:
    """The links of one map that pass the exhibit's filters, without those that the mask forbids.

    The filters apply in this order: queries, keys, distances, least weight, then the `top`
    strongest links left in each row (ties go to the earlier key).
    """
    if isinstance(head_map, LinkMap):
        return head_map.links
    parts = [
        _links_of_rows(exhibit, whole_map(head_map), exhibit.queries[first : first + ROWS])
        for first in range(0, len(exhibit.queries), ROWS)
    ]
    return Links(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


ROWS = 512
"""Rows that are sorted at a time: sorting takes many times the memory of its result."""


def _links_of_rows(
    exhibit: Exhibit, whole: HeadMap, rows: Sequence[int]
) -> tuple[IntArray, IntArray, FloatArray]:
    """The queries, keys and weights of the links in these rows."""
    queries, keys = np.array(rows, int), np.array(exhibit.keys, int)
    weights = whole.weights[np.ix_(queries, keys)]  # (rows, exhibit.keys)
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
    """The sum of each of the exhibit's rows, over all keys that its query may see."""
    if isinstance(head_map, LinkMap):
        return [float(head_map.totals[query]) for query in exhibit.queries]
    weights, seen = whole_map(head_map).weights, exhibit.capture.allowed_count()
    return [float(weights[query, : seen[query]].sum()) for query in exhibit.queries]


def whole_map(head_map: Map) -> HeadMap:
    """The map itself, for a caller that needs every weight of it.

    Raises:
        TypeError: only a reduced form was kept, which is a mistake of the program.
    """
    if isinstance(head_map, LinkMap | CellMap):
        raise TypeError(f"only a reduced form of {head_map.label} was kept")
    return head_map
