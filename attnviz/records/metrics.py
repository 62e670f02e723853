"""The metrics of a head, each declared once, and the measurement of heads with them.

Sources: entropy and distance, Vig & Belinkov 2019, "Analyzing the Structure of Attention in a
Transformer Language Model", arXiv 1906.04284; the sink and its threshold, Gu et al. 2024, "When
Attention Sink Emerges in Language Models", arXiv 2410.10781; duplicate-token and induction heads,
Olsson et al. 2022, "In-context Learning and Induction Heads", arXiv 2209.11895.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isnan, nan, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray, IntArray, PatternBlock
from attnviz.records.exhibit import LITTLE_LEFT
from attnviz.records.heads import Head

if TYPE_CHECKING:
    from attnviz.plugins import Plugin
    from attnviz.records.rests import FindRests

Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Marks:
    """Masks of the keys (r, n) that are earlier copies of a query's token, and that followed these.

    `of`: for queries (r) and n keys. `since`: queries before this position do not count for
    `previous`, `duplicate` and `induction`. `apart`: queries and keys are two texts, without
    distances.
    """

    of: Callable[[IntArray, int], tuple[Bools, Bools]]
    since: int = 0
    apart: bool = False


def marks_of_tokens(ids: Sequence[int], since: int = 0) -> Marks:
    """The marks by the ids of the key tokens (n); a query has the token at its own position."""
    tokens = np.array(ids)

    def marks(queries: IntArray, n: int) -> tuple[Bools, Bools]:
        query, key = queries[:, None], np.arange(n)
        copies = (tokens[:n] == tokens[queries][:, None]) & (key < query) & (query >= since)
        followers = np.zeros_like(copies)
        followers[:, 1:] = copies[:, :-1] & (key[1:] < query)
        return copies, followers

    return Marks(marks, since)


def marks_of_diagonals(period: int) -> Marks:
    """The marks by distance only: the diagonals that TransformerLens averages."""

    def marks(queries: IntArray, n: int) -> tuple[Bools, Bools]:
        away = queries[:, None] - np.arange(n)
        return away == period, away == period - 1

    return Marks(marks)


def marks_of_two_texts() -> Marks:
    """The marks between two texts: no key is a copy of a query."""

    def marks(queries: IntArray, n: int) -> tuple[Bools, Bools]:
        none = np.zeros((len(queries), n), np.bool_)
        return none, none

    return Marks(marks, apart=True)


class MetricRows:
    """The input of metrics: rows of the heads of a layer; h heads, r rows, n keys.

    `weights` (h, r, n), `sums` (h, r); `keys` (n): their positions; `away` (r, n): the distance
    from a query back to a key, NaN between two texts; `counts` (r, 1): see `Marks.since`;
    `copies`, `followers` (r, n): see `Marks`; `visible` (r, n), `seen` (r): the keys that a query
    can attend to, and their number.
    """

    def __init__(self, block: PatternBlock, marks: Marks, kept: Bools, *, causal: bool) -> None:
        query, n = block.queries[:, None], block.weights.shape[2]
        self.weights, self.sums, self.apart = block.weights, block.sums, marks.apart
        self.keys = np.arange(n)
        self.away = query - (np.full(n, nan) if marks.apart else self.keys)
        self.counts = query >= marks.since
        self.copies, self.followers = marks.of(block.queries, n)
        self.visible = kept & (self.away >= 0) if causal else np.broadcast_to(kept, self.away.shape)
        self.seen = np.cumsum(kept)[block.queries] if causal else np.full(len(query), kept.sum())

    @cached_property
    def entropies(self) -> NDArray[np.floating]:
        """The value of each row (h, r), in nats."""
        return entropy(self.weights)


RowSum: TypeAlias = tuple[NDArray[np.floating], object]
"""A sum over rows for each head (h), and its divisor: the number of rows, or the weight."""


@dataclass(frozen=True)
class Score:
    """A number that describes a head's behaviour: a `meaning` in a clause.

    `short`: for narrow columns; `unit`: empty for a share; `headvis`: HeadVis's name for its mean
    over tokens, empty if HeadVis has none of this definition.
    """

    name: str
    short: str
    meaning: str
    headvis: str = ""
    unit: Literal["", "nats", "tokens", "tokens²", "patches"] = ""

    @property
    def label(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def sentence(self) -> str:
        """The meaning of its mean, for the reader of a column."""
        return f"Mean {self.meaning}{f', in {self.unit}' if self.unit else ''}."

    @property
    def of_distances(self) -> bool:
        """Whether its unit is tokens, so that it is large and needs fewer digits."""
        return self.unit.startswith(("tokens", "patches"))

    def cell(self, value: float | None) -> str:
        """A value in a table's column."""
        if value is None or isnan(value):
            return "–"
        return f"{value:.1f}" if self.of_distances else f"{value:.2f}"


