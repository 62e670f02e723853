"""The counts of a shard, or of a whole corpus.

Records are added in the order of their shards, so that workers, parts and interruptions change no
bit of the result. Letters in the shapes:

    H heads   M metrics   S sums: those of `TOTALS`   W windows
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import FloatArray, IntArray, ModelIdentity
from attnviz.records.heads import Head
from attnviz.records.metrics import BINS, METRICS, SUMS, Estimate, Score
from attnviz.records.restore import model_of_dict
from attnviz.records.rows import MODEL, to_json

FloatArray64: TypeAlias = NDArray[np.float64]
WEIGHTS, DRAWN = 50, 20
"""Bins of equal width of a window's largest weight: those that are counted, and drawn from."""
TOP, PER_BIN, SAMPLE = 8, 2, 64
"""Examples of a head: windows with the largest weight between two tokens, and drawn ones of each
bin of the largest weight of all. Windows over which the tokens of all heads are counted."""
NONE = np.iinfo(np.int64).max
"""In place of a window that is not there."""


@dataclass(frozen=True)
class Origin:
    """The origin of a record's numbers; only records of one origin are merged.

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
    """Counts of H heads, named as in L5H1; `documents`, `windows`, `tokens`: of how much.

    `bad`: how many documents could not be read.

    `totals`, `counts` (H, M): the sum of each metric over documents, and how many have it;
    `squares` (H, M): the sum of its squared deviations from their mean. `distances`, `positions`
    (H, BINS): the mean mass per query, summed over documents.

    Of windows of two tokens and more: `sums` (H, S): `TOTALS` over the rows of all windows, and
    `rows` (S): how many rows can show each; `largest` (H, WEIGHTS): windows by their largest
    weight, the first row and column left out.

    Windows are named (shard, ordinal), behind the number by which they were chosen, the least
    first: `best` (H, TOP, 3) by the largest weight between two
    tokens, negative; `drawn` (H, DRAWN, PER_BIN, 3) and
    `sample` (SAMPLE, 3) by their hash. NONE where there are not so many.
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
"""Those of them that are whole numbers, as what is chosen is."""
CHOSEN = ("best", "drawn", "sample")
NUMBERS = ("documents", "windows", "tokens", "bad")
TOTALS = (*(name for name in SUMS if name != "mass"), "largest")
"""What is summed over the rows of windows; of `largest`, over windows. The metrics come first."""


def shapes(heads: int) -> Mapping[str, tuple[int, ...]]:
    """The shape of each array of a record of so many heads."""
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
    bins: IntArray = np.minimum(WEIGHTS - 1, scaled.astype(np.int64))
    return bins


def drawn_bin(largest: FloatArray64) -> IntArray:
    """The bins of largest weights from which examples are drawn."""
    shares = np.nan_to_num(largest, posinf=1.0) * DRAWN
    bins: IntArray = np.clip(shares.astype(np.int64), 0, DRAWN - 1)
    return bins


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
    """The mean of a metric over documents, with its standard error where there are several."""
    n, total = int(record.counts[head, metric]), float(record.totals[head, metric])
    if not n:
        return Estimate(nan, None)
    error = sqrt(record.squares[head, metric] / (n - 1) / n) if n > 1 else None
    return Estimate(total / n, error)


# The result of a scan: a row for each head, and all that was found of one of them.
#
# FOLDER/heads.parquet         Atlas.rows
# FOLDER/histograms.parquet    HeadAtlas.histograms
# FOLDER/tokens.parquet        HeadAtlas.tokens
# FOLDER/examples.parquet      HeadAtlas.examples


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
if TYPE_CHECKING:
    ScoreName: TypeAlias = str
else:
    ScoreName = Literal[tuple(SCORES)]
MeanOver: TypeAlias = Literal["documents", "tokens"]
"""What the mean of a score is taken over; of tokens, over the queries that can show it."""
Histogram: TypeAlias = Literal["distance", "position", "largest"]
"""`distance`, `position`: the mean mass per query on keys so far away, or at this position;
`largest`: how many windows have their largest weight there."""
TokenSide: TypeAlias = Literal["query", "key", "pair"]


