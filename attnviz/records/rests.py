"""The rests of a head's attention: keys that take weight and contribute little.

A *rest* of a head is a key

- whose share of the weighted contribution, weight × ‖v·W_O‖ (Kobayashi et al. 2020, "Attention is
  Not Only a Weight", arXiv 2004.10102), is less than half of its share of the weight, where that is
  a tenth and more; or
- whose column is alike for every query: more than half of the queries, of at least five, give it
  more than .3, as in definitions of sinks (Xiao et al. 2023, arXiv 2309.17453; Gu et al. 2024,
  "When Attention Sink Emerges in Language Models", arXiv 2410.10781).

Both are means over the queries that may attend to the key, except itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import RESTS, VALUE_NORMS, Capture, FloatArray, IntArray, PatternBlock
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head, NamedHead

TAKES = 0.1
"""The least mean weight of a key that takes weight."""
GIVES, NAMED_GIVES = 0.5, 0.9
"""The part of its weight below which a key gives little; that of a column alike in named heads."""
ALIKE, ASKED = 0.3, 5
"""The weight that most queries give to a key that is alike for all, and the fewest queries."""
TINY = np.finfo(np.float32).tiny


@dataclass
class FindRests:
    """Consumes the rows of a run, and finds the rests of each head.

    `shape`: (n_queries, n_keys). `lengths` (layers, heads, n_keys): ‖v·W_O‖ of each key; None if
    no values can be read, so that only columns are judged. `itself`: query and key of one position
    are the same token. `queries`: those whose rows will arrive; None for all. `named`: what heads
    are known for, so that a key from which they take it is not a rest.
    """

    shape: tuple[int, int]
    lengths: FloatArray | None
    causal: bool
    itself: bool
    queries: tuple[int, ...] | None = None
    named: Sequence[NamedHead] = ()
    _sums: dict[Head, NDArray[np.float64]] = field(default_factory=dict)
    """Sums of each head (3, n_keys): weights, shares of contribution, queries above ALIKE."""

    def __post_init__(self) -> None:
        self._seen = np.zeros(self.shape[0], np.bool_)  # the queries whose rows arrived
        self._before = self.shape[1] - self.shape[0] if self.causal else 0  # keys before them

    def __call__(self, block: PatternBlock) -> None:
        if self._before > 0:  # the rows of an answer, which arrive all at once
            self._seen[:] = True
        else:
            self._seen[block.queries] = True
        weights, n = block.weights, block.weights.shape[2]
        lengths = lengths_of(self.lengths, block.layer, block.heads, n)  # (heads, n)
        rows = (weights @ lengths[:, :, None])[:, :, 0]  # the whole of each row
        parts = 1 / np.maximum(rows, TINY)
        above = weights > ALIKE
        sums = np.stack(
            [
                weights.sum(axis=1),
                (parts[:, None] @ weights)[:, 0] * lengths,
                np.count_nonzero(above, axis=1),
            ],
            axis=1,
        ).astype(np.float64)  # (heads, 3, n)
        if self.itself:
            own = np.flatnonzero(block.queries < n)
            at = block.queries[own]
            each = weights[:, own, at]  # (heads, rows)
            shares = each * lengths[:, at] * parts[:, own]
            sums[:, :, at] -= np.stack([each, shares, above[:, own, at]], axis=1)
        for number, one in zip(block.heads, sums, strict=True):
            head = Head(block.layer, number)
            if head not in self._sums:
                self._sums[head] = np.zeros((3, self.shape[1]))
            self._sums[head][:, :n] += one

    def means(self, head: Head) -> NDArray[np.float64]:
        """Each key's mean weight, share, and part of the queries above ALIKE, shape (3, n_keys)."""
        return self._sums[head] / np.maximum(self._asked, 1)

    def of(self, head: Head) -> NDArray[np.bool_]:
        """The rests of a head (n_keys)."""
        weight, share, above = self.means(head)
        takes = (weight >= TAKES) & (share < GIVES * weight)
        alike = (above > 0.5) & (self._asked >= ASKED)
        if self.named and self.lengths is not None:
            alike &= share < NAMED_GIVES * weight
        rests: NDArray[np.bool_] = takes | alike
        return rests

    def share(self, head: Head) -> float:
        """The share of all queries' weight on the head's rests, without weight on themselves."""
        return float(self._sums[head][0, self.of(head)].sum() / max(self._seen.sum(), 1))

    def array(self, heads_per_layer: Sequence[int]) -> FloatArray:
        """The rests that were found, as `RESTS` holds them."""
        shape = len(heads_per_layer), max(heads_per_layer), self.shape[1]
        found = np.full(shape, np.nan, np.float32)
        for head in self._sums:
            found[head] = self.of(head)
        return found

    def learn(self, layer: int, lengths: FloatArray) -> None:
        """Store ‖v·W_O‖ of a layer (h, n_keys) in `lengths`, before its rows arrive."""
        assert self.lengths is not None
        self.lengths[layer, : len(lengths)] = lengths

    @property
    def _asked(self) -> IntArray:
        """The number of other queries, with rows, that may attend to each key, shape (n_keys)."""
        from_here = np.cumsum(self._seen[::-1])[::-1]
        places = np.arange(self.shape[1]) - self._before
        asked = from_here[np.maximum(places, 0)] if self.causal else self._seen.sum()
        own = np.isin(places, np.flatnonzero(self._seen)) & self.itself
        return np.asarray(asked - own, np.int64)


