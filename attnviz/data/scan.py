"""A scan: what every head does over a corpus, as integers that merge exactly.

Values of documents are rounded to fixed point and added up as whole numbers, so that no order of
documents, shards or workers changes a bit of the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan, sqrt
from typing import Any, Literal, TypeAlias

from attnviz.data.heads import Estimate

Split: TypeAlias = Literal["file", "paragraph", "line"]
SCALE = 1 << 32
"""A value of 1 in fixed point."""
DISTANCES = tuple(1 << i for i in range(15))
"""Each bin of distances and positions but the first, which is 0, begins here."""
WEIGHTS = 20
"""Bins of equal width for the largest weight of a window."""


@dataclass(frozen=True)
class Piece:
    """A part of a corpus file: from the byte `start` up to, and without, `end`."""

    path: str
    start: int
    end: int


@dataclass(frozen=True)
class Shard:
    """What one worker counts at a time; its record has its number."""

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Document:
    """A text of the corpus, and the file and the byte at which it begins."""

    path: str
    start: int
    text: str


@dataclass(frozen=True)
class Skipped:
    """A document that could not be read, and why."""

    path: str
    start: int
    why: str


@dataclass
class Moments:
    """The sum of values in fixed point, of their squares, and how many there are."""

    total: int = 0
    squares: int = 0
    n: int = 0

    def add(self, value: float) -> None:
        """One document's value; NaN is none."""
        if isnan(value):
            return
        fixed = round(value * SCALE)
        self.total += fixed
        self.squares += fixed * fixed
        self.n += 1

    def merge(self, other: "Moments") -> None:
        """The values of another record."""
        self.total += other.total
        self.squares += other.squares
        self.n += other.n

    def estimate(self) -> Estimate:
        """The mean, with its standard error over documents where there are several."""
        if not self.n:
            return Estimate(nan, None)
        mean = self.total / self.n / SCALE
        if self.n < 2:
            return Estimate(mean, None)
        # in whole numbers up to the division: no difference of large floats
        spread = (self.squares * self.n - self.total * self.total) / (self.n * (self.n - 1))
        return Estimate(mean, sqrt(max(0.0, spread) / self.n) / SCALE)


@dataclass
class HeadCounts:
    """What was counted of one head.

    `metrics`: by name. `distances`: the mass by distance, the mean of documents in fixed point, one
    for each bin; `largest`: windows by their largest weight, the first row and column left out.
    """

    metrics: dict[str, Moments] = field(default_factory=dict)
    distances: list[int] = field(default_factory=lambda: [0] * (len(DISTANCES) + 1))
    largest: list[int] = field(default_factory=lambda: [0] * WEIGHTS)

    def merge(self, other: "HeadCounts") -> None:
        """The counts of another record."""
        for name, moments in other.metrics.items():
            self.metrics.setdefault(name, Moments()).merge(moments)
        self.distances = [a + b for a, b in zip(self.distances, other.distances, strict=True)]
        self.largest = [a + b for a, b in zip(self.largest, other.largest, strict=True)]


@dataclass
class Record:
    """What was counted of a shard, or of several: heads by name, documents, windows, tokens."""

    heads: dict[str, HeadCounts] = field(default_factory=dict)
    documents: int = 0
    windows: int = 0
    tokens: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def merge(self, other: "Record") -> None:
        """The counts of another record."""
        for head, counts in other.heads.items():
            self.heads.setdefault(head, HeadCounts()).merge(counts)
        self.documents += other.documents
        self.windows += other.windows
        self.tokens += other.tokens
        self.skipped += other.skipped


def record_to_dict(record: Record) -> dict[str, Any]:
    """A record as JSON, the same for the same counts."""
    return {
        "documents": record.documents,
        "windows": record.windows,
        "tokens": record.tokens,
        "skipped": [vars(each) for each in record.skipped],
        "heads": {
            head: {
                "metrics": {
                    name: [moments.total, moments.squares, moments.n]
                    for name, moments in sorted(counts.metrics.items())
                },
                "distances": counts.distances,
                "largest": counts.largest,
            }
            for head, counts in sorted(record.heads.items())
        },
    }


def record_of(content: Mapping[str, Any]) -> Record:
    """The record that JSON holds; raises KeyError, TypeError or ValueError where it is none."""
    heads = {
        head: HeadCounts(
            {name: Moments(*map(int, values)) for name, values in counts["metrics"].items()},
            _counts(counts["distances"], len(DISTANCES) + 1),
            _counts(counts["largest"], WEIGHTS),
        )
        for head, counts in content["heads"].items()
    }
    skipped = [Skipped(each["path"], each["start"], each["why"]) for each in content["skipped"]]
    documents, windows, tokens = (int(content[n]) for n in ("documents", "windows", "tokens"))
    return Record(heads, documents, windows, tokens, skipped)


def _counts(values: Sequence[Any], n: int) -> list[int]:
    if len(values) != n:
        raise ValueError(f"{len(values)} bins, not {n}")
    return [int(value) for value in values]