@dataclass(frozen=True, kw_only=True)
class Metric(Score):
    """A score that is a mean over the rows that can show it; `of`: the sum over some rows.

    A head whose value is `least` or more, over at least `rows` such rows, has the `role`; the
    lowest `rank` decides between roles. With fewer rows chance could reach the value. `mark`: the
    keys (r, n) whose weight is the value, over rows that can attend to one. `telling`: the role
    describes a head's behaviour, and not only how its weights are spread.
    """

    of: Callable[[MetricRows], RowSum] = lambda rows: (np.zeros(len(rows.weights)), 0.0)
    mark: Callable[[MetricRows], Bools] | None = None
    role: str = ""
    least: float = inf
    rows: int = 1
    rank: int = 0
    telling: bool = False


@dataclass(frozen=True)
class FastSum:
    """The sum of a metric over the rows of windows (B, h), faster than by its own `of`.

    `of`: a function of the `_LayerSums` of `models/reducing.py`, whose `by_distance` begins at
    distance 0; it gives a tensor. `rows`: how many rows of a window can show it, of the distance of
    each token from its first occurrence (n), and whether the model is causal.
    """

    of: Callable[[Any], Any]
    rows: Callable[[IntArray, bool], int] = lambda before, causal: len(before)


NOT_SUMMED = FastSum(lambda layer: layer.previous * 0, lambda before, causal: 0)
"""In place of a sum that a plugin lacks: a scan has no row that could show the metric."""


