"""A capture to an exhibit: its transforms, applied in one order, and the part that is shown.

    weighted ─► merged ─► rolled out ─► keys dropped ─► reduced

Each is recorded in the capture, so that nobody takes its result for a raw pattern.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, FloatArray, IntArray, PatternBlock
from attnviz.records.exhibit import CellMap, Choice, Exhibit, Filters, HeadMap, LinkMap, Links
from attnviz.records.heads import Head, choose_heads, every_head
from attnviz.records.patterns import (
    Between,
    go_on,
    merged,
    reduce_maps,
    rollout,
    weighted,
    without_keys,
)
from attnviz.records.positions import find_positions, last_word, one_position
from attnviz.records.tokens import Token
from attnviz.records.transforms import (
    PLAIN,
    KeysDropped,
    NormBased,
    Reduced,
    RolledOut,
    Transform,
    Transforms,
)

EVERYTHING = Filters()


def _maps_of(capture: Capture) -> tuple[HeadMap, ...]:
    return tuple(
        HeadMap(layer.layer, head, weights=weights)
        for layer in capture.layers
        for head, weights in zip(layer.heads, layer.weights, strict=True)
    )


def whole_exhibit(capture: Capture, choice: Choice | None = None) -> Exhibit:
    """Every map of a capture, with every row and column."""
    queries, keys = range(len(capture.query_tokens)), range(len(capture.key_tokens))
    return Exhibit(capture, _maps_of(capture), tuple(queries), tuple(keys), choice=choice)


def exhibit_of(
    captured: Capture,
    choice: Choice,
    transforms: Transforms = PLAIN,
    filters: Filters = EVERYTHING,
    *,
    one_query: bool = False,
    between: Between = go_on,
) -> Exhibit:
    """Put the heads of a capture on show.

    Args:
        captured: whole patterns of the heads that are shown.
        choice: which heads these are, and why.
        transforms: applied in their order.
        filters: what is shown of the result.
        one_query: exactly one query is shown; the last word's where none is named.
        between: called between the layers, as each transform takes a while on a long text.
    """
    _check_signed(captured, transforms)
    captured = weighted(captured) if transforms.weighted else captured
    captured = merged(captured, transforms.merge, between) if transforms.merge else captured
    queries = queries_of(captured.query_tokens, filters, one_query=one_query)
    made = replace(_whole(captured, choice, filters), queries=queries)
    if transforms.rollout:
        rolled = _rolled_out(made, transforms.rollout_layers, between)
        made = _with(made, rolled, RolledOut())
    made = _without_keys(made, _dropped_keys(captured.key_tokens, transforms), between)
    if transforms.reduce is not None:
        over = transforms.over or "all"
        maps = reduce_maps(_head_maps(made), transforms.reduce, over)
        made = _with(made, maps, Reduced(transforms.reduce, over))
    return made


def _whole(captured: Capture, choice: Choice, filters: Filters) -> Exhibit:
    return Exhibit(
        capture=captured,
        maps=_maps_of(captured),
        queries=(),
        keys=keys_of(captured.key_tokens, filters),
        top=filters.top,
        least=-inf if captured.signed else filters.least,
        skip=distances_of(captured, filters),
        choice=choice,
    )


def _with(exhibit: Exhibit, maps: tuple[HeadMap, ...], transform: Transform) -> Exhibit:
    captured = exhibit.capture
    named = replace(captured, transforms=(*captured.transforms, transform))
    return replace(exhibit, capture=named, maps=maps)


def _head_maps(exhibit: Exhibit) -> tuple[HeadMap, ...]:
    return tuple(head_map for head_map in exhibit.maps if isinstance(head_map, HeadMap))


def _check_signed(captured: Capture, transforms: Transforms) -> None:
    """Scores are no shares of attention, and no transform of shares is applied to them."""
    if transforms.scores and not captured.signed:
        raise UsageError("a saved capture holds weights, not scores", "give the text again")
    if captured.signed and replace(transforms, scores=False).any:
        raise UsageError("scores are shown unchanged", "leave out every option that changes them")


def _without_keys(exhibit: Exhibit, dropped: tuple[int, ...], between: Between) -> Exhibit:
    """The exhibit without some keys; a query that attends to nothing else is not shown."""
    keys = tuple(key for key in exhibit.keys if key not in dropped)
    if not dropped or not exhibit.maps:
        return replace(exhibit, keys=keys, dropped=dropped)
    captured, seen = exhibit.capture, exhibit.capture.allowed_count()
    able = [q for q in exhibit.queries if seen[q] > sum(key < seen[q] for key in dropped)]
    without = without_keys(_head_maps(exhibit), dropped, able, between)
    transform = KeysDropped(
        tuple(captured.key_tokens[key].label for key in dropped),
        without.share,
        tuple(captured.query_tokens[query].label for query in without.empty),
    )
    return replace(
        _with(exhibit, without.maps, transform),
        queries=tuple(query for query in able if query not in without.empty),
        keys=keys,
        dropped=dropped,
    )


def _rolled_out(exhibit: Exhibit, layers: str | None, between: Between) -> tuple[HeadMap, ...]:
    captured = exhibit.capture
    if captured.transformed_by(NormBased):
        raise UsageError("rows that do not sum to 1 cannot be rolled out", "leave one of them out")
    if captured.kind in ("cross", "answer"):
        raise UsageError(
            "attention from one text to another cannot be rolled out",
            f"leave {option('rollout')} out",
        )
    if exhibit.maps and captured.heads != every_head(captured.model.heads_per_layer):
        raise UsageError(
            f"{option('rollout')} needs all heads of all layers",
            f"capture the text again with {option('heads', 'all')}",
        )
    through = list(rollout(_head_maps(exhibit), between))
    named = choose_heads([1] * len(through), layers, None) if layers else ()
    return tuple(through[head.layer] for head in named) or tuple(through[-1:])


def _dropped_keys(tokens: Sequence[Token], transforms: Transforms) -> tuple[int, ...]:
    others = find_positions(tokens, transforms.drop_keys, "drop_keys")
    if len(others) == len(tokens):
        raise UsageError(f"{option('drop_keys')} takes every key away", "leave at least one")
    return tuple(sorted({*([0] if transforms.drop_sink else []), *others}))


def queries_of(
    tokens: Sequence[Token], filters: Filters, *, one_query: bool = False
) -> tuple[int, ...]:
    """The positions of the queries that are shown.

    Raises:
        UsageError: one that is not in the text, or several where one is shown.
    """
    if not one_query:
        return _positions(tokens, filters.queries, "queries")
    if not filters.queries:
        return (last_word(tokens),)
    if len(filters.queries) > 1:
        raise UsageError("this view shows one query", f"give {option('queries')} once")
    return (one_position(tokens, filters.queries[0], "queries"),)


def keys_of(tokens: Sequence[Token], filters: Filters) -> tuple[int, ...]:
    """The positions of the keys that are shown; raises what `queries_of` raises."""
    return _positions(tokens, filters.keys, "keys")


def _positions(tokens: Sequence[Token], names: Sequence[str], parameter: str) -> tuple[int, ...]:
    return find_positions(tokens, names, parameter) if names else tuple(range(len(tokens)))


def distances_of(captured: Capture, filters: Filters) -> tuple[int, ...]:
    """The distances of links that are left out.

    Raises:
        UsageError: there is no distance between two texts.
    """
    if filters.skip and captured.kind == "cross":
        raise UsageError(
            "between two texts, no token is the token itself or the previous one",
            f"leave {option('no_self')} and {option('no_previous')} out",
        )
    return filters.skip


# Consumers of one run, which keep links or cells of a picture: memory never holds n x n matrices.


@dataclass(frozen=True, eq=False)
class _Rows:
    """The strongest links of a head: keys and weights (n, top), -1 where none; sums of rows (n)."""

    keys: IntArray
    weights: FloatArray
    totals: FloatArray


@dataclass
class KeepLinks:
    """The strongest `top` links of each row to the keys asked for, none weaker than `least`,
    and none over a distance (query minus key) that is to be skipped."""

    n_queries: int
    keys: Sequence[int]
    causal: bool
    top: int
    least: float
    skip: tuple[int, ...] = ()
    _kept: dict[Head, _Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._keys = np.array(self.keys, np.int64)

    def __call__(self, block: PatternBlock) -> None:
        apart = block.queries[:, None] - np.arange(block.weights.shape[2])
        hidden = np.isin(apart, self.skip) if self.skip else None
        keys, weights = _strongest(block.weights, self._keys, self.top, hidden)
        if self.causal:  # a first row sees fewer keys than `top`
            weights[keys > block.queries[:, None]] = -1
        for i, head in enumerate(block.heads):
            rows = self._kept.get(Head(block.layer, head))
            if rows is None:
                shape = self.n_queries, self.top
                rows = self._kept[Head(block.layer, head)] = _Rows(
                    keys=np.full(shape, -1),
                    weights=np.full(shape, -1, np.float32),
                    totals=np.zeros(self.n_queries, np.float32),
                )
            rows.keys[block.queries, : keys.shape[2]] = keys[i]
            rows.weights[block.queries, : keys.shape[2]] = weights[i]
            rows.totals[block.queries] = block.sums[i]

    def maps(self) -> tuple[LinkMap, ...]:
        made = []
        for head, rows in sorted(self._kept.items()):
            query, rank = np.nonzero((rows.weights >= 0) & (rows.weights >= self.least))
            links = Links(query, rows.keys[query, rank], rows.weights[query, rank])
            made.append(LinkMap(head.layer, head.head, links=links, totals=rows.totals))
        return tuple(made)


def _strongest(
    weights: FloatArray, asked: IntArray, top: int, hidden: NDArray[np.bool_] | None
) -> tuple[IntArray, FloatArray]:
    """The strongest weights of each row on these keys: keys and weights (heads, rows, ≤ top).

    `hidden` (rows, n) are links that count for -1.

    Of equal ones the earlier key comes first, and so none that the mask forbids, whose weight
    is 0, before one that it allows.
    """
    seen = asked[asked < weights.shape[2]]
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

    @property
    def _block(self) -> tuple[int, int]:
        """How many (queries, keys) a cell stands for."""
        down, across = (math.ceil(len(asked) / self.most) for asked in (self.queries, self.keys))
        return down, across

    @property
    def _shape(self) -> tuple[int, int]:
        down, across = self._block
        return math.ceil(len(self.queries) / down), math.ceil(len(self.keys) / across)

    def maps(self) -> tuple[CellMap, ...]:
        hidden = self._hidden()
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

    def _hidden(self) -> NDArray[np.bool_]:
        """True for cells of whose links the mask forbids every one."""
        if not self.causal:
            return np.zeros(self._shape, np.bool_)
        down, across = self._block
        last = np.minimum(np.arange(self._shape[0]) * down + down, len(self.queries)) - 1
        hidden: NDArray[np.bool_] = (
            np.array(self.keys)[::across] > np.array(self.queries)[last][:, None]
        )
        return hidden
