"""Is what was attended to what mattered? Segments are deleted, and the answer's loss compared.

The idea of ContextCite (Cohen-Wang et al. 2024, arXiv 2409.00729), with one segment at a time.
"""

from collections.abc import Callable, Collection, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from attnviz.data.check import Check, Effect, Group
from attnviz.records.capture import FloatArray

LEAST = 5
"""So many segments must there be for a correlation of ranks."""
DIGITS = 5
"""What differs later, behind the decimal point, is the rounding of float32."""
DRAWS, SEED = 10, 0


def check_of(
    names: Sequence[str],
    attention: Sequence[float],
    without: Callable[[Collection[int]], FloatArray],
) -> Check:
    """What the deletion of each segment does to an answer.

    Args:
        names: of the s segments.
        attention: the share of each of the s segments.
        without: the log-probabilities in nats (new tokens) of the answer without some segments.
    """
    whole = np.asarray(without(()), np.float64)

    def change(some: Collection[int]) -> NDArray[np.float64]:
        return np.asarray(without(some), np.float64) - whole

    changes = [tuple(change((i,)).tolist()) for i in range(len(attention))]
    effects = tuple(Effect(*each) for each in zip(names, attention, changes, strict=True))
    if len(attention) < LEAST:
        return Check(float(whole.sum()), effects, None, None)
    lost = -np.array([effect.change for effect in effects])
    correlation = correlation_of_ranks(np.array(attention), lost)
    group = _group(attention, lambda some: float(change(some).sum()))
    return Check(float(whole.sum()), effects, correlation, group)


def _group(attention: Sequence[float], change: Callable[[Collection[int]], float]) -> Group:
    """The segments with the most attention, a fifth of them, against as many random ones."""
    size = ceil(len(attention) / 5)
    top = np.argsort(-np.array(attention), kind="stable")[:size].tolist()
    draw = np.random.default_rng(SEED)
    drawn = [draw.choice(len(attention), size, replace=False).tolist() for _ in range(DRAWS)]
    return Group(size, change(top), float(np.mean([change(some) for some in drawn])))


def correlation_of_ranks(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Spearman's ρ, with mean ranks of ties; None where one of them does not vary.

    Values that differ by rounding alone are ties.
    """
    ranks = np.stack([_ranks(np.round(each, DIGITS)) for each in (a, b)])
    if not (ranks.std(axis=1) > 0).all():
        return None
    one, other = ranks - ranks.mean(axis=1, keepdims=True)
    return float((one @ other) / np.sqrt((one @ one) * (other @ other)))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    below = (values[:, None] > values).sum(axis=1)
    same = (values[:, None] == values).sum(axis=1)
    ranks: NDArray[np.float64] = below + (same - 1) / 2
    return ranks
