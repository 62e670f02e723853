"""The difference between rows of attention, and the similarity of vectors and heads.

Jensen-Shannon divergence: Lin 1991, "Divergence Measures Based on the Shannon Entropy",
IEEE Transactions on Information Theory 37(1).
"""

from collections.abc import Sequence
from itertools import combinations
from math import log

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import FloatArray
from attnviz.records.metrics import entropy

Exact = NDArray[np.float64]


def divergence(distributions: Sequence[NDArray[np.floating]]) -> Exact:
    """The Jensen-Shannon divergence of k distributions, from 0 (the same) to 1 (disjoint).

    H(mean) - mean(H), divided by ln k, its largest possible value.

    Args:
        distributions: k arrays (..., n); each row is scaled to a sum of 1, unless it is empty.

    Returns:
        (...), in float64.
    """
    rows = np.stack([_normalised(np.asarray(d, np.float64)) for d in distributions])  # (k, ..., n)
    mixed = entropy(rows.mean(axis=0)) - entropy(rows).mean(axis=0)
    shares: Exact = np.clip(mixed / log(len(rows)), 0.0, 1.0) + 0.0  # never -0.0
    return shares


def _normalised(rows: Exact) -> Exact:
    sums = rows.sum(axis=-1, keepdims=True)
    scaled: Exact = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
    return scaled


def shares_of(row: FloatArray, query: int) -> tuple[float, float, float, float]:
    """The weight of one row (n) on the query itself, the first token, the one before, others.

    Each key counts once, for the first of these that applies.
    """
    left = np.asarray(row, np.float64).copy()
    taken = []
    for key in (query, 0, query - 1):
        inside = 0 <= key < len(left)
        taken.append(float(left[key]) if inside else 0.0)
        if inside:
            left[key] = 0.0
    on_itself, first, previous = taken
    return on_itself, first, previous, float(left.sum())


def mean_cosine(vectors: Sequence[FloatArray]) -> Exact:
    """The mean cosine over all pairs of k arrays (layers, d): (layers); NaN where a vector is 0."""
    exact = [np.asarray(v, np.float64) for v in vectors]
    lengths = [np.linalg.norm(v, axis=-1, keepdims=True) for v in exact]
    unit = [
        v / np.where(length > 0, length, np.nan) for v, length in zip(exact, lengths, strict=True)
    ]
    pairs = [(a * b).sum(axis=-1) for a, b in combinations(unit, 2)]
    means: Exact = np.mean(pairs, axis=0)
    return means


def similarities(ours: FloatArray, theirs: FloatArray) -> Exact:
    """The similarity of every head of one model to every head of another, (a, b); 1 is the same.

    Rows that are empty in either pattern are left out; NaN where no row is left.

    Args:
        ours: the patterns of the one model, (a, n, n).
        theirs: the patterns of the other over the same units, (b, n, n).
    """
    similarity = np.full((len(ours), len(theirs)), np.nan)
    for i, pattern in enumerate(ours):
        for j, other in enumerate(theirs):
            both = pattern.any(axis=1) & other.any(axis=1)
            if both.any():
                similarity[i, j] = 1.0 - float(divergence([pattern[both], other[both]]).mean())
    return similarity
