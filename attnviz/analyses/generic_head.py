"""The most telling head of a model whose card names none.

A head tells something where a query attends to a content token away from itself. Its measure,
which users read as its generic score, is the mean over the queries of the largest weight on a
key that is neither the query itself, nor the token just before it, nor the first token (which
takes the attention that has nowhere else to go). Of an answer, it is the mean weight on the keys
that are the token written: a row of an answer is that of the position before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray, IntArray, PatternBlock
from attnviz.records.heads import Head


@dataclass
class FindTellingHead:
    """Consumes the rows of a run, and finds its most telling head."""

    causal: bool
    _sums: dict[Head, float] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        sums = _strongest_away(block.weights, block.queries, causal=self.causal).sum(axis=1)
        for head, total in zip(block.heads, sums.tolist(), strict=True):
            at = Head(block.layer, head)
            self._sums[at] = self._sums.get(at, 0.0) + total

    def highest(self) -> Head:
        """The head with the highest measure; ties go to the earliest head."""
        return max(sorted(self._sums), key=lambda head: self._sums[head])


def how_telling(weights: FloatArray, *, causal: bool = True) -> float:
    """The measure of one pattern (n, n), from 0 to 1; 0 where the text is too short to tell."""
    queries = np.arange(len(weights))
    able = _away_from(queries, weights.shape[1], causal=causal).any(axis=1)
    strongest = _strongest_away(weights[None], queries, causal=causal)[0]
    return float(strongest[able].mean()) if able.any() else 0.0


def most_telling_head(capture: Capture, heads: Iterable[Head] | None = None) -> Head:
    """The head with the highest measure; ties go to the earliest head."""
    candidates = tuple(heads or capture.heads)
    if capture.kind == "answer":
        measured = [_how_copying(capture, capture.weights(head)) for head in candidates]
    else:
        measured = [how_telling(capture.weights(h), causal=capture.causal) for h in candidates]
    return candidates[int(np.argmax(measured))]


def _how_copying(capture: Capture, weights: FloatArray) -> float:
    """The mean weight of an answer's tokens on keys that are the same token: those it copies."""
    keys = np.array([token.id for token in capture.key_tokens])
    new = np.array([token.id for token in capture.query_tokens])
    return float((weights * (keys == new[:, None])).sum(axis=1).mean())


def _away_from(queries: IntArray, n: int, *, causal: bool) -> NDArray[np.bool_]:
    """(rows, n), True on keys that count: not near the query, not the first, not masked."""
    distance = queries[:, None] - np.arange(n)
    away = distance > 1 if causal else np.abs(distance) > 1
    away[:, 0] = False
    return away


def _strongest_away(weights: FloatArray, queries: IntArray, *, causal: bool) -> FloatArray:
    """(heads, rows), the largest weight of each row of (heads, rows, n) on a key that counts."""
    away = _away_from(queries, weights.shape[2], causal=causal)
    strongest: FloatArray = np.where(away, weights, np.float32(0)).max(axis=2)
    return strongest