def lengths_of(lengths: FloatArray | None, layer: int, heads: Sequence[int], n: int) -> FloatArray:
    """The lengths ‖v·W_O‖ of the first n keys (heads, n); 1 if no values can be read."""
    return (
        np.ones((len(heads), n), np.float32) if lengths is None else lengths[layer, list(heads), :n]
    )


def find_rests(capture: Capture, heads: Sequence[Head] | None = None) -> FindRests:
    """Find the rests of heads of a capture (None: all); only by columns if it has no lengths."""
    shape, itself = (len(capture.query_tokens), len(capture.key_tokens)), capture.one_sequence
    lengths = _of_these_keys(capture, VALUE_NORMS)
    find = FindRests(shape, lengths, capture.causal, itself, named=capture.named_heads)
    for head in capture.heads if heads is None else heads:
        find(rows_of(capture, head))
    return find


def with_rests(capture: Capture) -> Capture:
    """The capture with the rests of all its heads, which are computed if it lacks them."""
    held = _of_these_keys(capture, RESTS)
    if held is not None and not any(np.isnan(held[head][0]) for head in capture.heads):
        return capture
    found = find_rests(capture).array(capture.model.heads_per_layer)
    return replace(capture, extras={**capture.extras, RESTS: found})


def rows_of(capture: Capture, head: Head) -> PatternBlock:
    """All rows of a head of a capture, as a run passes them on; signed numbers by their size."""
    queries = np.arange(len(capture.query_tokens)) + capture.first_query
    return PatternBlock(head.layer, (head.head,), queries, np.abs(capture.weights(head)[None]))


def rests_in(capture: Capture, head: Head) -> NDArray[np.bool_]:
    """The rests of a head (n_keys): those that the capture holds, or else computed from it."""
    held = _of_these_keys(capture, RESTS)
    if held is not None and not np.isnan(held[head][0]):
        rests: NDArray[np.bool_] = held[head] > 0
        return rests
    if head in capture.heads:
        return find_rests(capture, (head,)).of(head)
    return np.zeros(len(capture.key_tokens), np.bool_)


def _of_these_keys(capture: Capture, name: str) -> FloatArray | None:
    """An extra of each key; None without one, or if keys were merged since."""
    extra = capture.extras.get(name)
    return extra if extra is not None and extra.shape[-1] == len(capture.key_tokens) else None


# The head that moves most to one query, of a model whose card names none. A key's share in what a
# row takes, less its mean share over all rows that may take it, is high where one query asks for it
# and others do not. For an answer, it is the weight on keys that are the token written.

NEAR = 2
"""Links over no more tokens than this are left out: most heads have them on any text."""
MOVES = 0.1
"""A share that is less above its mean moves little."""
LEFT = 0.2
"""A row that has less of its weight off rests moves nothing."""


@dataclass
class FindMovingHead:
    """Consumes the rows of a run, and finds the head with the link that moves most.

    `rests`: those of all heads. Links to rests, to the first token of a causal model, and of or to
    special tokens are left out.
    """

    empty: Capture
    rests: FindRests
    best: dict[Head, tuple[float, int]] = field(default_factory=dict)
    """Of each head the highest share, and the query that has it."""

    def __post_init__(self) -> None:
        keys = [not token.special for token in self.empty.key_tokens]
        if self.empty.causal:
            keys[0] = False
        self._keys = np.array(keys)
        self._queries = np.array([not token.special for token in self.empty.query_tokens])
        self._near = min(NEAR, max(0, int(self._keys.sum()) - 2))  # of a short text all is near

    def __call__(self, block: PatternBlock) -> None:
        n, first = block.weights.shape[2], self.empty.first_query
        far = np.abs(block.queries[:, None] - np.arange(n)) > self._near
        far |= not self.empty.one_sequence  # positions of two texts are not near each other
        far &= self._keys[:n] & self._queries[block.queries - first][:, None]
        lengths = lengths_of(self.rests.lengths, block.layer, block.heads, n)
        for number, weights, length in zip(block.heads, block.weights, lengths, strict=True):
            head = Head(block.layer, number)
            off = ~self.rests.of(head)[:n] & self._keys[:n]
            sizes, taken = weights.sum(axis=1), weights * length
            shares = taken / np.maximum(taken.sum(axis=1, keepdims=True), TINY)
            more = shares - self.rests.means(head)[1][:n]
            kept = weights @ off.astype(np.float32) >= LEFT * sizes
            more = np.where(far & off & kept[:, None], more, -1.0).max(axis=1, initial=-1.0)
            row = int(more.argmax())
            found = float(more[row]), int(block.queries[row])
            self.best[head] = max(self.best.get(head, (-1.0, 0)), found, key=lambda each: each[0])

    def choice(self) -> Choice:
        """The head with the highest share; nothing is claimed of it where that is little."""
        head = max(sorted(self.best), key=lambda head: self.best[head][0])  # the earliest of ties
        share, query = self.best[head]
        if share < MOVES:
            return Choice((head,), "even")
        start = self.empty.query_tokens[query - self.empty.first_query].start
        return Choice((head,), "moves", start=start)
