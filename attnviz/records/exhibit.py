"""The exhibit, which renderers and writers take: the part of a capture to show."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import GATES, Capture, FloatArray, IntArray, PatternBlock
from attnviz.records.heads import Finding, FoundLink, Head, NamedHead
from attnviz.records.transforms import value_name

if TYPE_CHECKING:
    from attnviz.records.images import ImageShare

LITTLE_LEFT = 0.2
"""A row of which dropped keys leave less than this is shown unscaled."""
ROWS = 512  # sorted at a time, as sorting takes many times what it keeps
Reduction: TypeAlias = Literal["mean", "max", "rollout", "sum"]
Orient: TypeAlias = Literal["query-rows", "key-rows"]
ColorScale: TypeAlias = Literal["linear", "log", "row"]


@dataclass(frozen=True)
class HeadPlace:
    """The head that a map is of; None for an axis that was `reduced`.

    `dropped`: keys that it does not show. `left` (n_queries): the share of each row's weight
    that was not on them, or None if no key was dropped.
    """

    layer: int | None
    head: int | None
    reduced: Reduction | None = None
    dropped: tuple[int, ...] = field(default=(), kw_only=True)
    left: FloatArray | None = field(default=None, kw_only=True)

    @property
    def label(self) -> str:
        """`L1H2`; reduced: `L1 mean`, `H2 max`, `mean`, `L3 rollout`."""
        layer = "" if self.layer is None else f"L{self.layer}"
        head = "" if self.head is None else f"H{self.head}"
        return " ".join(part for part in (layer + head, self.reduced or "") if part)

    @property
    def place(self) -> tuple[int | str, int | str]:
        """The values of the columns `layer` and `head`; the reduction's name for all of them."""
        reduced = self.reduced or "all"
        return (
            reduced if self.layer is None else self.layer,
            reduced if self.head is None else self.head,
        )

    def before(self, links: "Links") -> FloatArray:
        """The weights of links as they were before rows without dropped keys were rescaled."""
        return links.weight if self.left is None else links.weight * self.scale[links.query]

    @property
    def scale(self) -> FloatArray:
        """The divisor of each row after keys were dropped (n_queries); 1 if little was left."""
        left = np.ones(0) if self.left is None else self.left
        return np.where(left < LITTLE_LEFT, 1, left).astype(np.float32)


@dataclass(frozen=True, eq=False)
class HeadMap(HeadPlace):
    """A whole matrix to be shown: `weights` (n_queries, n_keys)."""

    weights: FloatArray = field(kw_only=True)

    @property
    def unscaled(self) -> FloatArray:
        """The weights before rows without dropped keys were rescaled."""
        return self.weights if self.left is None else self.weights * self.scale[:, None]

    @property
    def shares(self) -> FloatArray:
        """The weights; in rows without dropped keys as shares of the rest."""
        if self.left is None:
            return self.weights.copy()
        sums = self.weights.sum(axis=1, keepdims=True)
        none = np.zeros_like(self.weights)
        shares: FloatArray = np.divide(self.weights, sums, out=none, where=sums > 0)
        return shares


@dataclass(frozen=True, eq=False)
class Links:
    """Parallel arrays, one entry per link; by query, then strongest first, then by key."""

    query: IntArray
    key: IntArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)

    def rows(self) -> Iterator[FoundLink]:
        return map(FoundLink, self.query.tolist(), self.key.tolist(), self.weight.tolist())


@dataclass(frozen=True, eq=False)
class LinkMap(HeadPlace):
    """The links that the filters leave, and the `totals` (n_queries) of whole rows."""

    links: Links = field(kw_only=True)
    totals: FloatArray = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class CellMap(HeadPlace):
    """The strongest weight of each block of a matrix that is too large to keep.

    `cells` (rows, columns) over the queries and keys that were asked for; NaN where the mask
    forbids the whole block. `shape`: the numbers of queries and keys before the reduction;
    `sums`: whether each row sums to 1.
    """

    cells: FloatArray = field(kw_only=True)
    shape: tuple[int, int] = field(kw_only=True)
    sums: bool = field(kw_only=True)


Map: TypeAlias = HeadMap | LinkMap | CellMap


