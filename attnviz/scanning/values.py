"""Sums over windows to the values of documents, and those to a record. Letters in the shapes:

D documents   W windows   H heads   K sums: those of `SUMS`, then distances and positions
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.commands.atlas.record import (
    NONE,
    PER_BIN,
    SAMPLE,
    SCORES,
    TOP,
    WEIGHTS,
    FloatArray64,
    Record,
    empty_record,
    in_fixed_point,
    least,
    moments,
)
from attnviz.records.capture import IntArray
from attnviz.records.metrics import BINS, SUMS
from attnviz.scanning.windows import Window

K = len(SUMS) + 2 * BINS
DISTANCES, POSITIONS = slice(len(SUMS), len(SUMS) + BINS), slice(len(SUMS) + BINS, K)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of windows or of documents, which `documents` (D) numbers in rising order.

    `values` (D, H, K); `rows` (D, metrics): how many rows of attention each metric is a mean over,
    the same for all heads.
    """

    documents: IntArray
    values: FloatArray64
    rows: FloatArray64

    def by_document(self) -> "Sums":
        """The windows of one document added up, in order."""
        numbers, starts = np.unique(self.documents, return_index=True)
        return Sums(
            numbers, np.add.reduceat(self.values, starts), np.add.reduceat(self.rows, starts)
        )

    def of(self, chosen: slice) -> "Sums":
        """Some of these."""
        return Sums(self.documents[chosen], self.values[chosen], self.rows[chosen])


def together(first: Sums | None, then: Sums) -> Sums:
    """Two sums, one behind the other."""
    if first is None:
        return then
    return Sums(
        np.concatenate([first.documents, then.documents]),
        np.concatenate([first.values, then.values]),
        np.concatenate([first.rows, then.rows]),
    )


def rows_of(ids: Sequence[int], *, causal: bool) -> list[float]:
    """How many rows of a window can show each of SCORES; a distance is told by mass instead."""
    tokens = np.array(ids)
    n = len(tokens)
    _, first, which = np.unique(tokens, return_index=True, return_inverse=True)
    before = np.arange(n) - first[which]  # how far back its first copy stands
    of = {
        "normalised": n - 1 if causal else n * (n > 1),
        "previous": n - 1,
        "duplicate": int((before > 0).sum()),
        "induction": int((before > 1).sum()),  # what followed a copy comes before the query
    }
    return [float(of.get(score, n)) for score in SCORES]


def record_of_documents(like: Record, sums: Sums, unit: FloatArray64) -> Record:
    """The record of some documents, without windows.

    `like`: a record of the same heads and origin; `unit`: see `data.record.units`.
    """
    named = {name: sums.values[..., i] for i, name in enumerate(SUMS)}  # (D, H) each
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = named["distance"] / named["mass"]
        # a sink takes a part of each row: variance is over what is left
        variance = named["squares"] / named["mass"] - distance * distance
        told = {"distance": distance, "distance_variance": np.maximum(0, variance)}
        means = [
            told[score] if score in told else named[score] / sums.rows[:, i, None]
            for i, score in enumerate(SCORES)
        ]
    values = np.stack(means, axis=-1)  # (D, H, M)
    values[~np.isfinite(values)] = np.nan
    totals, squares, counts = moments(values / unit)
    queries = sums.rows[:, SCORES.index("entropy"), None, None]
    distances, positions = (
        in_fixed_point(sums.values[..., part] / queries).sum(axis=0)
        for part in (DISTANCES, POSITIONS)
    )
    return Record(
        **{
            **vars(empty_record(like.heads, like.origin)),
            **{"totals": totals, "squares": squares, "counts": counts},
            **{"distances": distances, "positions": positions, "documents": len(values)},
        }
    )


def record_of_windows(
    like: Record, windows: Sequence[Window], largest: FloatArray64, shard: int
) -> Record:
    """The record of windows, without documents.

    `like`: as above; `largest` (2, W, H): their largest weight, and that between two tokens.
    """
    if not windows:
        return empty_record(like.heads, like.origin)
    heads = like.heads
    names = np.array([(w.chance, shard, w.ordinal) for w in windows], np.int64)  # (W, 3)
    bins = np.minimum(WEIGHTS - 1, (largest[0] * WEIGHTS).astype(int)).T  # (H, W)
    counts = np.stack([(bins == b).sum(axis=1) for b in range(WEIGHTS)], axis=1)
    weights = -in_fixed_point(largest[1].T)  # the least is the largest weight
    best = np.empty((len(heads), len(windows), 3), np.int64)
    best[..., 0], best[..., 1:] = weights, names[:, 1:]
    return Record(
        **{
            **vars(empty_record(like.heads, like.origin)),
            **{"largest": counts, "best": least(best, TOP), "sample": least(names, SAMPLE)},
            **{"drawn": _drawn(least(names, len(names)), _sorted(bins, names))},
            **{"windows": len(windows), "tokens": sum(len(w.ids) for w in windows)},
        }
    )


def _sorted(bins: IntArray, names: IntArray) -> IntArray:
    """The bins (H, W) of windows in the order in which they are drawn."""
    return bins[:, np.lexsort((names[:, 2], names[:, 1], names[:, 0]))]


def _drawn(names: IntArray, bins: IntArray) -> IntArray:
    """The first windows of each bin (H, WEIGHTS, PER_BIN, 3); `names` (W, 3) are in order."""
    drawn = np.full((len(bins), WEIGHTS, PER_BIN, 3), NONE)
    for number in np.unique(bins):
        inside = bins == number  # (H, W)
        for place in range(PER_BIN):
            at = inside.argmax(axis=1)
            found = np.flatnonzero(inside.any(axis=1))
            drawn[found, number, place] = names[at[found]]
            inside[found, at[found]] = False
    return drawn
