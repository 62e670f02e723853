"""The counts of a shard, or of a whole corpus.

Records are added in the order of their shards, so that workers, parts and interruptions change no
bit of the result. Letters in the shapes:

    H heads   M metrics   S sums: those of `TOTALS`   W windows
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from math import nan, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.corpus.places import Skipped
from attnviz.errors import InputError
from attnviz.records.capture import IntArray, ModelIdentity
from attnviz.records.heads import Head, head_named
from attnviz.records.metrics import BINS, EDGES, METRICS, SUMS, Estimate, Score
from attnviz.records.rows import MODEL, model_of_dict, to_json

FloatArray64: TypeAlias = NDArray[np.float64]
WEIGHTS, DRAWN = 50, 20
"""Bins of equal width of a window's largest weight: those that are counted, and drawn from."""
TOP, PER_BIN, SAMPLE = 8, 2, 64
"""Examples of a head: windows with the largest weight between two tokens, and drawn ones of each
bin of the largest weight of all. Windows over which the tokens of all heads are counted."""
NONE = np.iinfo(np.int64).max
"""In place of a window that is not there."""


SCORES: Mapping[str, Score] = {
    **METRICS,
    "distance_variance": Score(
        "distance_variance",
        "dist var",
        "variance of the distance from a query to its keys",
        "qk_distance_variance",
        unit="tokens²",
    ),
}
"""The scores of a head over a corpus, in the order of columns."""


@dataclass(frozen=True)
class Origin:
    """The origin of a record's numbers; only records of one origin are merged.

    `scan`: a digest of the manifest; `device`: what the model ran on; `length`: the most tokens of
    a window, as the model takes them; `model`: as it was loaded, with the fingerprint of its
    weights; `bos`: whether a beginning token came before each window.
    """

    scan: str = ""
    device: str = ""
    length: int = 0
    model: ModelIdentity | None = None
    bos: bool = False


NOWHERE = Origin()


@dataclass(frozen=True, eq=False)
class Record:
    """Counts of H heads, named as in L5H1; `documents`, `windows`, `tokens`: of how much.

    `bad`: the number of documents that could not be read.

    `totals`, `counts` (H, M): the sum of each metric over documents, and how many have it;
    `squares` (H, M): the sum of its squared deviations from their mean. `distances`, `positions`
    (H, BINS): the mean mass per query, summed over documents.

    Of windows of two tokens and more: `sums` (H, S): `TOTALS` over the rows of all windows, and
    `rows` (S): how many rows can show each; `largest` (H, WEIGHTS): windows by their largest
    weight, the first row and column left out.

    Windows are named (shard, ordinal), behind the number by which they were chosen, the least
    first: `best` (H, TOP, 3) by the largest weight between two
    tokens, negative; `drawn` (H, DRAWN, PER_BIN, 3) and
    `sample` (SAMPLE, 3) by their hash. NONE where there are fewer.
    """

    heads: tuple[str, ...]
    totals: FloatArray64
    squares: FloatArray64
    counts: IntArray
    distances: FloatArray64
    positions: FloatArray64
    sums: FloatArray64
    rows: IntArray
    largest: IntArray
    best: IntArray
    drawn: IntArray
    sample: IntArray
    documents: int = 0
    windows: int = 0
    tokens: int = 0
    bad: int = 0
    origin: Origin = NOWHERE


SUMMED = ("totals", "counts", "distances", "positions", "sums", "rows", "largest")
WHOLE = ("counts", "rows", "largest")
"""The arrays of whole numbers, beside those of what is chosen."""
CHOSEN = ("best", "drawn", "sample")
NUMBERS = ("documents", "windows", "tokens", "bad")
TOTALS = (*(name for name in SUMS if name != "mass"), "largest")
"""The names of sums over rows; of `largest`, over windows. The metrics come first."""


def shapes(heads: int) -> Mapping[str, tuple[int, ...]]:
    """The shape of each array of a record of this number of heads."""
    metrics = len(SCORES)
    return {
        "totals": (heads, metrics),
        "squares": (heads, metrics),
        "counts": (heads, metrics),
        "distances": (heads, BINS),
        "positions": (heads, BINS),
        "sums": (heads, len(TOTALS)),
        "rows": (len(TOTALS),),
        "largest": (heads, WEIGHTS),
        "best": (heads, TOP, 3),
        "drawn": (heads, DRAWN, PER_BIN, 3),
        "sample": (SAMPLE, 3),
    }


def _kind(name: str) -> type[np.generic]:
    return np.int64 if name in (*WHOLE, *CHOSEN) else np.float64


def empty_record(heads: Sequence[str], origin: Origin = NOWHERE) -> Record:
    """A record of nothing."""
    arrays: dict[str, Any] = {
        name: np.full(shape, NONE if name in CHOSEN else 0, _kind(name))
        for name, shape in shapes(len(heads)).items()
    }
    return Record(tuple(heads), **arrays, origin=origin)


