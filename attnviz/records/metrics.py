"""Head metrics: numbers that describe what each head does, and how they were measured."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan, sqrt
from statistics import fmean, stdev
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray, IntArray, PatternBlock
from attnviz.records.heads import Head

Metric: TypeAlias = Literal[
    "entropy", "normalised", "distance", "previous", "first", "self", "duplicate", "induction"
]
METRICS: tuple[str, ...] = get_args(Metric)
"""The names of all metrics; `docs/metrics.md` defines them."""
RoleName: TypeAlias = Literal[
    "induction", "duplicate token", "previous token", "self", "sink", "broad"
]


@dataclass(frozen=True)
class Estimate:
    """A mean, NaN where nothing could be measured; `error` is its standard error over samples."""

    mean: float
    error: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """The mean of some samples, at least one."""
        error = float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else None
        return cls(fmean(values), error)


def descending(value: float) -> float:
    """What to sort by, so that the largest value comes first and what was not measured last."""
    return inf if isnan(value) else -value


@dataclass(frozen=True)
class Role:
    """What a head is called when a metric reaches a threshold: `induction`, as induction ≥ 0.4.

    `rows`: how many rows must be able to show it. With fewer, a head would reach the threshold by
    chance.
    """

    name: str
    metric: str
    least: float
    rows: int = 1


@dataclass(frozen=True)
class HeadMetrics:
    """All metrics of a head.

    `role` is None where no threshold was reached, over enough rows; `named` holds the behaviours
    that the model's card names the head for.
    """

    head: Head
    metrics: Mapping[str, Estimate]
    role: Role | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeadReport:
    """The metrics of a model's heads, over a text or a probe.

    `capture` is the run that was measured, without its patterns; `probe` names the convention by
    which a probe was measured, and is empty for a text; `sinks` of all `measured` heads put
    more than 0.3 of their weight on the first token; `heads` may be some of them. `untold` are the
    roles that were measured over too few rows, and over how many.
    """

    capture: Capture
    heads: Sequence[HeadMetrics]
    sinks: int
    measured: int
    probe: str = ""
    untold: Sequence[tuple[Role, int]] = ()


# Head metrics, computed from the rows of a run as they come.
#
# Sources: entropy and distance, Vig & Belinkov 2019, "Analyzing the Structure of Attention in
# a Transformer Language Model", arXiv 1906.04284; the sink and its threshold, Gu et al. 2024,
# "When Attention Sink Emerges in Language Models", arXiv 2410.10781; duplicate-token and
# induction heads, Olsson et al. 2022, "In-context Learning and Induction Heads", arXiv
# 2209.11895.


Marks: TypeAlias = Callable[[IntArray, int], Mapping[str, NDArray[np.bool_]]]
"""For the queries of some rows and n keys: metric to (rows, n), True on the keys it counts."""

SINK = 0.3
ROLES = (
    Role("induction", "induction", 0.4, rows=4),
    Role("duplicate token", "duplicate", 0.4, rows=4),
    Role("previous token", "previous", 0.4, rows=11),
    Role("self", "self", 0.4, rows=18),
    Role("sink", "first", SINK, rows=26),
    Role("broad", "normalised", 0.8, rows=11),
)
"""A head's role is the first of these whose threshold it reaches, over enough rows.