@dataclass(frozen=True)
class Bin:
    """A bin of a histogram: from `start` up to, and without, `end`; None: it is open."""

    start: float
    end: float | None
    value: float


@dataclass(frozen=True)
class TokenMass:
    """A query token, a key token or a pair of them, and its mass over the sampled windows.

    What a token attends to itself, and the first token of a window, are left out.
    """

    query: str | None
    key: str | None
    mass: float


@dataclass(frozen=True, eq=False)
class HeadExample:
    """A window of the corpus, with the strongest links of one head in it.

    `kind`: "top" where it is one of those with the largest weight between two tokens, "bin" where
    it was drawn from the windows of its bin; `bin`: the number of the bin of `largest`, its largest
    weight; `apart`: that between two tokens (both without the first row and column); `path`,
    `start`: the document; `window`: which of its windows.
    `queries`, `keys`, `weights` (n): the links, by query, at most 8 keys a row, 0.005 and more.
    """

    kind: Literal["top", "bin"]
    bin: int
    largest: float
    apart: float
    path: str
    start: int
    window: int
    tokens: tuple[str, ...]
    queries: IntArray
    keys: IntArray
    weights: FloatArray

    @property
    def strongest(self) -> tuple[int, int] | None:
        """Query and key of the strongest link that tells something; None: there is no link.

        First row and column are left out, and a token's attention to itself where there is other.
        """
        inner = (self.queries > 0) & (self.keys > 0)
        for chosen in (inner & (self.queries != self.keys), inner):
            links = np.flatnonzero(chosen)
            if len(links):
                best = links[np.argmax(self.weights[links])]
                return int(self.queries[best]), int(self.keys[best])
        return None


@dataclass(frozen=True, eq=False)
class HeadAtlas:
    """All that a scan found of one head; `row` is that of `Atlas.rows`, `model` the model's name.

    `sampled`: over how many windows the tokens were counted; each side's with the most mass first.
    """

    row: Mapping[str, Any]
    histograms: Mapping[Histogram, Sequence[Bin]]
    tokens: Mapping[TokenSide, Sequence[TokenMass]]
    examples: Sequence[HeadExample]
    sampled: int = 0
    model: str = ""

    def __repr__(self) -> str:
        tokens = sum(map(len, self.tokens.values()))
        return (
            f"<HeadAtlas of {self.model} {self.head}: {len(SCORES)} scores, "
            f"{len(self.histograms)} histograms, {tokens:,} tokens, {len(self.examples)} examples>"
        )

    @property
    def head(self) -> Head:
        return head_of(self.row)

    def first(self, most: int | None) -> "HeadAtlas":
        """The same with at most so many tokens of each side, and examples; None: all."""
        tokens = {side: masses[:most] for side, masses in self.tokens.items()}
        return replace(self, tokens=tokens, examples=self.examples[:most])