def merged(records: Sequence[Record]) -> Record:
    """Several records as one, added one after the other.

    Raises:
        ValueError: they are of other heads, or of another origin.
    """
    first = records[0]
    if any((r.heads, r.origin) != (first.heads, first.origin) for r in records):
        raise ValueError("they were counted with another model, or on another kind of device")
    summed: dict[str, Any] = {
        name: sum(getattr(record, name) for record in records) for name in (*SUMMED, *NUMBERS)
    }
    return replace(merged_windows(records), squares=_squares(records), **summed)


def _squares(records: Sequence[Record]) -> FloatArray64:
    """The squared deviations from the mean of all (Chan, Golub and LeVeque 1979)."""
    first = records[0]
    squares, totals, counts = first.squares, first.totals, first.counts.astype(np.float64)
    for other in records[1:]:
        apart, both = totals * other.counts - other.totals * counts, counts + other.counts
        weight = np.maximum(1, counts * other.counts * both)
        squares = squares + other.squares + apart * apart / weight
        totals, counts = totals + other.totals, both
    return squares


def merged_windows(records: Sequence[Record]) -> Record:
    """The first of several records, with the windows that all of them choose."""
    first = records[0]
    chosen: dict[str, Any] = {
        name: least(
            np.concatenate([getattr(record, name) for record in records], axis=-2),
            getattr(first, name).shape[-2],
        )
        for name in CHOSEN
    }
    return replace(first, **chosen)


def least(windows: IntArray, most: int) -> IntArray:
    """The first windows (..., most, 3) of (..., W, 3) by their number, then shard and ordinal."""
    order = np.lexsort((windows[..., 2], windows[..., 1], windows[..., 0]), axis=-1)
    kept = np.take_along_axis(windows, order[..., :most, None], axis=-2)
    missing = [(0, 0)] * (kept.ndim - 2) + [(0, most - kept.shape[-2]), (0, 0)]
    return np.pad(kept, missing, constant_values=NONE)


def by_size(weights: FloatArray64) -> IntArray:
    """Numbers by which windows are chosen, the least for the largest weight, to 2⁻³⁰."""
    return -np.rint(np.nan_to_num(weights) * (1 << 30)).astype(np.int64)


def moments(values: FloatArray64) -> tuple[FloatArray64, FloatArray64, IntArray]:
    """The totals, squares and counts of documents' values (documents, H, M), NaN where none."""
    counts = np.isfinite(values).sum(axis=0)
    totals = np.nansum(values, axis=0)
    apart = values - totals / np.maximum(1, counts)
    return totals, np.nansum(apart * apart, axis=0), counts


def bin_of(largest: FloatArray64 | float) -> IntArray:
    """The bins of largest weights, as float32 puts them, which HeadVis computes with."""
    scaled = np.asarray(largest, np.float32) * np.float32(WEIGHTS)
    return np.minimum(WEIGHTS - 1, scaled.astype(np.int64))


def drawn_bin(largest: FloatArray64) -> IntArray:
    """The bins of largest weights from which examples are drawn."""
    shares = np.nan_to_num(largest, posinf=1.0) * DRAWN
    return np.clip(shares.astype(np.int64), 0, DRAWN - 1)


def means_over_tokens(record: Record, head: int) -> dict[str, tuple[float | None, int]]:
    """The means over rows of every score and of `TOTALS`, and over how many rows.

    None where no row can show it.
    """
    sums = zip(TOTALS, record.sums[head].tolist(), record.rows.tolist(), strict=True)
    means = {name: (total / rows if rows else None, rows) for name, total, rows in sums}
    (squares, rows), (distance, _) = means["squares"], means["distance"]
    variance = None
    if squares is not None and distance is not None:
        variance = max(0.0, squares - distance * distance)
    return {**means, "distance_variance": (variance, rows)}


def estimate(record: Record, head: int, metric: int) -> Estimate:
    """Estimate the mean of a metric over documents, with its standard error for several."""
    n, total = int(record.counts[head, metric]), float(record.totals[head, metric])
    if not n:
        return Estimate(nan, None)
    error = sqrt(record.squares[head, metric] / (n - 1) / n) if n > 1 else None
    return Estimate(total / n, error)


# What was counted as the rows of tables.


def heads_of(total: Record) -> list[Head]:
    """The heads of a record, in order."""
    return [head for head in map(head_named, total.heads) if head is not None]


def score_rows(total: Record) -> Iterator[Mapping[str, object]]:
    """The rows of `heads.parquet`: the scores of each head."""
    counted = {name: getattr(total, name) for name in ("documents", "windows", "tokens")}
    for place, head in enumerate(heads_of(total)):
        scores: dict[str, object] = {}
        for metric, name in enumerate(SCORES):
            score, n = estimate(total, place, metric), total.counts[place, metric]
            scores[name] = score.mean if n else None
            scores[f"{name}_error"] = score.error
            scores[f"{name}_documents"] = int(n)
        over_tokens = means_over_tokens(total, place)
        scores["largest_over_windows"], _ = over_tokens["largest"]
        for name in (*SCORES, "strong_induction"):
            scores[f"{name}_over_tokens"], scores[f"{name}_queries"] = over_tokens[name]
        yield head._asdict() | scores | counted