ChoiceReason: TypeAlias = Literal[
    "asked",
    "only",
    "held",
    "acts",
    "card",
    "brings",
    "moves",
    "writes",
    "sees",
    "aligned",
    "retrieval",
    "all",
    "even",
]
"""Named by the user; the model's only one; the capture's only one; a named head that acts on this
text; the only one that the card names; the one that brings most of what comes next, that moves most
to one query, that attends to what an answer writes, that looks at single places of an inset, or
whose places move with the words; those that retrieve; every head, as none is known; the highest of
heads that all move little."""


@dataclass(frozen=True)
class Choice:
    """The heads that are shown, and why.

    `named`: the model card's entries for the head that was picked; `line`: the number of the input
    line on which it was picked, if it was kept for the lines after it; `start`: the place in the
    text of the query for which it was picked. `idle`: what a head that a user chose is known for
    and does not do on this text.
    """

    heads: tuple[Head, ...]
    why: ChoiceReason = "asked"
    named: NamedHead | None = None
    line: int | None = None
    start: int | None = None
    idle: tuple[NamedHead, ...] = ()

    @property
    def picked(self) -> bool:
        """Whether a rule picked the head, among others."""
        return self.why not in ("asked", "only")

    @property
    def off_rests(self) -> bool:
        """Whether the rule left out the keys on which the head rests."""
        return self.why in ("brings", "moves")


@dataclass(frozen=True)
class Filters:
    """The shown part of a pattern: rows and columns (`queries`, `keys`; none: all), as named.

    `top` is how many keys are kept for each query, `least` the smallest weight, `skip` the
    distances (query minus key) of links that are left out.

    Raises:
        UsageError: `top` is under 1.
    """

    queries: Sequence[str] = ()
    keys: Sequence[str] = ()
    top: int | None = None
    least: float = 0.0
    skip: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise UsageError(f"{option('top', self.top)} shows no key", "give 1 or more")


@dataclass(frozen=True)
class PictureLook:
    """The look of a picture; None is the default, a `title` of `""` no title."""

    cmap: str | None = None
    color_scale: ColorScale | None = None
    dpi: int | None = None
    title: str | None = None


@dataclass(frozen=True)
class Look(PictureLook):
    """The look of an exhibit, in the terminal or as a picture."""

    view: str | None = None
    orient: Orient | None = None


@dataclass(frozen=True)
class Sides:
    """Names of the rows and the columns of a pattern, singular and plural."""

    row: str = "query"
    rows: str = "queries"
    column: str = "key"
    columns: str = "keys"


