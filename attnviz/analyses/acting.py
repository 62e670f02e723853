"""Whether a head acts on a text: whether its strongest links go where evidence says they may."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnviz.data.blocks import FloatArray
from attnviz.data.evidence import Occasion
from attnviz.data.finding import FoundLink
from attnviz.data.tokens import Token

LEAST = 0.4
"""The share of a row that has to lie on plausible keys."""
FAINT = 0.1
"""The least share of a row that makes a key worth naming beside the strongest one."""
MOST_KEYS = 3


@dataclass(frozen=True)
class Act:
    """A row in which a head acts: its links to plausible keys, strongest first.

    `share`: how much of the row all plausible keys have together.
    """

    links: tuple[FoundLink, ...]
    share: float


def acts_of(
    weights: FloatArray,
    tokens: Sequence[Token],
    occasions: Iterable[Occasion],
) -> list[Act]:
    """The rows in which a head shows a behaviour, the clearest first.

    In such a row the strongest link, leaving out the query word itself and special tokens, goes
    to a plausible key, and the plausible keys have enough of the row.

    Args:
        weights: the head's pattern, (n, n); rows need not sum to 1.
        tokens: the n tokens.
        occasions: the queries of the head's behaviour with their plausible keys.
    """
    special = [token.index for token in tokens if token.special]
    acts = []
    for occasion in occasions:
        row = weights[occasion.query].astype(np.float64)  # (n)
        total, others = row.sum(), row.copy()
        others[[*special, *occasion.word]] = -1.0
        keys = occasion.positions
        share = float(row[list(keys)].sum() / total) if total > 0 else 0.0
        if int(others.argmax()) in keys and share >= LEAST:
            acts.append(Act(_links(occasion, row / total, weights), share))
    return sorted(acts, key=lambda act: -act.share)


def _links(
    occasion: Occasion, shares: NDArray[np.float64], weights: FloatArray
) -> tuple[FoundLink, ...]:
    query = occasion.query
    ranked = sorted(occasion.positions, key=lambda key: -shares[key])
    kept = [key for n, key in enumerate(ranked) if n == 0 or shares[key] >= FAINT]
    return tuple(FoundLink(query, key, float(weights[query, key])) for key in kept[:MOST_KEYS])
