"""Rows of attention, reduced where they are computed: what crosses the edge is small.

A model runs B windows of n tokens at once, and gives each block of rows to a reduction. Letters
in the shape comments:

    B windows   b windows of a block   h wanted heads   r rows of a block   m its keys
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attnviz.models.engine import sent
from attnviz.models.linking import GiveLinks, StrongestLinks
from attnviz.models.loaded import HeadRows, LoadedModel, RowReduction, SomeHeadRows
from attnviz.models.products import fast_products
from attnviz.records.capture import Wanted
from attnviz.records.metrics import BINS, EDGES, METRICS, STRONG, SUMS, Bools, FastSum, WindowSums

MANY = 8
"""Every layer is searched for copies if one in this number of weights is on one."""
SMALL_SCORE = 32.0
"""Up to this size, float32 loses less than 1e-5 where a score is taken off a sum."""


Choose: TypeAlias = Callable[[int, slice, NDArray[np.float64], NDArray[np.float64]], Bools]
"""Choose heads of a layer to link in these windows (b, h), by `largest` and `apart` of both."""


def sum_windows(
    model: LoadedModel,
    windows: Sequence[Sequence[int]],
    heads: Mapping[int, tuple[int, ...]],
    choose: Choose | None = None,
    give: GiveLinks | None = None,
) -> WindowSums:
    """Run windows of tokens (B, n), and add up the rows of these heads.

    The strongest links of the heads that `choose` names are given, each when its layer is done.
    """
    ids = torch.tensor(windows)
    statistics = WindowStatistics(ids, model.causal)
    if choose is not None and give is not None:
        statistics = _LinkedStatistics(ids, model.causal, heads=heads, choose=choose, give=give)
    with fast_products(model):
        model.reduce(ids, Wanted(heads), statistics)
    return statistics.sums()


@dataclass
class WindowStatistics(RowReduction):
    """Adds up the rows of a batch of windows `ids` (B, n)."""

    ids: Tensor
    causal: bool
    _layers: dict[int, "_LayerSums"] = field(default_factory=dict)
    _known: "dict[tuple[int, int, int, int], _KnownRows]" = field(default_factory=dict)

    def take(self, rows: HeadRows) -> None:
        if rows.layer not in self._layers:
            self._layers[rows.layer] = _LayerSums.zeros(rows.weights, self.ids)
        self._layers[rows.layer].add(rows, self._known_of(rows), self.causal)

    def _known_of(self, rows: HeadRows) -> "_KnownRows":
        """The facts about some rows: the same in every layer, and kept if they are small."""
        (r, m), device = rows.weights.shape[2:], rows.weights.device
        place = (rows.windows.start, rows.first, r, m)
        if place in self._known:
            return self._known[place]
        known = _KnownRows.of(self.ids[rows.windows], rows.first, r, m, causal=self.causal)
        known = known.on(device)
        if known.places.size(1) * MANY < r * m:  # a text of one word has copies everywhere
            self._known[place] = known
        return known

    def sums(self) -> WindowSums:
        """The sums of all heads, layer after layer."""
        layers = [self._layers[layer].finished() for layer in sorted(self._layers)]
        arrays = (torch.cat(parts, dim=1).cpu().numpy() for parts in zip(*layers, strict=True))
        return WindowSums(*arrays)


@dataclass(kw_only=True)
class _LinkedStatistics(WindowStatistics):
    """Statistics of a window with the strongest links of some heads."""

    asks_again = True
    heads: Mapping[int, tuple[int, ...]]
    choose: Choose
    give: GiveLinks
    _links: "StrongestLinks | None" = None

    def again(self, layer: int, windows: slice) -> list[tuple[int, int]]:
        sums = self._layers[layer]
        both = torch.stack([sums.largest[windows], sums.apart[windows]])
        largest, apart = both.cpu().double().numpy()
        window, place = np.nonzero(self.choose(layer, windows, largest, apart))
        heads = np.array(self.heads[layer])[place]
        return list(zip((window + windows.start).tolist(), heads.tolist(), strict=True))

    def take_again(self, rows: SomeHeadRows) -> None:
        if self._links is None:
            self._links = StrongestLinks(self.ids.size(1), self.give)
        self._links(rows)


@dataclass(frozen=True)
class _LayerSums:
    """The sums of one layer, for each window and head (B, h).

    `by_distance` (B, h, n), the largest distance first; `by_position` (B, h, n); `marked`
    (B, h, 3): see `_KnownRows.mass`; `entropies` (B, h, 2): as they are, and normalised; `largest`,
    `apart` (B, h): see `WindowSums`.
    """

    by_distance: Tensor
    by_position: Tensor
    previous: Tensor
    marked: Tensor
    entropies: Tensor
    largest: Tensor
    apart: Tensor

    @classmethod
    def zeros(cls, weights: Tensor, ids: Tensor) -> "_LayerSums":
        (windows, n), heads = ids.shape, weights.size(1)
        # Apple's processors have no float64
        dtype = torch.float32 if weights.device.type == "mps" else torch.float64
        blank = torch.zeros(windows, heads, n, dtype=dtype, device=weights.device)
        shapes = ((n,), (n,), (), (3,), (2,), (), ())
        return cls(*(blank.new_zeros(windows, heads, *shape) for shape in shapes))

    def add(self, rows: HeadRows, known: "_KnownRows", causal: bool) -> None:
        """Add a block of rows; nothing waits for a graphics processor."""
        own, weights, first = rows.windows, rows.weights.float().contiguous(), rows.first
        r, m = weights.shape[2:]
        n = self.by_distance.size(2)
        self.by_distance[own, :, n - m :] += (_by_distance if causal else _both_ways)(
            weights, first
        )
        ones = weights.new_ones(weights.size(1), 1, r)  # faster than to sum over rows
        # each window by itself: in one product its last bits would depend on how many there are
        self.by_position[own, :, :m] += torch.stack([ones @ window for window in weights])[:, :, 0]
        self.previous[own] += weights.diagonal(first - 1, dim1=2, dim2=3).sum(dim=-1)
        self.marked[own] += known.mass(weights)
        apart, itself = _largest_of_rows(weights, first)  # (b, h, r)
        most = torch.maximum(torch.maximum(apart, itself), weights[..., 0])
        entropies = _entropies(weights, most, rows.scores)  # (b, h, r)
        self.entropies[own] += entropies @ known.units
        after_first = slice(1 if first == 0 else 0, None)
        _raise(self.apart[own], apart[..., after_first])
        _raise(self.largest[own], torch.maximum(apart, itself)[..., after_first])

    def finished(self) -> tuple[Tensor, ...]:
        """The arrays of `WindowSums`, in order, of this layer's heads."""
        layer = replace(self, by_distance=self.by_distance.flip(-1))
        edges = sent(torch.tensor(EDGES), layer.away.device)
        bins = torch.bucketize(layer.away.long(), edges, right=True)
        in_bin = torch.nn.functional.one_hot(bins, BINS).to(layer.away)
        sums = torch.stack([FAST_SUMS[name].of(layer) for name in SUMS], dim=-1)  # (B, h, K)
        by_distance, by_position = layer.by_distance @ in_bin, layer.by_position @ in_bin
        return sums, by_distance, by_position, self.largest, self.apart

    @property
    def away(self) -> Tensor:
        """Every distance (n), from 0."""
        n, like = self.by_distance.size(-1), self.by_distance
        return torch.arange(n, dtype=like.dtype, device=like.device)