@dataclass(frozen=True, eq=False)
class Atlas:
    """The scores of every head, as `heads.parquet` has them; `model` is its name.

    `rows`: beside the columns, `mean_over`: what the scores are averaged over.
    `manifest`: that of the scan; `identity`: the model as it was loaded; `folder`: where the
    tables are, as it was named; `made`: how the scan was made, as every result of it carries it.
    `total`: what is counted, where the scan is not finished; then the rows have `partial`.
    """

    model: str
    rows: Sequence[Mapping[str, Any]]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    identity: ModelIdentity | None = None
    folder: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)
    total: Record | None = None

    @property
    def partial(self) -> str:
        """`312 of 1,204 shards, 26%`, where the scan is not finished."""
        return partial_of(self.rows[0])

    @property
    def length(self) -> int | None:
        """The most tokens of a window, as the model took them; None where nobody said it."""
        length = self.made.get("options", {}).get("length")
        return length if isinstance(length, int) else None

    @property
    def mean_over(self) -> MeanOver:
        """What the scores are means over."""
        over: MeanOver = self.rows[0]["mean_over"]
        return over

    def sorted_by(self, score: str) -> "Atlas":
        """The same heads in this order, the largest first; heads without the score last."""
        order = sorted(self.rows, key=lambda row: (row[score] is None, -(row[score] or 0.0)))
        return replace(self, rows=order)

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that were scanned, in the order of the rows."""
        return tuple(map(head_of, self.rows))

    def values(self, column: str) -> FloatArray64:
        """A column of the rows (heads), NaN where nothing could be measured."""
        return np.array([row[column] for row in self.rows], np.float64)

    @property
    def size(self) -> tuple[int, int]:
        """How many documents and tokens were counted."""
        return int(self.rows[0]["documents"]), int(self.rows[0]["tokens"])


def row_of_means(row: Mapping[str, Any], over: MeanOver) -> Mapping[str, Any]:
    """A row of `heads.parquet` whose scores are these means; those over tokens have no errors."""
    if over == "documents":
        return {**row, "mean_over": over}
    means = {name: row[f"{name}_over_tokens"] for name in SCORES}
    return {**row, **means, **{f"{name}_error": None for name in SCORES}, "mean_over": over}


def partial_of(row: Mapping[str, Any]) -> str:
    """Which part of the corpus a row of the atlas is of; empty: all of it."""
    return str(row.get("partial", ""))


def head_of(row: Mapping[str, Any]) -> Head:
    """The head of a row of any table."""
    return Head(row["layer"], row["head"])


# What a scan reads: a corpus in shards, and the documents of each.


Split: TypeAlias = Literal["file", "paragraph", "line"]


@dataclass(frozen=True)
class CorpusFile:
    """A file of the corpus: its path or URL, its bytes, and a mark that changes with its content.

    `mark`: the time of the last change in nanoseconds; of a URL, the checksum or the time that its
    file system tells, or nothing. `inode`: its number in the file system of this machine.
    """

    path: str
    size: int
    mark: str
    inode: int = 0


@dataclass(frozen=True)
class FilePart:
    """A part of a corpus file: from the byte `start` up to, and without, `end`.

    Documents that begin there belong to it; in Parquet, the row groups that begin there. `file`:
    the file as it was when the corpus was listed; None: nobody looked.
    """

    path: str
    start: int
    end: int
    file: CorpusFile | None = None


@dataclass(frozen=True)
class Shard:
    """The documents that one worker counts at a time; its record has its number.

    `most`: how many documents of it are counted; None: all.
    """

    number: int
    pieces: tuple[FilePart, ...]
    most: int | None = None

    @property
    def size(self) -> int:
        """Bytes of its files, as they are stored."""
        return sum(piece.end - piece.start for piece in self.pieces)


@dataclass(frozen=True)
class CorpusText:
    """A text of the corpus, its file, and the byte at which it begins.

    The byte is one of the decompressed file; in Parquet, `start` is the row, counted from 0.
    """

    path: str
    start: int
    text: str


@dataclass(frozen=True)
class Skipped:
    """A document that could not be read, or all that is left of a piece, and why."""

    path: str
    start: int
    why: str


def files_of(shards: Iterable[Shard]) -> list[CorpusFile]:
    """The files of some shards, each once."""
    every = (piece.file for shard in shards for piece in shard.pieces)
    return list(dict.fromkeys(file for file in every if file is not None))


# A record of a shard as a file: arrays of integers, and a few lines of JSON.


DIGEST = 16
"""Bytes of a digest, which stand behind a record: a zip file has bytes that no checksum holds."""


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
    """The record that a file holds.

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
        return Record(heads, **arrays, **numbers, origin=_origin(rest["origin"]))


def skipped_of_bytes(data: bytes) -> list[Skipped]:
    """The documents of a record's shard that could not be read; raises as `record_of_bytes`."""
    with opened_archive(data) as (_, rest):
        return [Skipped(str(s["path"]), int(s["start"]), str(s["why"])) for s in rest["skipped"]]


def _origin(entry: dict[str, Any]) -> Origin:
    model = None if entry["model"] is None else model_of_dict(entry["model"])
    scan, device, length = str(entry["scan"]), str(entry["device"]), int(entry["length"])
    return Origin(scan, device, length, model, bool(entry["bos"]))


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
