"""Which head to show of a model that names none: the one with the most to say.

A head says something where a query looks at a content token away from itself. The
score is the mean over the queries of the largest weight on a key that is neither the
query itself, nor the token just before it, nor the first token (where attention rests
when it has nowhere to go).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnviz.data.capture import Capture, FloatArray, IntArray, PatternBlock
from attnviz.data.head import Head


@dataclass
class GenericScores:
    """The scores of all heads, from the rows of a run as they come."""

    causal: bool
    _sums: dict[Head, float] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        sums = _strongest_away(block.weights, block.queries, causal=self.causal).sum(axis=1)
        for head, total in zip(block.heads, sums.tolist(), strict=True):
            at = Head(block.layer, head)
            self._sums[at] = self._sums.get(at, 0.0) + total

    def highest(self) -> Head:
        """The head with the highest score; ties go to the earliest one."""
        return max(sorted(self._sums), key=lambda head: self._sums[head])


def generic_score(weights: FloatArray, *, causal: bool = True) -> float:
    """The score of one pattern (n, n), between 0 and 1; 0 where a text is too short to tell."""
    queries = np.arange(len(weights))
    able = _away_from(queries, weights.shape[1], causal=causal).any(axis=1)
    strongest = _strongest_away(weights[None], queries, causal=causal)[0]
    return float(strongest[able].mean()) if able.any() else 0.0


def most_telling_head(capture: Capture, heads: Iterable[Head] | None = None) -> Head:
    """The head with the highest score; ties go to the earliest one."""
    candidates = tuple(heads or capture.heads)
    scores = [generic_score(capture.weights(h), causal=capture.causal) for h in candidates]
    return candidates[int(np.argmax(scores))]


def _away_from(queries: IntArray, n: int, *, causal: bool) -> NDArray[np.bool_]:
    """(rows, n), True on keys that count: neither near the query, nor the first, nor masked."""
    distance = queries[:, None] - np.arange(n)
    away = distance > 1 if causal else np.abs(distance) > 1
    away[:, 0] = False
    return away


def _strongest_away(weights: FloatArray, queries: IntArray, *, causal: bool) -> FloatArray:
    """(heads, rows), the largest weight (heads, rows, n) of each row on a key that counts."""
    away = _away_from(queries, weights.shape[2], causal=causal)
    strongest: FloatArray = np.where(away, weights, np.float32(0)).max(axis=2)
    return strongest
