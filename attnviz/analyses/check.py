"""Is what was attended to what mattered? Segments are deleted, and the answer's loss compared.

The idea of ContextCite (Cohen-Wang et al. 2024, arXiv 2409.00729), with one segment at a time.
"""

from collections.abc import Callable, Collection, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from attnviz.data.check import Check, Effect, Group

LEAST = 5
"""So many segments must there be for a correlation of ranks."""
DIGITS = 5
"""What differs later, behind the decimal point, is the rounding of float32."""
DRAWS, SEED = 10, 0


def check_of(
    names: Sequence[str],
    attention: Sequence[float],
    without: Callable[[Collection[int]], float],
) -> Check:
    """What the deletion of each segment does to an answer.

    Args:
        names: of the s segments.
        attention: the share of each of the s segments.
        without: the log-probability in nats of the answer without some segments.
    """
    whole = without(())
    effects = [without((i,)) - whole for i in range(len(attention))]
    correlation = None
    if len(attention) >= LEAST:
        correlation = correlation_of_ranks(np.array(attention), -np.array(effects))
    return Check(
        whole,
        tuple(Effect(*each) for each in zip(names, attention, effects, strict=True)),
        correlation,
        _group(attention, whole, without) if len(attention) >= LEAST else None,
    )


def _group(
    attention: Sequence[float], whole: float, without: Callable[[Collection[int]], float]
) -> Group:
    """The segments with the most attention, a fifth of them, against as many random ones."""
    size = ceil(len(attention) / 5)
    top = np.argsort(-np.array(attention), kind="stable")[:size].tolist()
    draw = np.random.default_rng(SEED)
    drawn = [draw.choice(len(attention), size, replace=False).tolist() for _ in range(DRAWS)]
    random = float(np.mean([without(some) - whole for some in drawn]))
    return Group(size, without(top) - whole, random)


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
