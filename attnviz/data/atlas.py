"""The result of a scan: a row for each head, and all that was found of one of them.

FOLDER/heads.parquet         Atlas.rows
FOLDER/histograms.parquet    HeadAtlas.histograms
FOLDER/tokens.parquet        HeadAtlas.tokens
FOLDER/examples.parquet      HeadAtlas.examples
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from attnviz.records.capture import FloatArray, IntArray, ModelIdentity
from attnviz.records.heads import Head
from attnviz.records.metrics import METRICS

SCORES = (*METRICS, "distance_variance")
Histogram: TypeAlias = Literal["distance", "position", "largest"]
"""`distance`, `position`: the mean mass per query on keys so far away, or at this position;
`largest`: how many windows have their largest weight there."""
Side: TypeAlias = Literal["query", "key", "pair"]


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
class Example:
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
            found = np.flatnonzero(chosen)
            if len(found):
                best = found[np.argmax(self.weights[found])]
                return int(self.queries[best]), int(self.keys[best])
        return None


@dataclass(frozen=True, eq=False)
class HeadAtlas:
    """All that a scan found of one head; `row` is that of `Atlas.rows`.

    `sampled`: over how many windows the tokens were counted; each side's with the most mass first.
    """

    row: Mapping[str, Any]
    histograms: Mapping[Histogram, Sequence[Bin]]
    tokens: Mapping[Side, Sequence[TokenMass]]
    examples: Sequence[Example]
    sampled: int = 0

    @property
    def head(self) -> Head:
        """Which head."""
        return Head(self.row["layer"], self.row["head"])


@dataclass(frozen=True, eq=False)
class Atlas:
    """The scores of every head, as `heads.parquet` has them; `model` is its name.

    `asked`: the manifest of the scan; `identity`: the model as it was loaded.
    """

    model: str
    rows: Sequence[Mapping[str, Any]]
    asked: Mapping[str, Any] = field(default_factory=dict)
    identity: ModelIdentity | None = None

    @property
    def made(self) -> Mapping[str, Any]:
        """How the scan was made, as every result of it carries it."""
        made: Mapping[str, Any] = self.asked.get("result", {}).get("made", {})
        return made

    def sorted_by(self, score: str | None, top: int | None) -> "Atlas":
        """The same heads in this order, the largest first; heads without the score last."""
        rows = list(self.rows)
        if score is not None:
            rows.sort(key=lambda row: (row[score] is None, -(row[score] or 0.0)))
        return replace(self, rows=rows[:top])

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that were scanned, in the order of the rows."""
        return tuple(Head(row["layer"], row["head"]) for row in self.rows)

    def row(self, head: Head) -> Mapping[str, Any]:
        """The row of a head that was scanned."""
        return self.rows[self.heads.index(head)]

    @property
    def size(self) -> tuple[int, int]:
        """How many documents and tokens were counted."""
        return int(self.rows[0]["documents"]), int(self.rows[0]["tokens"])