FAST_SUMS: Mapping[str, FastSum] = {
    "entropy": FastSum(lambda layer: layer.entropies[..., 0]),
    "normalised": FastSum(
        lambda layer: layer.entropies[..., 1],
        lambda before, causal: len(before) - 1 if causal or len(before) == 1 else len(before),
    ),
    "distance": FastSum(lambda layer: layer.by_distance @ layer.away),
    "squares": FastSum(lambda layer: layer.by_distance @ layer.away.square()),
    "previous": FastSum(lambda layer: layer.previous, lambda before, _: len(before) - 1),
    "first": FastSum(lambda layer: layer.by_position[..., 0]),
    "self": FastSum(lambda layer: layer.by_distance[..., 0]),
    "duplicate": FastSum(
        lambda layer: layer.marked[..., 0], lambda before, _: int((before > 0).sum())
    ),
    "induction": FastSum(  # what followed an earlier occurrence comes before the query
        lambda layer: layer.marked[..., 2], lambda before, _: int((before > 1).sum())
    ),
    "strong_induction": FastSum(
        lambda layer: layer.marked[..., 1], lambda before, _: int((before > 0).sum())
    ),
    "mass": FastSum(lambda layer: layer.by_position.sum(dim=-1)),
    **{metric.name: fast for metric, fast in METRICS.added.values()},
}
"""Held to METRICS by a test, on random rows."""


