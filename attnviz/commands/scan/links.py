"""The strongest links of the windows that a scan shows: kept while it counts, or run again.

A small corpus has few windows, and most are an example of some head: a worker keeps the links of
those that may still be chosen, of all that it has counted so far. In a large corpus the chosen ones
are few, and run again in the end.

FOLDER/links/…            the links that were kept of a shard, until the result is written
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attnviz.commands.scan.counting import batch_tokens, record_of_windows, run_batches
from attnviz.corpus.documents import Window
from attnviz.corpus.folder import LINKS
from attnviz.corpus.places import CorpusText, Shard
from attnviz.corpus.record import (
    DRAWN,
    PER_BIN,
    SAMPLE,
    TOP,
    FloatArray64,
    archive,
    by_size,
    drawn_bin,
    empty_record,
    merged_windows,
    opened_archive,
)
from attnviz.records.capture import IntArray
from attnviz.records.heads import Head
from attnviz.records.metrics import Bools, HeadLinks

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

KEPT_SHARDS, SAMPLED_SHARDS = 1024, 16
"""A corpus with more shards runs its examples again; with more than SAMPLED_SHARDS, the sampled
windows, too."""
MOST_BYTES = 1 << 29
"""Bytes of the links of a worker, at most; about three times as many while they are written."""
LINK_BYTES = 8 * 8
"""Bytes of the links of one row, at most."""
TOKEN_BYTES = 2
"""Bytes of text of a token, at least; a rare text has more tokens."""


@dataclass(frozen=True)
class Keeping:
    """Whether a scan keeps the links of examples, and of the windows whose tokens are counted."""

    examples: bool = False
    sample: bool = False

    @classmethod
    def of(cls, shards: int, heads: int, length: int, text: float = inf) -> "Keeping":
        """Make the limits of a scan's workers, for windows up to `length` tokens.

        `text`: bytes of text of the largest shard, as no worker holds the links of more than one.
        """
        examples = cls(examples=True).most_bytes(heads, length, text) <= MOST_BYTES
        sample = cls(examples=True, sample=True).most_bytes(heads, length, text) <= MOST_BYTES
        return cls(shards <= KEPT_SHARDS and examples, shards <= SAMPLED_SHARDS and sample)

    @property
    def windows(self) -> int:
        """The number of windows whose links are kept for a head."""
        return self.examples * (TOP + DRAWN * PER_BIN) + self.sample * SAMPLE

    def most_bytes(self, heads: int, length: int, text: float = inf) -> int:
        """The bytes of all links that are kept, if they are as many as can be."""
        rows = heads * int(min(self.windows * length, text / TOKEN_BYTES))
        return rows * LINK_BYTES * (2 if length > 1 << 16 else 1)


@dataclass(frozen=True)
class SeenWindow:
    """A window with the place of its document; `number`: its number among the windows."""

    path: str
    start: int
    number: int
    ids: tuple[int, ...]

    @classmethod
    def of(cls, document: CorpusText, window: Window) -> "SeenWindow":
        return cls(document.path, document.start, window.number, window.ids)


WindowHead: TypeAlias = tuple[int, int]
"""The ordinal of a window in its shard, and the place of a head among those of the scan."""
Linked: TypeAlias = Iterator[tuple[WindowHead, SeenWindow, HeadLinks]]


class LinkKeeper(ABC):
    """Says which links are kept while a shard is counted, and keeps them."""

    def __init__(self) -> None:
        self.windows: dict[int, SeenWindow] = {}
        self.links: dict[WindowHead, HeadLinks] = {}
        self._new: dict[WindowHead, HeadLinks] = {}

    @abstractmethod
    def choose(
        self, batch: Sequence[Window], heads: slice, largest: FloatArray64, apart: FloatArray64
    ) -> Bools:
        """Choose windows of a batch and heads of a layer (W, h) by their largest weights."""

    def take(self, document: CorpusText, window: Window, head: int, links: HeadLinks) -> None:
        """Keep the links of a head, named by its place."""
        self.windows.setdefault(window.ordinal, SeenWindow.of(document, window))
        self._new[window.ordinal, head] = links

    def counted(self, windows: Sequence[Window], largest: FloatArray64) -> None:
        """Record the largest weights (2, W, H) of a batch; its links have been taken."""
        self.links |= packed(self._new)
        self._new = {}

    @property
    def bytes(self) -> int:
        """The size of the links that are kept."""
        each = (getattr(links, name) for links in self.links.values() for name in NOTHING)
        return sum(array.nbytes for array in each)

    def of_shard(self) -> Linked:
        """The links that were kept, by window and head."""
        for pair in sorted(self.links):
            yield pair, self.windows[pair[0]], self.links[pair]


def packed(links: Mapping[WindowHead, HeadLinks]) -> dict[WindowHead, HeadLinks]:
    """The links in three shared arrays, as many small ones leave holes in memory."""
    arrays = side_by_side(links.values())
    ends = np.cumsum([len(each.weights) for each in links.values()])[:-1]
    parts = zip(*(np.split(array, ends) for array in arrays.values()), strict=True)
    return {
        pair: replace(own, **dict(zip(arrays, part, strict=True)))
        for (pair, own), part in zip(links.items(), parts, strict=False)
    }


def side_by_side(links: Collection[HeadLinks]) -> dict[str, Any]:
    """Queries, keys and weights one after the other; places are small integers where they fit."""
    arrays = {
        name: np.concatenate([empty, *(getattr(each, name) for each in links)])
        for name, empty in NOTHING.items()
    }
    fit = max(arrays["queries"].max(initial=0), arrays["keys"].max(initial=0)) < 1 << 16
    kind = np.uint16 if fit else np.uint32
    return arrays | {name: arrays[name].astype(kind) for name in ("queries", "keys")}


NOTHING: Mapping[str, Any] = {
    "queries": np.zeros(0, np.uint16),
    "keys": np.zeros(0, np.uint16),
    "weights": np.zeros(0, np.float32),
}


class Shortlist(LinkKeeper):
    """Keeps the links of windows that are among those to show of all that a worker has counted."""

    def __init__(self, heads: Sequence[str], keeping: Keeping) -> None:
        super().__init__()
        self._keeping, self._heads = keeping, heads
        self._chosen = empty_record(heads)
        self._shard, self._shards, self._held = 0, set[int](), 0

    def begin(self, shard: int) -> None:
        """Begin another shard; what earlier ones have chosen stays the bar."""
        if shard in self._shards:  # it is counted anew: its windows must not be there twice
            self._chosen, self._shards = empty_record(self._heads), set()
        self._shards.add(shard)
        self._shard = shard
        self.windows, self.links, self._held = {}, {}, 0

    def choose(
        self, batch: Sequence[Window], heads: slice, largest: FloatArray64, apart: FloatArray64
    ) -> Bools:
        chances, chosen = np.array([w.chance for w in batch])[:, None], self._chosen
        best = by_size(apart) <= chosen.best[heads, -1, 0]
        of_bin = chosen.drawn[heads, :, -1, 0]  # (h, DRAWN)
        drawn = chances <= of_bin[np.arange(len(of_bin)), drawn_bin(largest)]
        sampled = chances <= (chosen.sample[-1, 0] if self._keeping.sample else -1)
        is_number = np.isfinite(largest) & np.isfinite(apart)
        return (best | drawn | sampled) & is_number

    def counted(self, windows: Sequence[Window], largest: FloatArray64) -> None:
        own = record_of_windows(self._chosen, windows, largest, self._shard)
        self._chosen = merged_windows([self._chosen, own])
        wanted, sampled = self._wanted()
        self.links, self._new = (
            {pair: own for pair, own in links.items() if pair in wanted or pair[0] in sampled}
            for links in (self.links, self._new)
        )
        self._held += _links_in(self._new)
        super().counted(windows, largest)
        ordinals = {ordinal for ordinal, _ in self.links}
        self.windows = {n: window for n, window in self.windows.items() if n in ordinals}
        live = _links_in(self.links)
        if self._held > 2 * live:  # arrays stay as long as one of those that share them
            self.links, self._held = packed(self.links), live

    def _wanted(self) -> tuple[set[WindowHead], set[int]]:
        """The pairs that may be examples, and the windows of which every head is wanted."""
        shard, chosen = self._shard, self._chosen
        drawn = chosen.drawn.reshape(len(chosen.heads), -1, 3)
        named = np.concatenate([chosen.best, drawn], axis=1)
        head, place = np.nonzero(named[..., 1] == shard)
        pairs = set(zip(named[head, place, 2].tolist(), head.tolist(), strict=True))
        sampled = chosen.sample[chosen.sample[:, 1] == shard, 2].tolist()
        return pairs, set(sampled if self._keeping.sample else ())


class WantedLinks(LinkKeeper):
    """Keeps the links of these pairs: heads, by their places, of each window."""

    def __init__(self, wanted: Mapping[int, Collection[int]]) -> None:
        super().__init__()
        self._wanted = wanted

    def choose(
        self, batch: Sequence[Window], heads: slice, largest: FloatArray64, apart: FloatArray64
    ) -> Bools:
        places = range(heads.start, heads.stop)
        return np.array(
            [[place in self._wanted.get(w.ordinal, ()) for place in places] for w in batch]
        )


def _links_in(links: Mapping[WindowHead, HeadLinks]) -> int:
    return sum(len(each.weights) for each in links.values())


# The links of a shard as a file.


def links_file(shard: Shard) -> str:
    """The file of the links that were kept of a shard."""
    return f"{LINKS}/{shard.number:06}.npz"


def links_to_bytes(keeper: LinkKeeper, scan: str, shard: int) -> bytes:
    """Write the links that are kept of a shard as bytes."""
    pairs, links = list(keeper.links), list(keeper.links.values())
    windows = {ordinal: vars(window) for ordinal, window in keeper.windows.items()}
    arrays = {
        "pairs": np.array(pairs, np.int64).reshape(-1, 2),
        "counts": np.array([len(each.weights) for each in links], np.int64),
        "largest": np.array([each.largest for each in links]),
        **side_by_side(links),
    }
    return archive(arrays, {"scan": scan, "shard": shard, "windows": windows}, compressed=False)


def links_of_bytes(
    data: bytes, scan: str, shard: int, heads: Sequence[Head], wanted: Mapping[int, Collection[int]]
) -> Linked | None:
    """The wanted links of a file; None where one is not in it. `heads`: those of the scan.

    Raises:
        ValueError: it is damaged, or of another scan or shard.
    """
    with opened_archive(data) as (stored, rest):
        if (rest["scan"], rest["shard"]) != (scan, shard):
            raise ValueError("shard")
        arrays = {name: stored[name] for name in ("pairs", "counts", "largest", *NOTHING)}
        windows = {
            int(ordinal): SeenWindow(**{**window, "ids": tuple(map(int, window["ids"]))})
            for ordinal, window in rest["windows"].items()
        }
        _check(arrays, windows)
    places = {tuple(pair): at for at, pair in enumerate(arrays["pairs"].tolist())}
    pairs = [(ordinal, head) for ordinal in sorted(wanted) for head in sorted(wanted[ordinal])]
    if not places.keys() >= set(pairs):
        return None
    ends = np.cumsum(arrays["counts"])
    return (
        (pair, windows[pair[0]], _links(arrays, ends, places[pair], pair[0], heads[pair[1]]))
        for pair in pairs
    )


def _check(arrays: Mapping[str, Any], windows: Mapping[int, SeenWindow]) -> None:
    """Check that the arrays of a file belong together, and that links are in their windows.

    Raises:
        ValueError: they do not.
    """
    pairs, counts = arrays["pairs"], arrays["counts"]
    queries, keys, weights = (arrays[name] for name in NOTHING)
    whole = pairs.shape == (len(counts), 2) and arrays["largest"].shape == counts.shape
    kinds = {array.dtype.kind for array in (queries, keys)} <= {"u"}
    if not (whole and kinds and pairs.dtype == counts.dtype == np.int64 and (counts >= 0).all()):
        raise ValueError("shapes")
    sizes = np.array([len(windows[ordinal].ids) for ordinal, _ in pairs.tolist()], np.int64)
    ends = np.repeat(sizes, counts)  # of the window of each link
    if not len(ends) == len(queries) == len(keys) == len(weights):
        raise ValueError("lengths")
    if not ((queries < ends) & (keys < ends) & np.isfinite(weights)).all():
        raise ValueError("links")


def _links(
    arrays: Mapping[str, Any], ends: IntArray, at: int, window: int, head: Head
) -> HeadLinks:
    own = slice(int(ends[at - 1]) if at else 0, int(ends[at]))
    parts = {name: arrays[name][own] for name in NOTHING}
    return HeadLinks(window, head.layer, head.head, **parts, largest=float(arrays["largest"][at]))


# Windows that are run again.


def run_again(
    model: "LoadedModel", windows: Sequence[Window], wanted: Mapping[int, Sequence[Head]]
) -> Iterator[tuple[Window, HeadLinks]]:
    """Run windows; the links of the heads that are wanted, by ordinal of the window.

    A window that cannot be run any more, as memory is short, gives none.
    """
    from attnviz.models.linking import link_windows

    def links_of(batch: Sequence[Window]) -> list[HeadLinks]:
        links: list[HeadLinks] = []
        heads = [wanted[window.ordinal] for window in batch]
        link_windows(model, [window.ids for window in batch], heads, links.append)
        return links

    most = batch_tokens(model)
    for batch, links in run_batches(windows, links_of, lambda window, why: None, most):
        yield from ((batch[each.window], each) for each in links)
        links.clear()  # so that they are not held while the next batch runs
