"""Whether a head acts on a text: whether its strongest links go where evidence says they may."""

from collections.abc import Iterable

import numpy as np

from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import FoundLink, Occasion

LEAST = 0.4
"""The share of a row that has to lie on plausible keys."""


def acts_of(
    weights: FloatArray,
    occasions: Iterable[Occasion],
) -> list[FoundLink]:
    """The strongest link of each row in which a head shows a behaviour, the strongest first.

    In such a row the strongest link of all goes to a plausible key, and the plausible keys have
    enough of the row.

    Args:
        weights: the head's pattern, (n, n); rows need not sum to 1.
        occasions: the queries of the head's behaviour with their plausible keys.
    """
    acts = []
    for occasion in occasions:
        row = weights[occasion.query].astype(np.float64)  # (n)
        key, on_keys = int(row.argmax()), row[list(occasion.positions)].sum()
        if key in occasion.positions and on_keys > 0 and on_keys >= LEAST * row.sum():
            acts.append(FoundLink(occasion.query, key, float(row[key])))
    return sorted(acts, key=lambda act: -act.weight)
