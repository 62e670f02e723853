"""A shard to its record.

documents ─► windows ─► batches ─► sums of each window ─► values of each document ─► record
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.head import Head, by_layer
from attnviz.data.record import FloatArray64, Record, empty_record, merged, units
from attnviz.data.scan import Document, Skipped
from attnviz.data.windows import SUMS, WindowSums
from attnviz.errors import AttnvizError, ModelError
from attnviz.scanning.values import (
    K,
    Sums,
    record_of_documents,
    record_of_windows,
    rows_of,
    together,
)
from attnviz.scanning.windows import Window, Windows, batches

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

GROUP_TOKENS, GROUP_VALUES = 1 << 16, 1 << 17
"""Windows are run when they have so many tokens, or there are so many windows times heads."""


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
    ) -> None:
        self._model, self._heads, self._shard = model, by_layer(heads), shard
        self._units, self._names = units(length), tuple(map(str, sorted(heads)))
        exact = model.identity.dtype == "float32"
        self._error = np.inf if model.sinks else 1e-3 if exact else 0.05
        self._windows = Windows(model.tokenizer, length, seed)
        self._waiting: list[Window] = []
        self._tokens = 0
        self._documents: dict[int, Document] = {}
        self._bad: set[int] = set()
        self._begun: Sums | None = None
        self._record = empty_record(self._names)
        self._skipped: list[Skipped] = []

    def add(self, document: Document | Skipped) -> None:
        """One document; one that the model cannot read is noted."""
        if isinstance(document, Skipped):
            self._skipped.append(document)
            return
        try:
            made = self._windows.of(document)
        except AttnvizError as error:
            self._skipped.append(Skipped(document.path, document.start, error.wrong))
            return
        for window in made:
            self._documents[window.document] = document
            self._waiting.append(window)
            self._tokens += len(window.ids)
            values = len(self._waiting) * len(self._names)
            if self._tokens >= GROUP_TOKENS or values >= GROUP_VALUES:
                self._count(whole=window is made[-1])

    def finish(self) -> Record:
        """The record of all documents."""
        if self._waiting:
            self._count(whole=True)
        return merged([replace(self._record, skipped=tuple(self._skipped))])

    def _count(self, *, whole: bool) -> None:
        """Count the windows that wait; `whole`: the last one ends its document."""
        windows, self._waiting, self._tokens = self._waiting, [], 0
        values = np.zeros((len(windows), len(self._names), K))
        largest = np.zeros((len(windows), len(self._names)))
        places = {window.ordinal: place for place, window in enumerate(windows)}
        for batch in batches(windows):
            for some, sums in self._summed(batch):
                at = [places[window.ordinal] for window in some]
                values[at] = np.concatenate([sums.sums, sums.distances, sums.positions], axis=-1)
                largest[at] = sums.largest
        good = [place for place, w in enumerate(windows) if w.document not in self._bad]
        if good:
            self._keep([windows[place] for place in good], values[good], largest[good], whole=whole)
        last = windows[-1].document
        self._documents = {} if whole else {last: self._documents[last]}

    def _summed(self, batch: Sequence[Window]) -> list[tuple[Sequence[Window], WindowSums]]:
        """The sums of a batch; of its windows one by one where it cannot be run, or has others."""
        from attnviz.models.reducing import sum_windows

        try:
            sums = sum_windows(self._model, [window.ids for window in batch], self._heads)
        except ModelError as error:
            if len(batch) > 1:
                return [each for window in batch for each in self._summed([window])]
            self._skip(batch[0], error.wrong)
            return []
        mass = sums.sums[..., SUMS.index("mass")] / len(batch[0].ids)  # (B, H)
        for place, window in enumerate(batch):
            if not np.isfinite(sums.sums[place]).all():
                self._skip(window, "its attention is not a number (NaN or infinite)")
            elif np.abs(mass[place] - 1).max() > self._error:
                self._skip(window, "its attention has rows that do not sum to 1")
        return [(batch, sums)]

    def _skip(self, window: Window, why: str) -> None:
        """Note, once, that a document cannot be run."""
        if window.document not in self._bad:
            self._bad.add(window.document)
            document = self._documents[window.document]
            self._skipped.append(Skipped(document.path, document.start, why))

    def _keep(
        self, windows: list[Window], values: FloatArray64, largest: FloatArray64, *, whole: bool
    ) -> None:
        """Add windows to the record; a document that goes on waits with what there is of it."""
        documents = np.array([window.document for window in windows])
        rows = np.array([rows_of(window.ids, causal=self._model.causal) for window in windows])
        sums = together(self._begun, Sums(documents, values, rows)).by_document()
        self._begun = None if whole else sums.of(slice(-1, None))
        done = sums if whole else sums.of(slice(-1))
        parts = [self._record, record_of_windows(self._names, windows, largest, self._shard)]
        if len(done.documents):
            parts.append(record_of_documents(self._names, done, self._units))
        self._record = merged(parts)