class MetricTable(Mapping[str, Metric]):
    """Metrics by their names: `own` ones, then those of plugins.

    Plugins are imported when the table is first read.
    """

    def __init__(self, *metrics: Metric) -> None:
        self.own = {metric.name: metric for metric in metrics}

    @cached_property
    def added(self) -> "Mapping[Plugin, tuple[Metric, FastSum]]":
        """What each plugin adds."""
        from attnviz.plugins import found, working

        vars(self)["added"] = {}  # for a plugin that reads the table while it is imported
        scores = [*self.own.values(), *IMAGE_METRICS.values()]
        taken = {*OTHER_SUMS, *(name for each in scores for name in (each.name, each.short))}

        def row(plugin: "Plugin") -> tuple[Metric, FastSum]:
            given = plugin.load()
            match given if isinstance(given, tuple) else (given, NOT_SUMMED):
                case (Metric() as metric, FastSum() as fast):
                    names = {metric.name, metric.short}
                    if names & taken:
                        why = f"is left out, as there is a metric {min(names & taken)!r} already"
                        raise plugin.failed(why)
                    taken.update(names)
                    return metric, fast
            raise plugin.failed("is neither a Metric nor a Metric and its FastSum")

        return dict(working(found("metrics").values(), row))

    @property
    def _all(self) -> Mapping[str, Metric]:
        return self.own | {metric.name: metric for metric, _ in self.added.values()}

    def __getitem__(self, name: str) -> Metric:
        return self.own.get(name) or self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def entropy(weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """−Σ A ln A of each row, in nats, with 0·ln 0 = 0; (..., n) to (...)."""
    logs = np.log(np.where(weights > 0, weights, 1))
    entropies: NDArray[np.floating] = -(weights * logs).sum(axis=-1)
    return entropies


def _normalised(rows: MetricRows) -> RowSum:
    able = rows.seen > 1  # a query with a single key has no choice
    return (rows.entropies[:, able] / np.log(rows.seen[able])).sum(axis=1), float(able.sum())


def _distance(rows: MetricRows) -> RowSum:
    if rows.apart:
        return np.zeros(len(rows.weights)), 0.0
    distances = np.abs(rows.away).astype(np.float32)
    return np.einsum("hrk,rk->h", rows.weights, distances), rows.sums.sum(axis=1)


# A causal query has few keys at the beginning of a text, so that a head without any preference has
# much weight on each. The rows of `previous`, `self` and `first` are the fewest over which such a
# head reaches at most half the threshold.
METRICS: MetricTable = MetricTable(
    Metric(
        "entropy",
        "entropy",
        "entropy of a query's weights, 0 where one key has all",
        "pattern_entropy",
        unit="nats",
        of=lambda rows: (rows.entropies.sum(axis=1), len(rows.seen)),
    ),
    Metric(
        "normalised",
        "norm",
        "entropy as a share of the most possible, 1 where all keys have the same weight",
        of=_normalised,
        role="broad",
        least=0.8,
        rows=11,
        rank=6,
    ),
    Metric(
        "distance",
        "dist",
        "distance from a query to its keys",
        "qk_distance",
        unit="tokens",
        of=_distance,
    ),
    Metric(
        "previous",
        "prev",
        "weight on the token before the query",
        "prev_token_score",
        mark=lambda rows: (rows.away == 1) & rows.counts,
        role="previous token",
        least=0.4,
        rows=11,
        rank=3,
        telling=True,
    ),
    Metric(
        "first",
        "first",
        "weight on the first token",
        mark=lambda rows: rows.keys == 0,
        role="sink",
        least=0.3,
        rows=26,
        rank=5,
    ),
    Metric(
        "self",
        "self",
        "weight on the query itself",
        "self_attention_score",
        mark=lambda rows: rows.away == 0,
        role="self",
        least=0.4,
        rows=18,
        rank=4,
        telling=True,
    ),
    Metric(
        "duplicate",
        "dup",
        "weight on earlier occurrences of the query's token",
        mark=lambda rows: rows.copies,
        role="duplicate token",
        least=0.4,
        rows=4,
        rank=2,
        telling=True,
    ),
    Metric(
        "induction",
        "ind",
        "weight on the tokens that followed earlier occurrences of the query's token",
        mark=lambda rows: rows.followers,
        role="induction",
        least=0.4,
        rows=4,
        rank=1,
        telling=True,
    ),
)
"""Every metric, in the order of columns; `docs/metrics.md` lists them."""
IMAGE_METRICS: Mapping[str, Score] = {
    score.name: score
    for score in (
        Score("entropy", "entropy", "entropy of a patch's weights", unit="nats"),
        Score(
            "patch_distance",
            "dist",
            "distance between a patch and the patches that it attends to",
            unit="patches",
        ),
        Score(
            "spatial_entropy",
            "spatial",
            "entropy of the regions of the image that the class token (else all patches) attends "
            "to, 0 for one region",
            unit="nats",
        ),
        Score("class", "class", "weight on the class token"),
        Score("registers", "reg", "weight on registers"),
        Score("sinks", "sinks", "weight on patches that nearly every patch attends to strongly"),
    )
}
"""What is measured of heads within an image (records/images.py), in place of `METRICS`."""


@dataclass(frozen=True)
class Role:
    """The name for a head when a metric reaches a threshold over enough `rows`."""

    name: str
    metric: str
    least: float
    rows: int = 1


def _roles() -> tuple[Role, ...]:
    ranked = sorted(METRICS.values(), key=lambda metric: metric.rank)
    return tuple(Role(m.role, m.name, m.least, m.rows) for m in ranked if m.role)


def _names() -> tuple[str, ...]:
    every = (*METRICS.values(), *IMAGE_METRICS.values())
    return tuple(dict.fromkeys(name for each in every for name in (each.name, each.short)))


SINK = METRICS.own["first"].least
if TYPE_CHECKING:
    ROLES: tuple[Role, ...]
    """A head's role is the first of these whose threshold it reaches, over enough rows."""
    SUMS: tuple[str, ...]
    """The sums over the rows: each metric, and `OTHER_SUMS`."""
    MetricName: TypeAlias = str
    RoleName: TypeAlias = str
else:

    def __getattr__(name: str) -> Any:
        """What follows from the whole table, which is not read before it is needed."""
        makers = {
            "ROLES": _roles,
            "SUMS": lambda: (*METRICS, *OTHER_SUMS),
            "MetricName": lambda: Literal[_names()],
            "RoleName": lambda: Literal[tuple(role.name for role in _roles())],
        }
        if name not in makers:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = made = makers[name]()
        return made


@dataclass(frozen=True)
class Estimate:
    """A mean, NaN if nothing could be measured; `error` is its standard error over samples."""

    mean: float
    error: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """The mean of some samples."""
        error = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
        return cls(fmean(values) if values else nan, error)

    @classmethod
    def ratio(cls, values: Sequence[float], sizes: Sequence[float]) -> "Estimate":
        """The ratio of two means, with its standard error (Cochran 1977, equation 2.39).

        In a mean of ratios, a sample of almost no size would decide.
        """
        size = fmean(sizes)
        share = fmean(values) / size
        rest = [value - share * own for value, own in zip(values, sizes, strict=True)]
        error = stdev(rest) / sqrt(len(rest)) / abs(size) if len(rest) > 1 else None
        return cls(share, error)


def descending(value: float) -> float:
    """The sorting key that puts the largest value first, and unmeasured ones last."""
    return inf if isnan(value) else -value


@dataclass(frozen=True)
class HeadMetrics:
    """All metrics of a head; `named`: the behaviours that the model's card names it for.

    `rests`: the share of the weight on keys on which it rests, NaN if not measured.
    """

    head: Head
    metrics: Mapping[str, Estimate]
    role: Role | None = None
    named: tuple[str, ...] = ()
    rests: Estimate = Estimate(nan)


@dataclass(frozen=True)
class HeadReport:
    """The metrics of a model's heads, over a text, a probe, or within images.

    `capture`: the run, without its patterns. `probe`: the convention by which a probe was measured;
    empty for a text. `sinks` of all `measured` heads, of which `heads` may be some, put more than
    0.3 of their weight on the first token. `untold`: the roles that were measured over too few
    rows, with their number. `others`: the runs of further texts, or images. `scores`: those that
    were measured. `on_probe`: the roles of heads on the probe, if these were measured before.
    """

    capture: Capture
    heads: Sequence[HeadMetrics]
    sinks: int
    measured: int
    probe: str = ""
    untold: Sequence[tuple[Role, int]] = ()
    others: Sequence[Capture] = ()
    scores: Mapping[str, Score] = field(default_factory=lambda: METRICS)
    on_probe: Mapping[str, str] = field(default_factory=dict)


@dataclass
class MeasureHeads:
    """Consumes the rows of a run, and measures every head, without attention to `dropped` keys.

    `rests`: finds the keys on which heads rest, in the same rows; None if not wanted.
    """

    marks: Marks
    causal: bool
    dropped: Sequence[int] = ()
    rests: "FindRests | None" = None
    _sums: dict[str, dict[Head, float]] = field(default_factory=lambda: defaultdict(dict))
    _counts: dict[str, dict[Head, float]] = field(default_factory=lambda: defaultdict(dict))
    _keys: dict[Head, dict[str, NDArray[np.float64]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """For each telling metric (2, n_keys): the weight on marked keys, and on all, in its rows."""

    def __call__(self, block: PatternBlock) -> None:
        n, heads = block.weights.shape[2], [Head(block.layer, head) for head in block.heads]
        kept = ~np.isin(np.arange(n), self.dropped)
        rows = MetricRows(block, self.marks, kept, causal=self.causal)
        if self.rests is not None:
            self.rests(block)
        for name, metric in METRICS.items():
            if metric.mark is None:
                sums, over = metric.of(rows)
            else:
                marked = metric.mark(rows) & rows.visible
                able = marked.any(axis=1)
                on_keys = np.einsum("hrk,rk->hk", rows.weights, marked.astype(np.float32))
                sums, over = on_keys.sum(axis=1), float(able.sum())
                if self.rests is not None and metric.telling and over:
                    spent = able.astype(np.float32) @ rows.weights  # (h, n)
                    for head, both in zip(heads, np.stack([on_keys, spent], 1), strict=True):
                        blank = np.zeros((2, self.rests.shape[1]))
                        self._keys[head].setdefault(name, blank)[:, :n] += both
            counts = np.broadcast_to(np.asarray(over, float), sums.shape)
            for i, head in enumerate(heads):
                self._sums[name][head] = self._sums[name].get(head, 0.0) + float(sums[i])
                self._counts[name][head] = self._counts[name].get(head, 0.0) + float(counts[i])

    def resting(self) -> dict[Head, dict[str, float]]:
        """Every head's `rests`, and its telling metrics as shares of the weight on other keys.

        A metric whose rows keep less than a fifth of their weight has no such share.
        """
        found = dict[Head, dict[str, float]]()
        if self.rests is None:
            return found
        for head in self._sums["entropy"]:
            off = ~self.rests.of(head)
            found[head] = {"rests": self.rests.share(head)}
            for name, (on_keys, spent) in self._keys[head].items():
                left = spent[off].sum()
                if left >= LITTLE_LEFT * spent.sum():
                    found[head][name] = float(on_keys[off].sum() / left)
        return found

    def metrics(self) -> dict[Head, dict[str, float]]:
        """Every head's metrics; NaN if no query could show one."""
        heads = sorted(self._sums["entropy"])
        return {head: {name: self._mean(name, head) for name in METRICS} for head in heads}

    def rows(self) -> dict[str, int]:
        """The number of rows that could show each metric from which a role follows."""
        counts = {role.metric: self._counts[role.metric].values() for role in _roles()}
        return {metric: int(max(rows, default=0)) for metric, rows in counts.items()}

    def _mean(self, metric: str, head: Head) -> float:
        count = self._counts[metric][head]
        return self._sums[metric][head] / count if count else nan


def role_of(
    metrics: Mapping[str, Estimate],
    rows: Mapping[str, int],
    resting: Mapping[str, Estimate] | None = None,
) -> Role | None:
    """The first role whose threshold is reached, over enough rows.

    `resting`: for a head with rests, its telling metrics are judged on the other weight, and the
    head is a sink, whichever key it rests on.
    """
    off_rests = {name: each.mean for name, each in (resting or {}).items()}
    rests = off_rests.get("rests", 0.0)
    values = {name: off_rests.get(name, each.mean) for name, each in metrics.items()}
    values["first"] = max(values["first"], rests) if rests >= SINK else values["first"]
    reached = (role for role in _roles() if values[role.metric] >= role.least)
    return next((role for role in reached if rows[role.metric] >= role.rows), None)


def untold_roles(rows: Mapping[str, int]) -> tuple[tuple[Role, int], ...]:
    """The roles that too few rows could show, each with their number."""
    return tuple((r, rows[r.metric]) for r in _roles() if 0 < rows[r.metric] < r.rows)


def estimates(samples: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Compute the mean of each metric over samples, with its standard error if there are several.

    Samples that could not show it are left out.
    """
    return {
        name: Estimate.of([each[name] for each in samples if not isnan(each.get(name, nan))])
        for name in dict.fromkeys(name for each in samples for name in each)
    }


# The sums of attention over windows of text, which `models/` computes.


EDGES = tuple(1 << i for i in range(15))
"""The first values of bins of distances and positions; the first bin begins at 0."""
BINS = len(EDGES) + 1
STRONG = 0.01
"""The least weight that HeadVis counts in its induction score."""
OTHER_SUMS = ("squares", "mass", "strong_induction")
"""The sums over the rows beside the metrics: `squares` of the distance, `mass` of all weights.

`strong_induction` is that of HeadVis: only the `STRONG` weights, and the token that followed may
be the query, if a token occurs twice in a row.
"""


@dataclass(frozen=True, eq=False)
class WindowSums:
    """The sums of B windows of n tokens, for H heads.

    `sums` (B, H, len(SUMS)); `distances`, `positions` (B, H, bins): the mass by the distance and
    by the position of the key; `largest` (B, H): the largest weight without first row and column;
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
