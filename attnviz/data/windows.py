"""What the attention of windows of text adds up to, as `models/` hands it over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.data.blocks import FloatArray, IntArray

EDGES = tuple(1 << i for i in range(15))
"""Each bin of distances and of positions but the first, which is 0, begins at one of these."""
BINS = len(EDGES) + 1

SUMS = (
    *("entropy", "normalised", "distance", "squares"),
    *("previous", "first", "self", "duplicate", "induction", "mass"),
)
"""What is added up over the rows: `squares` of the distance, `mass`: all weights."""


@dataclass(frozen=True, eq=False)
class WindowSums:
    """The sums of B windows of n tokens, for H heads.

    `sums` (B, H, len(SUMS)); `distances`, `positions` (B, H, bins): the mass by the distance and
    by the position of the key; `largest` (B, H): the largest weight, first row and column left out;
    `apart` (B, H): the largest of these between two tokens.
    """

    sums: NDArray[np.float64]
    distances: NDArray[np.float64]
    positions: NDArray[np.float64]
    largest: NDArray[np.float64]
    apart: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeadLinks:
    """The strongest links of one head in one window (n), by query.

    `largest`: the largest weight, first row and column left out.
    """

    window: int
    layer: int
    head: int
    queries: IntArray
    keys: IntArray
    weights: FloatArray
    largest: float
