"""What a scan counts, from whole matrices in float64, in the plainest way."""

from collections.abc import Mapping, Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def sums_of(weights: Matrix, ids: Sequence[int], *, causal: bool) -> dict[str, list[float]]:
    """The terms of each metric's mean over one window; `weights` (n, n)."""
    n = len(ids)
    terms: dict[str, list[float]] = {name: [] for name in NAMES}
    for q in range(n):
        row = weights[q]
        seen = q + 1 if causal else n
        entropy = -sum(a * log(a) for a in row if a > 0)
        terms["entropy"].append(entropy)
        if seen > 1:
            terms["normalised"].append(entropy / log(seen))
        terms["first"].append(row[0])
        terms["self"].append(row[q])
        if q:
            terms["previous"].append(row[q - 1])
        copies = [k for k in range(q) if ids[k] == ids[q]]
        if copies:
            terms["duplicate"].append(sum(row[k] for k in copies))
        after = [k + 1 for k in copies if k + 1 < q]
        if after:
            terms["induction"].append(sum(row[k] for k in after))
    return terms


NAMES = ("entropy", "normalised", "previous", "first", "self", "duplicate", "induction")


def metrics_of(
    windows: Sequence[tuple[Matrix, Sequence[int]]], *, causal: bool
) -> Mapping[str, float]:
    """Every score of a document's windows; NaN where no row can show one."""
    terms: dict[str, list[float]] = {name: [] for name in NAMES}
    mass = distance = squares = 0.0
    for weights, ids in windows:
        for name, values in sums_of(weights, ids, causal=causal).items():
            terms[name] += values
        n = len(ids)
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        mass += weights.sum()
        distance += (weights * apart).sum()
        squares += (weights * apart**2).sum()
    means = {name: float(np.mean(v)) if v else float("nan") for name, v in terms.items()}
    far = float(distance / mass)
    return {**means, "distance": far, "distance_variance": float(squares / mass) - far**2}


def over_tokens(windows: Sequence[tuple[Matrix, Sequence[int]]]) -> Mapping[str, float]:
    """HeadVis's scores: over all queries of the windows of two tokens and more."""
    names = "entropy", "previous", "self", "distance", "squares", "strong_induction"
    terms: dict[str, list[float]] = {name: [] for name in names}
    for weights, ids in windows:
        n = len(ids)
        if n < 2:
            continue
        for q in range(n):
            row = weights[q]
            apart = np.abs(np.arange(n) - q)
            terms["entropy"].append(-sum(a * log(a) for a in row if a > 0))
            terms["distance"].append((row * apart).sum())
            terms["squares"].append((row * apart**2).sum())
            terms["self"].append(row[q])
            if q:
                terms["previous"].append(row[q - 1])
            followed = [p + 1 for p in range(q) if ids[p] == ids[q]]
            if followed:
                terms["strong_induction"].append(sum(row[k] for k in followed if row[k] >= 0.01))
    means = {name: float(np.mean(v)) if v else float("nan") for name, v in terms.items()}
    means["distance_variance"] = means.pop("squares") - means["distance"] ** 2
    return means


def histogram(weights: Matrix, where: NDArray[np.int64], edges: Sequence[int]) -> Matrix:
    """The mass by distance or position `where` (n, n), in bins that begin at 0 and the edges."""
    bins = np.digitize(where, edges)
    return np.bincount(bins.ravel(), weights.ravel(), len(edges) + 1)


def largest(weights: Matrix) -> float:
    """The largest weight, first row and column left out; 0 where nothing is left."""
    return float(weights[1:, 1:].max(initial=0.0))


def apart(weights: Matrix) -> float:
    """The same, of weights between two tokens."""
    return largest(weights * (1 - np.eye(len(weights))))


def strongest(weights: Matrix) -> list[tuple[int, int, float]]:
    """The links of a window: at most 8 a row, and none below 0.005."""
    links = []
    for q, row in enumerate(weights):
        for k in sorted(range(len(row)), key=lambda k: -row[k])[:8]:
            if row[k] >= 0.005:
                links.append((q, k, float(row[k])))
    return links