A causal query sees few keys at the beginning of a text, so that a head without any preference
has much weight on each. The rows of `previous`, `self` and `first` are the fewest over which such
a head reaches at most half the threshold.
"""


def marks_of_tokens(ids: Sequence[int], since: int = 0) -> Marks:
    """The keys that count, by tokens: earlier copies of the query's token, and what followed them.

    Args:
        ids: the ids of the key tokens (n); a query has the token at its own position.
        since: queries before this position count only for `self` and `first`.
    """
    tokens = np.array(ids)

    def marks(queries: IntArray, n: int) -> Mapping[str, NDArray[np.bool_]]:
        query, key = queries[:, None], np.arange(n)
        copies = (tokens[:n] == tokens[queries][:, None]) & (key < query) & (query >= since)
        followers = np.zeros_like(copies)
        followers[:, 1:] = copies[:, :-1] & (key[1:] < query)
        return {
            "previous": (key == query - 1) & (query >= since),
            "first": np.broadcast_to(key == 0, copies.shape),
            "self": key == query,
            "duplicate": copies,
            "induction": followers,
        }

    return marks


def marks_of_diagonals(period: int) -> Marks:
    """The keys that count, by distance alone: the diagonals that TransformerLens averages."""

    def marks(queries: IntArray, n: int) -> Mapping[str, NDArray[np.bool_]]:
        query, key = queries[:, None], np.arange(n)
        return {
            "previous": key == query - 1,
            "first": np.broadcast_to(key == 0, (len(queries), n)),
            "self": key == query,
            "duplicate": key == query - period,
            "induction": key == query - period + 1,
        }

    return marks


def marks_of_first() -> Marks:
    """The keys that count where queries and keys are two texts: only the first."""

    def marks(queries: IntArray, n: int) -> Mapping[str, NDArray[np.bool_]]:
        return {"first": np.broadcast_to(np.arange(n) == 0, (len(queries), n))}

    return marks


@dataclass
class MeasureHeads:
    """Consumes the rows of a run, and measures every head.

    `marks` says which keys count for which metric; `causal` whether a query sees only itself
    and earlier tokens; `apart` whether queries and keys are two texts, between which there is
    no distance; `dropped` the keys that were removed, which no query sees.
    """

    marks: Marks
    causal: bool
    apart: bool = False
    dropped: Sequence[int] = ()
    _sums: dict[str, dict[Head, float]] = field(default_factory=lambda: defaultdict(dict))
    _counts: dict[str, dict[Head, float]] = field(default_factory=lambda: defaultdict(dict))

    def __call__(self, block: PatternBlock) -> None:
        n = block.weights.shape[2]
        kept = ~np.isin(np.arange(n), self.dropped)
        for metric, counted in self.marks(block.queries, n).items():
            marked = counted & kept
            mass = np.einsum("hrk,rk->h", block.weights, marked.astype(np.float32))
            self._add(metric, block, mass, float(marked.any(axis=1).sum()))
        self._add_entropy(block, kept)
        if not self.apart:
            distances = np.abs(block.queries[:, None] - np.arange(n)).astype(np.float32)
            weighted = np.einsum("hrk,rk->h", block.weights, distances)
            self._add("distance", block, weighted, block.sums.sum(axis=1))

    def _add_entropy(self, block: PatternBlock, kept: NDArray[np.bool_]) -> None:
        entropies = entropy(block.weights)  # (heads, rows)
        self._add("entropy", block, entropies.sum(axis=1), len(block.queries))
        every = np.full(len(block.queries), kept.sum())
        seen = np.cumsum(kept)[block.queries] if self.causal else every
        able = seen > 1  # a query that sees one key has no choice
        if able.any():
            shares = entropies[:, able] / np.log(seen[able])
            self._add("normalised", block, shares.sum(axis=1), float(able.sum()))

    def _add(
        self, metric: str, block: PatternBlock, sums: NDArray[np.floating], counts: object
    ) -> None:
        per_head = np.broadcast_to(np.asarray(counts, float), sums.shape)
        for i, head in enumerate(Head(block.layer, head) for head in block.heads):
            self._sums[metric][head] = self._sums[metric].get(head, 0.0) + float(sums[i])
            self._counts[metric][head] = self._counts[metric].get(head, 0.0) + float(per_head[i])

    def metrics(self) -> dict[Head, dict[str, float]]:
        """Every head's metrics; NaN where no query could show one."""
        heads = sorted(self._sums["entropy"])
        return {head: {metric: self._mean(metric, head) for metric in METRICS} for head in heads}

    def rows(self) -> dict[str, int]:
        """How many rows could show each metric that a role follows from."""
        counts = {role.metric: self._counts[role.metric].values() for role in ROLES}
        return {metric: int(max(rows, default=0)) for metric, rows in counts.items()}

    def _mean(self, metric: str, head: Head) -> float:
        count = self._counts[metric].get(head, 0.0)
        return self._sums[metric][head] / count if count else nan


def entropy(weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """−Σ A ln A of each row, in nats, with 0·ln 0 = 0; (..., n) to (...)."""
    logs = np.log(np.where(weights > 0, weights, 1))
    entropies: NDArray[np.floating] = -(weights * logs).sum(axis=-1)
    return entropies


def role_of(metrics: Mapping[str, Estimate], rows: Mapping[str, int]) -> Role | None:
    """The first role whose threshold is reached, over enough rows."""
    reached = (role for role in ROLES if metrics[role.metric].mean >= role.least)
    return next((role for role in reached if rows[role.metric] >= role.rows), None)


def untold_roles(rows: Mapping[str, int]) -> tuple[tuple[Role, int], ...]:
    """The roles that some rows could show, but too few: each with their number."""
    counted = ((role, rows[role.metric]) for role in ROLES)
    return tuple((role, count) for role, count in counted if 0 < count < role.rows)


def estimates(samples: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """The mean of each metric over samples, with its standard error where there are several."""
    means = {}
    for metric in METRICS:
        values = [sample[metric] for sample in samples]
        error = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
        means[metric] = Estimate(fmean(values), error)
    return means


# What the attention of windows of text adds up to, as `models/` hands it over.


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
