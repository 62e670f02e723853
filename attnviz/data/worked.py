"""Attention on small matrices, worked out in full: the examples of lessons, or one's own."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Similarity: TypeAlias = Literal["dot", "scaled-dot", "general", "rbf"]
Initialisation: TypeAlias = Literal["normal", "xavier", "kaiming"]
DoubleArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrices:
    """Inputs x (n, d_in) and weights w_query, w_key (d_in, h·d_k), w_value (d_in, h·d_v),
    w_output (h·d_v, d_out) or None; `labels` names the n inputs."""

    x: DoubleArray
    w_query: DoubleArray
    w_key: DoubleArray
    w_value: DoubleArray
    w_output: DoubleArray | None = None
    heads: int = 1
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """How to compute: the similarity of query and key, whether there is a causal mask, and
    whether softmax is rounded to one decimal, as in a lesson on paper."""

    similarity: Similarity = "dot"
    causal: bool = False
    rounded: bool = False


@dataclass(frozen=True, eq=False)
class Worked:
    """Every intermediate of attention on small matrices.

    all_queries, all_keys (n, h·d_k); all_values (n, h·d_v): x times the weights. Split:
    queries, keys (h, n, d_k); values (h, n, d_v); scores (h, n, n), -inf under the mask;
    pattern (h, n, n); weighted (h, n, n, d_v): pattern times values; z (h, n, d_v);
    merged (n, h·d_v); output (n, d_out), after w_output where there is one.
    """

    given: Matrices
    way: Way
    all_queries: DoubleArray
    all_keys: DoubleArray
    all_values: DoubleArray
    queries: DoubleArray
    keys: DoubleArray
    values: DoubleArray
    scores: DoubleArray
    pattern: DoubleArray
    weighted: DoubleArray
    z: DoubleArray
    merged: DoubleArray
    output: DoubleArray

    def arrays(self) -> dict[str, DoubleArray]:
        """Every array by name, in the order of the calculation."""
        values = vars(self.given) | vars(self)
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