def _largest_of_rows(weights: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """The largest weight of each row on a key that is neither the first nor the query; its own."""
    diagonal = weights.diagonal(first, dim1=2, dim2=3)
    itself = diagonal.clone()
    diagonal.zero_()  # for a moment: a copy of all weights would take longer
    others = weights[..., 1:]
    apart = others.amax(dim=-1) if others.size(-1) else torch.zeros_like(itself)
    diagonal.copy_(itself)
    return apart, itself


def _raise(largest: Tensor, weights: Tensor) -> None:
    """Raise the largest weights so far (b, h) to those of some rows (b, h, …)."""
    if weights.numel():
        torch.maximum(largest, weights.flatten(2).amax(dim=2).to(largest.dtype), out=largest)


def _by_distance(weights: Tensor, first: int) -> Tensor:
    """The mass by distance (b, h, m), the largest first, of keys that are not later.

    Row i of a view whose rows are one step longer begins i keys later, so that keys of one distance
    are below each other; what a row reads before its first key are the last keys of the row
    above, which that one does not attend to.
    """
    b, h, r, m = weights.shape
    sums = weights.new_zeros(b, h, m)
    if r > 1:
        steps = (h * r * m, r * m, m + 1, 1)
        start = weights.storage_offset() + first + 2
        sums += weights.as_strided((b, h, r - 1, m), steps, start).sum(dim=2)
    sums[:, :, m - 1 - first :] += weights[:, :, 0, : first + 1]
    return sums


def _both_ways(weights: Tensor, first: int) -> Tensor:
    """The `_by_distance` of models whose queries attend to later keys, too (m is n)."""
    r, m = weights.shape[2:]
    later = weights.triu(first + 1).flip(2, 3)  # both turned round, later keys are earlier ones
    return _by_distance(weights.tril(first), first) + _by_distance(later, m - first - r)


@dataclass(frozen=True)
class _KnownRows:
    """The facts about some rows of windows (b, r * m) before their weights are computed.

    `places` (b, p): where a row has an earlier copy of its query's token, filled up with 0 where
    `exists` (b, p) is 0; `apart` (b, p): 0 where what followed the copy is the query itself, too.
    `units` (r, 2): the factors on their entropies, 1 and 1 / ln of the keys that they see.
    """

    places: Tensor
    exists: Tensor
    apart: Tensor
    units: Tensor

    @classmethod
    def of(cls, ids: Tensor, first: int, r: int, m: int, *, causal: bool) -> "_KnownRows":
        """Find the facts about the rows from `first` on of windows `ids` (b, n), on m keys."""
        copies = ids[:, first : first + r, None] == ids[:, None, :m]
        window, query, key = copies.tril_(first - 1).nonzero(as_tuple=True)
        counts = torch.bincount(window, minlength=len(ids))
        slot = torch.arange(len(window)) - (counts.cumsum(0) - counts)[window]
        places = ids.new_zeros(len(ids), int(counts.max()))
        exists, apart = torch.zeros(places.shape), torch.zeros(places.shape)
        places[window, slot] = query * m + key
        exists[window, slot] = 1.0
        apart[window, slot] = (query + first > key + 1).float()
        return cls(places, exists, apart, _entropy_units(first, r, ids.size(1), causal))

    def on(self, device: torch.device) -> "_KnownRows":
        """The facts, moved to another device."""
        return _KnownRows(*(sent(each, device) for each in vars(self).values()))

    def mass(self, weights: Tensor) -> Tensor:
        """The mass of rows (b, h, r, m) on the copies, and on what followed them (b, h, 3).

        Between the two comes that of `STRONG` weights alone on what followed, the query counted,
        too.
        """
        b, h = weights.shape[:2]
        if not self.places.size(1):
            return weights.new_zeros(b, h, 3)
        flat, places = weights.flatten(2), self.places[:, None].expand(-1, h, -1)
        copies = (flat.gather(2, places) * self.exists[:, None]).sum(dim=-1)
        # one further on: never in the row below, as the last key of a row is not an earlier one
        followers = flat.gather(2, places + self.exists[:, None].long()) * self.exists[:, None]
        strong = torch.where(followers >= STRONG, followers, 0.0).sum(dim=-1)
        return torch.stack([copies, strong, (followers * self.apart[:, None]).sum(dim=-1)], dim=-1)


def _entropies(weights: Tensor, most: Tensor, scores: Tensor | None) -> Tensor:
    """-Σ A ln A of each row in nats (b, h, r), with 0·ln 0 = 0; `most`: its largest weight.

    From scores it takes one logarithm a row: ln A is the score, less the largest of the row, plus
    the logarithm of the largest weight. That score is taken off the sum where float32 allows it,
    as to take it off each score is one more pass over all of them.
    """
    if scores is None:
        smallest = torch.finfo(torch.float32).tiny
        return -weights.clamp_min(smallest).log_().mul_(weights).sum(dim=-1)
    best = off = scores.amax(dim=-1)  # (b, h, r)
    if scores.device.type == "cpu":  # elsewhere one more pass is faster than to wait for a number
        off = best * (best.abs().amax(dim=(1, 2), keepdim=True) > SMALL_SCORE)  # of each window
    if off is best or off.any():
        scores -= off[..., None]
        best = best - off
    return (best - most.log()) * weights.sum(dim=-1) - scores.mul_(weights).sum(dim=-1)


def _entropy_units(first: int, r: int, n: int, causal: bool) -> Tensor:
    """The `units` of rows."""
    seen = torch.arange(first + 1, first + r + 1) if causal else torch.full((r,), n)
    shares = torch.where(seen > 1, 1 / seen.clamp_min(2).log(), 0.0)
    return torch.stack([torch.ones(r), shares], dim=-1)


def use_threads(threads: int) -> None:
    """Set the threads of every run of this process, on which the last bits depend."""
    torch.set_num_threads(threads)


@contextmanager
def same_threads_after() -> Iterator[None]:
    """Give this process back the number of threads that it has now."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def use_device(worker: int) -> None:
    """Give each worker one of the graphics processors, in turn, where there are any."""
    if devices():
        torch.cuda.set_device(worker % devices())


def device_name(model: LoadedModel) -> str:
    """The device that a loaded model is on: `cpu`, or a graphics processor by its name."""
    held = getattr(model, "model", None)  # a torch module, but for embeddings
    first = next(held.parameters(), None) if isinstance(held, nn.Module) else None
    if first is None or first.device.type != "cuda":
        return "cpu" if first is None else first.device.type
    return torch.cuda.get_device_name(first.device)


def devices() -> int:
    """The number of graphics processors."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