def bin_rows(total: Record) -> Iterator[Mapping[str, object]]:
    """The rows of `histograms.parquet`.

    `distance`, `position`: the mean mass per query; `largest`: the number of windows.
    """
    doubling = list(zip(map(float, (0, *EDGES)), (*map(float, EDGES), None), strict=True))
    equal = [(i / WEIGHTS, (i + 1) / WEIGHTS) for i in range(WEIGHTS)]
    assert len(doubling) == BINS
    documents = max(1, total.documents)
    for place, head in enumerate(heads_of(total)):
        for histogram, bounds, values in (
            ("distance", doubling, total.distances[place] / documents),
            ("position", doubling, total.positions[place] / documents),
            ("largest", equal, total.largest[place].astype(float)),
        ):
            for (start, end), value in zip(bounds, values.tolist(), strict=True):
                bin = {"start": start, "end": end, "value": value}
                yield {**head._asdict(), "histogram": histogram, **bin}


# Records of many shards as one.

AT_ONCE = 32
"""Records that are in memory at a time."""


def total_of(records: Iterable[Record], where: str) -> Record | None:
    """Add records up to one, in their order; None without any.

    `where`: the folder that they are in.

    Raises:
        InputError: they are of several models or devices.
    """
    waiting, total = iter(records), list[Record]()
    try:
        while some := list(islice(waiting, AT_ONCE)):
            total = [merged([*total, *some])]
    except ValueError as error:
        raise InputError(
            f"the records of {where!r} do not belong together: {error}",
            "scan again into another folder",
        ) from None
    return total[0] if total else None


# A record of a shard as a file: arrays of numbers, and a few lines of JSON.


DIGEST = 16
"""Bytes of a digest, which follow a record: a zip file has bytes that no checksum holds."""


def record_to_bytes(record: Record, skipped: Sequence[Skipped] = (), shard: int = 0) -> bytes:
    """A record as an NPZ file and its digest, the same bytes for the same counts.

    `skipped`: its bad documents; `shard`: the number of what was counted.
    """
    model = record.origin.model
    rest = {
        "shard": shard,
        "heads": record.heads,
        "origin": {**vars(record.origin), "model": None if model is None else MODEL.row(model)},
        **{name: getattr(record, name) for name in NUMBERS},
        "skipped": [vars(each) for each in skipped],
    }
    return archive({name: getattr(record, name) for name in shapes(0)}, rest)


def archive(
    arrays: Mapping[str, NDArray[Any]], rest: Mapping[str, Any], *, compressed: bool = True
) -> bytes:
    """Arrays, and the rest as JSON, as an NPZ file with its digest."""
    file = io.BytesIO()
    written: dict[str, Any] = {"rest": np.frombuffer(to_json(rest).encode(), np.uint8), **arrays}
    (np.savez_compressed if compressed else np.savez)(file, **written)
    file.write(_digest(file.getbuffer()))
    return file.getvalue()


def record_of_bytes(data: bytes, shard: int | None = None) -> Record:
    """Read the record that a file holds.

    Raises:
        ValueError: it holds none, or that of another shard than this one.
    """
    with opened_archive(data) as (stored, rest):
        if shard is not None and rest["shard"] != shard:
            raise ValueError("shard")
        heads = tuple(map(str, rest["heads"]))
        arrays = {name: stored[name] for name in shapes(len(heads))}
        for name, shape in shapes(len(heads)).items():
            if arrays[name].shape != shape or arrays[name].dtype != _kind(name):
                raise ValueError(name)
        numbers: dict[str, Any] = {name: int(rest[name]) for name in NUMBERS}
        said = rest["origin"]
        origin = Origin(
            scan=str(said["scan"]),
            device=str(said["device"]),
            length=int(said["length"]),
            model=None if said["model"] is None else model_of_dict(said["model"]),
            bos=bool(said["bos"]),
        )
        return Record(heads, **arrays, **numbers, origin=origin)


def skipped_of_bytes(data: bytes) -> list[Skipped]:
    """The documents of a record's shard that could not be read; raises as `record_of_bytes`."""
    with opened_archive(data) as (_, rest):
        return [Skipped(str(s["path"]), int(s["start"]), str(s["why"])) for s in rest["skipped"]]


@contextmanager
def opened_archive(data: bytes) -> Iterator[tuple[Any, Any]]:
    """The arrays of a file, which are read when they are asked for, and the rest of it.

    Raises:
        ValueError: it is damaged.
    """
    try:
        data, digest = data[:-DIGEST], data[-DIGEST:]
        if digest != _digest(data):
            raise ValueError("the digest is another one")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            yield arrays, json.loads(arrays["rest"].tobytes())
    except Exception as error:  # a damaged file fails in numpy, zlib, zipfile or tokenize
        raise ValueError(str(error)) from None


def _digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=DIGEST).digest()
