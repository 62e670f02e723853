"""What was counted of a shard, or of a whole corpus: integers, which merge exactly.

Values of documents are rounded to fixed point and summed as integers, so that no order of
documents, shards or workers changes a bit of the result. Letters in the shapes:

    H heads   M metrics   W windows
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import nan, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.data.atlas import SCORES
from attnviz.records.capture import IntArray, ModelIdentity
from attnviz.records.metrics import BINS, Estimate

FloatArray64: TypeAlias = NDArray[np.float64]
SCALE = 1 << 30
"""A value of 1 in fixed point."""
LIMB = 15
"""A value in fixed point is cut after so many bits, so that 64 bits hold sums of its square."""
WEIGHTS = 20
"""Bins of equal width for the largest weight of a window."""
TOP, PER_BIN, SAMPLE = 8, 2, 64
"""Examples of a head: windows with the largest weight between two tokens, and drawn ones of each
bin of the largest weight of all. Windows over which the tokens of all heads are counted."""
NONE = np.iinfo(np.int64).max
"""In place of a window that is not there."""


@dataclass(frozen=True)
class Origin:
    """Where the numbers of a record come from; only those of one origin are merged.

    `scan`: a digest of the manifest; `device`: what the model ran on; `length`: the most tokens of
    a window, as the model takes them; `model`: as it was loaded, with the fingerprint of its
    weights; `bos`: whether a beginning token stood in front of each window.
    """

    scan: str = ""
    device: str = ""
    length: int = 0
    model: ModelIdentity | None = None
    bos: bool = False


NOWHERE = Origin()


@dataclass(frozen=True, eq=False)
class Record:
    """Integers of H heads, named as in L5H1; `documents`, `windows`, `tokens`: of how much.

    `bad`: how many documents could not be read.

    `totals`, `counts` (H, M): the sum of each metric over documents, and how many have it;
    `squares` (H, M, 3): the sums of its square's three parts. `distances`, `positions` (H, BINS):
    the mean mass per query, summed over documents. `largest` (H, WEIGHTS): windows by their
    largest weight, the first row and column left out.

    Windows are named (shard, ordinal), behind the number by which they were chosen, the least
    first: `best` (H, TOP, 3) by the largest weight between two
    tokens, negative; `drawn` (H, WEIGHTS, PER_BIN, 3) and
    `sample` (SAMPLE, 3) by their hash. NONE where there are not so many.
    """

    heads: tuple[str, ...]
    totals: IntArray
    squares: IntArray
    counts: IntArray
    distances: IntArray
    positions: IntArray
    largest: IntArray
    best: IntArray
    drawn: IntArray
    sample: IntArray
    documents: int = 0
    windows: int = 0
    tokens: int = 0
    bad: int = 0
    origin: Origin = NOWHERE


SUMMED = ("totals", "squares", "counts", "distances", "positions", "largest")
CHOSEN = ("best", "drawn", "sample")
NUMBERS = ("documents", "windows", "tokens", "bad")


def shapes(heads: int) -> Mapping[str, tuple[int, ...]]:
    """The shape of each array of a record of so many heads."""
    metrics = len(SCORES)
    return {
        "totals": (heads, metrics),
        "squares": (heads, metrics, 3),
        "counts": (heads, metrics),
        "distances": (heads, BINS),
        "positions": (heads, BINS),
        "largest": (heads, WEIGHTS),
        "best": (heads, TOP, 3),
        "drawn": (heads, WEIGHTS, PER_BIN, 3),
        "sample": (SAMPLE, 3),
    }


def empty_record(heads: Sequence[str], origin: Origin = NOWHERE) -> Record:
    """A record of nothing."""
    of = shapes(len(heads))
    arrays: dict[str, Any] = {
        **{name: np.zeros(of[name], np.int64) for name in SUMMED},
        **{name: np.full(of[name], NONE) for name in CHOSEN},
    }
    return Record(tuple(heads), **arrays, origin=origin)


def merged(records: Sequence[Record]) -> Record:
    """Several records as one; the same for any order of them, and for any tree of merges.

    Raises:
        ValueError: they are of other heads, or of another origin.
    """
    first = records[0]
    if any((r.heads, r.origin) != (first.heads, first.origin) for r in records):
        raise ValueError("they were counted with another model, or on another kind of device")
    summed: dict[str, Any] = {
        name: sum(getattr(record, name) for record in records) for name in (*SUMMED, *NUMBERS)
    }
    chosen: dict[str, Any] = {
        name: least(
            np.concatenate([getattr(record, name) for record in records], axis=-2),
            getattr(first, name).shape[-2],
        )
        for name in CHOSEN
    }
    return replace(first, **summed, **chosen)


def least(windows: IntArray, most: int) -> IntArray:
    """The first windows (..., most, 3) of (..., W, 3) by their number, then shard and ordinal."""
    order = np.lexsort((windows[..., 2], windows[..., 1], windows[..., 0]), axis=-1)
    kept = np.take_along_axis(windows, order[..., :most, None], axis=-2)
    missing = [(0, 0)] * (kept.ndim - 2) + [(0, most - kept.shape[-2]), (0, 0)]
    return np.pad(kept, missing, constant_values=NONE)


def units(length: int) -> FloatArray64:
    """What a value of each metric is divided by in fixed point (M), so that it is 1 at most.

    `length`: the most tokens of a window. Entropy, in nats, is less than 16.
    """
    of = {"entropy": 16.0, "distance": float(length), "distance_variance": float(length) ** 2}
    return np.array([of.get(score, 1.0) for score in SCORES])


def in_fixed_point(values: FloatArray64) -> IntArray:
    """Values as integers, rounded to the nearest; not-a-number is 0."""
    return np.rint(np.nan_to_num(values) * SCALE).astype(np.int64)


def moments(values: FloatArray64) -> tuple[IntArray, IntArray, IntArray]:
    """The totals, squares and counts of documents' values (documents, H, M), NaN where none."""
    fixed = in_fixed_point(values)
    high, low = fixed >> LIMB, fixed & ((1 << LIMB) - 1)
    squares = np.stack([high * high, 2 * high * low, low * low], axis=-1).sum(axis=0)
    return fixed.sum(axis=0), squares, np.isfinite(values).sum(axis=0)


def estimate(record: Record, head: int, metric: int, unit: float) -> Estimate:
    """The mean of a metric over documents, with its standard error where there are several."""
    n, total = int(record.counts[head, metric]), int(record.totals[head, metric])
    if not n:
        return Estimate(nan, None)
    mean = total / n / SCALE * unit
    if n < 2:
        return Estimate(mean, None)
    high, middle, low = map(int, record.squares[head, metric])
    squares = (high << 2 * LIMB) + (middle << LIMB) + low
    # in whole numbers up to the division: no difference of large floats
    spread = (squares * n - total * total) / (n * (n - 1))
    return Estimate(mean, sqrt(max(0.0, spread) / n) / SCALE * unit)


def arrays_of(record: Record) -> dict[str, IntArray]:
    """The arrays of a record, by name."""
    return {f.name: getattr(record, f.name) for f in fields(record) if f.name in shapes(0)}
