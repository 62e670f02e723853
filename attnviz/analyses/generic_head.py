"""Which head to show of a model that names none: the one with the most to say.

A head says something where a query looks at a content token away from itself. The
score is the mean over the queries of the largest weight on a key that is neither the
query itself, nor the token just before it, nor the first token (where attention rests
when it has nowhere to go).
"""

from collections.abc import Iterable

import numpy as np

from attnviz.data.capture import Capture, FloatArray
from attnviz.data.heads import Head


def generic_score(weights: FloatArray, *, causal: bool = True) -> float:
    """The score of one pattern (n, n), between 0 and 1; 0 where a text is too short to tell."""
    n_queries, n_keys = weights.shape
    away = np.abs(np.subtract.outer(np.arange(n_queries), np.arange(n_keys))) > 1
    away[:, 0] = False
    if causal:
        away &= np.tri(n_queries, n_keys, dtype=np.bool_)
    else:
        away[np.eye(n_queries, n_keys, dtype=np.bool_)] = False
    rows = away.any(axis=1)
    if not rows.any():
        return 0.0
    return float(np.where(away, weights, 0.0)[rows].max(axis=1).mean())


def most_telling_head(capture: Capture, heads: Iterable[Head] | None = None) -> Head:
    """The head with the highest score; ties go to the earliest one."""
    candidates = tuple(heads or capture.heads)
    scores = [generic_score(capture.weights(h), causal=capture.causal) for h in candidates]
    return candidates[int(np.argmax(scores))]
