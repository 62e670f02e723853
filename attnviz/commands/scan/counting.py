"""A shard to its record.

documents ─► windows ─► batches ─► sums of each window ─► values of each document ─► record
                                                      └► sums over all rows ─────────┘
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnviz.corpus.documents import Window, WindowCutter
from attnviz.corpus.folder import BATCH, CACHED_BATCH, LARGE
from attnviz.corpus.places import CorpusText, Skipped
from attnviz.corpus.record import (
    DRAWN,
    NONE,
    NOWHERE,
    PER_BIN,
    SAMPLE,
    SCORES,
    TOP,
    TOTALS,
    WEIGHTS,
    FloatArray64,
    Origin,
    Record,
    bin_of,
    by_size,
    drawn_bin,
    empty_record,
    least,
    merged,
    moments,
)
from attnviz.errors import AttnvizError, ModelError
from attnviz.records.capture import IntArray
from attnviz.records.heads import Head, by_layer
from attnviz.records.metrics import BINS, METRICS, SUMS, Bools, HeadLinks, WindowSums

if TYPE_CHECKING:
    from attnviz.commands.scan.links import LinkKeeper
    from attnviz.models.loaded import LoadedModel

GROUP_TOKENS, GROUP_VALUES = 1 << 16, 1 << 17
"""Windows are run when their tokens reach this number, or windows times heads do."""


# Windows in batches, which depend only on their shard.

R = TypeVar("R")


def batch_tokens(model: "LoadedModel") -> int:
    """The most tokens of a batch of this model."""
    from attnviz.models.reducing import device_name

    is_large = model.identity.parameters >= LARGE and device_name(model) == "cpu"
    return CACHED_BATCH if is_large else BATCH


def batches(windows: Sequence[Window], most: int = BATCH) -> Iterator[list[Window]]:
    """Windows of one length each, with up to `most` tokens together; the shortest first.

    So nothing is padded.
    """
    batch: list[Window] = []
    for window in sorted(windows, key=lambda w: (len(w.ids), w.ordinal)):
        n = len(window.ids)
        if batch and (n != len(batch[0].ids) or n * (len(batch) + 1) > most):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def run_batches(
    windows: Sequence[Window],
    run: Callable[[Sequence[Window]], R],
    failed: Callable[[Window, str], None],
    most: int = BATCH,
) -> Iterator[tuple[Sequence[Window], R]]:
    """Batches of windows, with up to `most` tokens each, and the results of their runs.

    The windows of a batch that cannot be run are run one by one; `failed` gets a window that
    cannot be run by itself, and why.
    """
    waiting = [*batches(windows, most)][::-1]
    while waiting:
        batch = waiting.pop()
        try:
            result = run(batch)
        except ModelError as error:
            if len(batch) == 1:
                failed(batch[0], error.wrong)
            else:
                waiting += [[window] for window in reversed(batch)]
        else:
            yield batch, result


# Batches to the record of a shard.


class Counter:
    """Counts the documents of a shard."""

    def __init__(
        self,
        model: "LoadedModel",
        heads: Sequence[Head],
        length: int,
        *,
        shard: int = 0,
        seed: int = 0,
        origin: Origin = NOWHERE,
        keeper: "LinkKeeper | None" = None,
    ) -> None:
        """`keeper`: keeps links of what is counted."""
        self._model, self._heads, self._shard = model, by_layer(heads), shard
        self._most, self._keeper = batch_tokens(model), keeper
        self._names = tuple(map(str, sorted(heads)))
        exact = model.identity.dtype == "float32"
        self._error = np.inf if model.sinks else 1e-3 if exact else 0.05
        self._windows = WindowCutter(model.tokenizer, length, seed)
        self._waiting: list[Window] = []
        self._tokens = 0
        self._documents: dict[int, CorpusText] = {}
        self._bad: set[int] = set()
        self._begun: DocumentSums | None = None
        self._held: list[Record] = []
        self._record = empty_record(self._names, replace(origin, length=length))
        self.skipped: list[Skipped] = []

    def add(self, document: CorpusText | Skipped) -> None:
        """Add one document; note one that the model cannot read."""
        if isinstance(document, Skipped):
            self.skipped.append(document)
            return
        try:
            windows = self._windows.of(document)
        except AttnvizError as error:
            self.skipped.append(Skipped(document.path, document.start, error.wrong))
            return
        for window in windows:
            self._documents[window.document] = document
            self._waiting.append(window)
            self._tokens += len(window.ids)
            values = len(self._waiting) * len(self._names)
            if self._tokens >= GROUP_TOKENS or values >= GROUP_VALUES:
                self._count(whole=window is windows[-1])

    def finish(self) -> Record:
        """The record of all documents."""
        if self._waiting:
            self._count(whole=True)
        return replace(self._record, bad=len(self.skipped))

    def _count(self, *, whole: bool) -> None:
        """Count the windows that wait; `whole`: the last one ends its document."""
        windows, self._waiting, self._tokens = self._waiting, [], 0
        values = np.zeros((len(windows), len(self._names), K))
        largest = np.zeros((2, len(windows), len(self._names)))  # and between two tokens
        places = {window.ordinal: place for place, window in enumerate(windows)}
        for batch, sums in run_batches(windows, self._sums, self._skip, self._most):
            self._check(batch, sums)
            at = np.array([places[window.ordinal] for window in batch])
            values[at] = np.concatenate([sums.sums, sums.distances, sums.positions], axis=-1)
            largest[:, at] = sums.largest, sums.apart
            if self._keeper is not None:
                kept = [place for place, w in enumerate(batch) if w.document not in self._bad]
                self._keeper.counted([batch[place] for place in kept], largest[:, at[kept]])
        if windows[0].document in self._bad:
            self._begun, self._held = None, []  # what there was of it is not counted
        last = windows[-1].document
        goes_on = None if whole or last in self._bad else last
        good = [place for place, w in enumerate(windows) if w.document not in self._bad]
        if good:
            self._keep([windows[place] for place in good], values[good], largest[:, good], goes_on)
        self._documents = {} if whole else {last: self._documents[last]}

    def _sums(self, batch: Sequence[Window]) -> WindowSums:
        from attnviz.models.reducing import sum_windows

        ids, keeper = [window.ids for window in batch], self._keeper
        if keeper is None:
            return sum_windows(self._model, ids, self._heads)
        layers = accumulate((len(heads) for heads in self._heads.values()), initial=0)
        first = dict(zip(self._heads, layers, strict=False))

        def choose(layer: int, windows: slice, largest: FloatArray64, apart: FloatArray64) -> Bools:
            heads = slice(first[layer], first[layer] + len(self._heads[layer]))
            return keeper.choose(batch[windows], heads, largest, apart)

        def give(links: HeadLinks) -> None:
            window = batch[links.window]
            place = first[links.layer] + self._heads[links.layer].index(links.head)
            keeper.take(self._documents[window.document], window, place, links)

        return sum_windows(self._model, ids, self._heads, choose, give)

    def _check(self, batch: Sequence[Window], sums: WindowSums) -> None:
        """Skip the documents of windows whose attention has no rows that sum to 1."""
        mass = sums.sums[..., SUMS.index("mass")] / len(batch[0].ids)  # (B, H)
        for place, window in enumerate(batch):
            if not np.isfinite(sums.sums[place]).all():
                self._skip(window, "its attention is not a number (NaN or infinite)")
            elif np.abs(mass[place] - 1).max() > self._error:
                self._skip(window, "its attention has rows that do not sum to 1")

    def _skip(self, window: Window, why: str) -> None:
        """Note, once, that a document cannot be run."""
        if window.document not in self._bad:
            self._bad.add(window.document)
            document = self._documents[window.document]
            self.skipped.append(Skipped(document.path, document.start, why))

    def _keep(
        self, windows: list[Window], values: FloatArray64, largest: FloatArray64, last: int | None
    ) -> None:
        """Add windows to the record; `last`: an unfinished document, which waits till it ends."""
        documents = np.array([window.document for window in windows])
        rows = np.array([rows_of(window.ids, causal=self._model.causal) for window in windows])
        own = DocumentSums(documents, values, rows)
        cut = len(windows) if last is None else int(np.searchsorted(documents, last))
        if cut:  # the document that waited has ended
            ended = own.of(slice(cut))
            of_windows = self._of_windows(windows[:cut], ended, largest[:, :cut])
            whole = record_of_documents(self._record, ended.behind(self._begun).by_document())
            self._record = merged([self._record, *self._held, of_windows, whole])
            self._begun, self._held = None, []
        if cut < len(windows):
            waits = own.of(slice(cut, None))
            self._held.append(self._of_windows(windows[cut:], waits, largest[:, cut:]))
            self._begun, self._held = waits.behind(self._begun).by_document(), [merged(self._held)]

    def _of_windows(
        self, windows: Sequence[Window], sums: "DocumentSums", largest: FloatArray64
    ) -> Record:
        # a window of one token shows nothing of attention
        several = sums.rows[:, TOTALS.index("squares")] > 1
        of_rows = record_of_rows(self._record, sums.of(several), largest[0, several])
        return merged([record_of_windows(self._record, windows, largest, self._shard), of_rows])


# Sums over windows to the values of documents, and those to a record. Letters in the shapes:
#
# D documents   W windows   H heads   K sums: those of `SUMS`, then distances and positions


K = len(SUMS) + 2 * BINS
DISTANCES, POSITIONS = slice(len(SUMS), len(SUMS) + BINS), slice(len(SUMS) + BINS, K)
ROWS = TOTALS[:-1]  # the last is of windows


@dataclass(frozen=True, eq=False)
class DocumentSums:
    """Sums of windows or of documents, which `documents` (D) numbers in rising order.

    `values` (D, H, K); `rows` (D, `ROWS`): how many rows of attention each of these sums is over,
    the same for all heads.
    """

    documents: IntArray
    values: FloatArray64
    rows: FloatArray64

    def by_document(self) -> "DocumentSums":
        """The windows of one document added up, in order."""
        numbers, starts = np.unique(self.documents, return_index=True)
        return DocumentSums(
            numbers, np.add.reduceat(self.values, starts), np.add.reduceat(self.rows, starts)
        )

    def behind(self, begun: "DocumentSums | None") -> "DocumentSums":
        """The sums of this part, added to those of the parts before it."""
        if begun is None:
            return self
        pairs = zip(vars(begun).values(), vars(self).values(), strict=True)
        return DocumentSums(*map(np.concatenate, pairs))

    def of(self, chosen: slice | NDArray[np.bool_]) -> "DocumentSums":
        """Some of these."""
        return DocumentSums(self.documents[chosen], self.values[chosen], self.rows[chosen])


def rows_of(ids: Sequence[int], *, causal: bool) -> list[float]:
    """The number of rows of a window for each of `ROWS`; of a document, a distance is by mass."""
    from attnviz.models.reducing import FAST_SUMS

    tokens = np.array(ids)
    _, first, which = np.unique(tokens, return_index=True, return_inverse=True)
    before = np.arange(len(tokens)) - first[which]
    return [float(FAST_SUMS[name].rows(before, causal)) for name in ROWS]


def record_of_documents(like: Record, sums: DocumentSums) -> Record:
    """The record of some documents, without windows; `like`: of the same heads and origin."""
    named = {name: sums.values[..., i] for i, name in enumerate(SUMS)}  # (D, H) each
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = named["distance"] / named["mass"]
        # a sink takes a part of each row: variance is over what is left
        variance = named["squares"] / named["mass"] - distance * distance
        by_mass = {"distance": distance, "distance_variance": np.maximum(0, variance)}
        means = [
            by_mass[score] if score in by_mass else named[score] / sums.rows[:, i, None]
            for i, score in enumerate(SCORES)
        ]
    values = np.stack(means, axis=-1)  # (D, H, M)
    values[~np.isfinite(values)] = np.nan
    totals, squares, counts = moments(values)
    queries = sums.rows[:, [*METRICS].index("entropy"), None, None]
    distances, positions = (
        (sums.values[..., part] / queries).sum(axis=0) for part in (DISTANCES, POSITIONS)
    )
    return replace(
        empty_record(like.heads, like.origin),
        totals=totals,
        squares=squares,
        counts=counts,
        distances=distances,
        positions=positions,
        documents=len(values),
    )


def record_of_windows(
    like: Record, windows: Sequence[Window], largest: FloatArray64, shard: int
) -> Record:
    """The record of windows, without documents and rows.

    `like`: as above; `largest` (2, W, H): their largest weight, and that between two tokens.
    """
    named = [(w.chance, shard, w.ordinal) for w in windows]
    names = np.array(named, np.int64).reshape(-1, 3)  # (W, 3)
    bins = drawn_bin(largest[0]).T  # (H, W)
    best = np.empty((len(like.heads), len(windows), 3), np.int64)
    best[..., 0], best[..., 1:] = by_size(largest[1].T), names[:, 1:]
    order = np.lexsort((names[:, 2], names[:, 1], names[:, 0]))  # in which they are drawn
    return replace(
        empty_record(like.heads, like.origin),
        best=least(best, TOP),
        sample=least(names, SAMPLE),
        drawn=_drawn(names[order], bins[:, order]),
        windows=len(windows),
        tokens=sum(len(window.ids) for window in windows),
    )


def record_of_rows(like: Record, sums: DocumentSums, largest: FloatArray64) -> Record:
    """The record of the rows of windows, whose largest weights are `largest` (W, H)."""
    places = [SUMS.index(name) for name in ROWS]
    values = np.concatenate([sums.values[..., places], largest[..., None]], axis=-1)
    bins = bin_of(largest)
    return replace(
        empty_record(like.heads, like.origin),
        sums=values.sum(axis=0),
        rows=np.append(sums.rows.sum(axis=0), len(largest)).astype(np.int64),
        largest=np.stack([(bins == b).sum(axis=0) for b in range(WEIGHTS)], axis=1),
    )


def _drawn(names: IntArray, bins: IntArray) -> IntArray:
    """The first windows of each bin (H, DRAWN, PER_BIN, 3); `names` (W, 3) are in order."""
    drawn = np.full((len(bins), DRAWN, PER_BIN, 3), NONE)
    for number in np.unique(bins):
        inside = bins == number  # (H, W)
        for place in range(PER_BIN):
            at = inside.argmax(axis=1)
            heads = np.flatnonzero(inside.any(axis=1))
            drawn[heads, number, place] = names[at[heads]]
            inside[heads, at[heads]] = False
    return drawn
