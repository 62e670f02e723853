"""The part of a map that is shown, as numbers; and its reduction to fewer, larger blocks.

In these matrices NaN stands for "nothing to show here": the mask forbids the link, or
`--top` or `--min` left it out. A weight of zero is 0.0, and looks different.
"""

import math

import numpy as np
from numpy.typing import NDArray

from attnviz.data.capture import FloatArray
from attnviz.data.exhibit import Exhibit, HeadMap
from attnviz.data.links import links_of


def shown(exhibit: Exhibit, head_map: HeadMap) -> FloatArray:
    """The weights that the exhibit's filters leave, (queries asked for, keys asked for).

    NaN where there is nothing to show.
    """
    queries, keys = np.array(exhibit.queries, int), np.array(exhibit.keys, int)
    picked = np.ix_(queries, keys)
    if exhibit.top is None and exhibit.least <= 0:
        visible = exhibit.capture.allowed()[picked]
    else:
        links = links_of(exhibit, head_map)
        kept: NDArray[np.bool_] = np.zeros(head_map.weights.shape, np.bool_)
        kept[links.query, links.key] = True
        visible = kept[picked]
    weights = head_map.weights[picked].astype(np.float32)  # (queries, keys)
    return np.where(visible, weights, np.float32(np.nan))


def block_maximum(values: FloatArray, rows: int, columns: int) -> FloatArray:
    """At most `rows` x `columns` equal blocks, each with its strongest weight.

    The maximum, not the mean, so that one strong link in a long text stays visible. A
    block is NaN only where all of it is.
    """
    for axis, most in enumerate((rows, columns)):
        if values.shape[axis] > most:
            step = math.ceil(values.shape[axis] / most)
            starts = np.arange(0, values.shape[axis], step)
            values = np.fmax.reduceat(values, starts, axis=axis)
    return values


def block_of(tokens: tuple[int, ...], cells: tuple[int, ...]) -> tuple[int, int]:
    """How many (rows, columns) of a matrix of shape `tokens` went into each of its blocks."""
    return math.ceil(tokens[0] / cells[0]), math.ceil(tokens[1] / cells[1])


def strongest(matrices: list[FloatArray]) -> float:
    """The largest weight in any of them: the top of their common scale; 1.0 where all is empty."""
    most = max((float(np.fmax.reduce(m, axis=None, initial=0.0)) for m in matrices), default=0.0)
    return most if most > 0 else 1.0


def left_out(exhibit: Exhibit) -> str:
    """What an empty cell of this exhibit stands for, in a few words; empty if it has none."""
    reasons = ["masked"] if exhibit.capture.causal else []
    if exhibit.top is not None:
        reasons.append("left out by --top")
    if exhibit.least > 0:
        reasons.append("left out by --min")
    return " or ".join(reasons)


def rows_sum_to_one(weights: FloatArray) -> bool:
    """Whether each row of shown (queries, keys) weights sums to 1, as a reader may add them up."""
    return bool(np.allclose(np.nansum(weights, axis=1), 1.0, atol=0.005))