@dataclass(frozen=True, eq=False)
class Exhibit:
    """The input of renderers and writers: a capture, maps made from it, and the filters to obey.

    `queries` and `keys` are the token positions asked for, in order; `top` is how many
    keys are kept per query (None: all), `least` the smallest weight that is shown; `skip`
    are distances (query minus key) of links that are left out: 0 to itself, 1 to the token
    before. `dropped` are keys whose weight was removed from every map. `choice` says which heads
    these are and why, `finding` what a head picked by a rule does here; `caption` names an exhibit
    among others. `subtitle` says what was run, if that does not follow from the capture's own
    tokens; `sides` names the rows and the columns. `origin` is the capture before its transforms,
    kept for a page, which names heads by it. `unasked`: parts of characters were merged by
    default. `on_images`: the share of the shown rows on images, or None without images or weights.
    `beside`: the images are read in layers of cross-attention, so that they are not keys.
    """

    capture: Capture
    maps: tuple[Map, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    top: int | None = None
    least: float = 0.0
    skip: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    choice: Choice | None = None
    caption: str = ""
    subtitle: str = ""
    sides: Sides = Sides()  # frozen
    finding: Finding | None = None
    origin: Capture | None = None
    unasked: bool = False
    on_images: "ImageShare | None" = None
    beside: bool = False

    @property
    def weakest_left_out(self) -> bool:
        """Whether the user set the least weight of a link to show."""
        return self.top is not None or self.least > 0

    @property
    def filtered(self) -> bool:
        """Whether links are left out that the mask allows."""
        return self.weakest_left_out or bool(self.skip)

    @property
    def value_name(self) -> str:
        """The name of the column of values."""
        return value_name(self.capture.transforms)

    @property
    def gates(self) -> "FloatArray | None":
        """The share that gates let through (2, maps, queries shown): their mean, and of the length.

        None if a map has no gate, or is of several heads.
        """
        held = self.capture.extras.get(GATES)
        places = [each.place for each in self.maps]
        if held is None or not places or any(isinstance(n, str) for each in places for n in each):
            return None
        layers, heads = zip(*places, strict=True)
        shown: FloatArray = held[:, list(layers), list(heads)][..., list(self.queries)]
        return None if np.isnan(shown[0]).any() else shown

    @property
    def by_row(self) -> bool:
        """Whether each row has its own colour scale, as all are nearly flat."""
        return self.capture.model.architecture == "embeddings"


def links_of(exhibit: Exhibit, head_map: Map) -> Links:
    """The links of a map that the mask and the exhibit's filters leave.

    Filters apply in this order: queries, keys, distances, least weight, then the strongest
    `top` of what is left in each row (ties: the earlier key).
    """
    if isinstance(head_map, LinkMap):
        return head_map.links
    parts = [
        _links_of_rows(exhibit, whole_map(head_map), exhibit.queries[first : first + ROWS])
        for first in range(0, max(1, len(exhibit.queries)), ROWS)  # no row at all is one block
    ]
    return Links(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _links_of_rows(
    exhibit: Exhibit, whole: HeadMap, rows: Sequence[int]
) -> tuple[IntArray, IntArray, FloatArray]:
    queries, keys = np.array(rows, int), np.array(exhibit.keys, int)
    weights = whole.weights[np.ix_(queries, keys)]  # (rows, keys asked for)
    allowed = keys < exhibit.capture.allowed_count()[queries][:, None]
    allowed &= ~np.isin(queries[:, None] + exhibit.capture.first_query - keys, exhibit.skip)
    allowed &= ~np.isin(keys, whole.dropped)
    order = np.argsort(np.where(allowed, -weights, np.inf), axis=1, kind="stable")
    row = np.arange(len(queries))[:, None]
    kept = (allowed & (weights >= exhibit.least))[row, order]
    if exhibit.top is not None:
        kept &= np.cumsum(kept, axis=1) <= exhibit.top
    at_row, at_rank = np.nonzero(kept)
    at_key = order[at_row, at_rank]
    return queries[at_row], keys[at_key], weights[at_row, at_key]


def row_totals(exhibit: Exhibit, head_map: Map) -> list[float]:
    """The sums of the rows asked for, over all keys that a query may attend to, in order."""
    if isinstance(head_map, LinkMap):
        return [float(head_map.totals[query]) for query in exhibit.queries]
    weights, seen = whole_map(head_map).weights, exhibit.capture.allowed_count()
    return [float(weights[query, : seen[query]].sum()) for query in exhibit.queries]


def whole_map(head_map: Map) -> HeadMap:
    """The whole matrix of a map; a TypeError if only a reduced form was kept."""
    if not isinstance(head_map, HeadMap):
        raise TypeError(f"only a reduced form of {head_map.label} was kept")
    return head_map


# Consumers of a run that keep links or cells of a picture, so that no n × n matrix is in memory.


@dataclass
class KeepLinks:
    """The strongest `top` links of each row to the keys asked for, none weaker than `least`,
    and none at a distance (query minus key) to skip."""

    n_queries: int
    keys: Sequence[int]
    causal: bool
    top: int
    least: float
    skip: tuple[int, ...] = ()
    _kept: dict[Head, tuple[IntArray, FloatArray, FloatArray]] = field(default_factory=dict)
    """Keys and weights (n_queries, top), -1 where none; sums of rows (n_queries)."""

    def __post_init__(self) -> None:
        self._keys = np.array(self.keys, np.int64)

    def __call__(self, block: PatternBlock) -> None:
        apart = block.queries[:, None] - np.arange(block.weights.shape[2])
        hidden = np.isin(apart, self.skip) if self.skip else None
        keys, weights = _strongest(block.weights, self._keys, self.top, hidden)
        if self.causal:  # a first row has fewer keys than `top`
            weights[keys > block.queries[:, None]] = -1
        for i, head in enumerate(Head(block.layer, head) for head in block.heads):
            if head not in self._kept:
                none = np.full((self.n_queries, self.top), -1)
                zeros = np.zeros(self.n_queries, np.float32)
                self._kept[head] = none, none.astype(np.float32), zeros
            kept_keys, kept_weights, totals = self._kept[head]
            kept_keys[block.queries, : keys.shape[2]] = keys[i]
            kept_weights[block.queries, : keys.shape[2]] = weights[i]
            totals[block.queries] = block.sums[i]

    def maps(self) -> tuple[LinkMap, ...]:
        maps = []
        for head in sorted(self._kept):
            keys, weights, totals = self._kept[head]
            query, rank = np.nonzero((weights >= 0) & (weights >= self.least))
            links = Links(query, keys[query, rank], weights[query, rank])
            maps.append(LinkMap(head.layer, head.head, links=links, totals=totals))
        return tuple(maps)


def _strongest(
    weights: FloatArray, wanted: IntArray, top: int, hidden: NDArray[np.bool_] | None
) -> tuple[IntArray, FloatArray]:
    """The strongest weights of each row on these keys: keys and weights (heads, rows, ≤ top).

    Links that are `hidden` (rows, n) count for -1. The earlier key comes first of equal ones, so
    that a link that the mask allows precedes those that it forbids, whose weight is 0.
    """
    seen = wanted[wanted < weights.shape[2]]
    left = weights.copy() if hidden is None else np.where(hidden, np.float32(-1), weights)
    left = left if len(seen) == weights.shape[2] else left[:, :, seen]
    shape = *left.shape[:2], min(top, len(seen))
    flat = left.reshape(shape[0] * shape[1], left.shape[2])
    keys, values = (np.empty((len(flat), shape[2]), kind) for kind in (np.int64, np.float32))
    row = np.arange(len(flat))
    for rank in range(shape[2]):  # argmax is so fast that a few of them beat any sorting
        strongest = flat.argmax(axis=1)
        keys[:, rank], values[:, rank] = seen[strongest], flat[row, strongest]
        flat[row, strongest] = -1
    return keys.reshape(shape), values.reshape(shape)


@dataclass
class KeepCells:
    """Blocks of at most `most` a side over the queries and keys asked for, as `CellMap`s."""

    queries: Sequence[int]
    keys: Sequence[int]
    causal: bool
    most: int
    _kept: dict[Head, FloatArray] = field(default_factory=dict)
    _sums: dict[Head, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sides = len(self.queries), len(self.keys)
        self._block = down, across = [math.ceil(n / self.most) for n in sides]
        self._shape = math.ceil(sides[0] / down), math.ceil(sides[1] / across)

    def __call__(self, block: PatternBlock) -> None:
        down, across = self._block
        columns = bisect_left(self.keys, block.weights.shape[2])  # of the keys asked for
        everything = columns == block.weights.shape[2]
        shown = block.weights if everything else block.weights[:, :, self.keys[:columns]]
        sums = block.sums if everything else shown.sum(axis=2)  # (heads, rows)
        off: FloatArray = np.abs(sums - 1).max(axis=1)  # (heads)
        rows = np.searchsorted(self.queries, block.queries) // down  # (rows), rising
        touched, starts = np.unique(rows, return_index=True)
        bounds = zip(starts, (*starts[1:], len(rows)), strict=True)
        # several times faster than numpy's reduceat
        reduced = np.stack([shown[:, a:b].max(axis=1) for a, b in bounds], axis=1)
        padded = np.pad(reduced, ((0, 0), (0, 0), (0, -columns % across)))
        reduced = np.maximum.reduce([padded[:, :, i::across] for i in range(across)])
        for i, head in enumerate(Head(block.layer, head) for head in block.heads):
            cells = self._kept.setdefault(head, np.zeros(self._shape, np.float32))
            place = touched[:, None], np.arange(reduced.shape[2])
            cells[place] = np.maximum(cells[place], reduced[i])
            self._sums[head] = self._sums.get(head, True) and bool(off[i] < 0.005)

    def maps(self) -> tuple[CellMap, ...]:
        hidden: NDArray[np.bool_] = np.zeros(self._shape, np.bool_)
        if self.causal:  # cells all of whose links the mask forbids
            down, across = self._block
            last = np.minimum(np.arange(down, down * self._shape[0] + 1, down), len(self.queries))
            latest = np.array(self.queries)[last - 1]
            hidden = np.array(self.keys)[::across] > latest[:, None]
        return tuple(
            CellMap(
                head.layer,
                head.head,
                cells=np.where(hidden, np.float32(np.nan), cells),
                shape=(len(self.queries), len(self.keys)),
                sums=self._sums[head],
            )
            for head, cells in sorted(self._kept.items())
        )
