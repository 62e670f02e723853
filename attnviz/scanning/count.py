"""A shard to its record.

documents ─► windows ─► batches ─► sums of each window ─► values of each document ─► record
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.atlas.record import (
    NOWHERE,
    Document,
    FloatArray64,
    Origin,
    Record,
    Skipped,
    empty_record,
    merged,
    units,
)
from attnviz.errors import AttnvizError, ModelError
from attnviz.records.heads import Head, by_layer
from attnviz.records.metrics import SUMS, WindowSums
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
        origin: Origin = NOWHERE,
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
        self._held: list[Record] = []
        self._record = empty_record(self._names, replace(origin, length=length))
        self.skipped: list[Skipped] = []

    def add(self, document: Document | Skipped) -> None:
        """One document; one that the model cannot read is noted."""
        if isinstance(document, Skipped):
            self.skipped.append(document)
            return
        try:
            made = self._windows.of(document)
        except AttnvizError as error:
            self.skipped.append(Skipped(document.path, document.start, error.wrong))
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
        return replace(self._record, bad=len(self.skipped))

    def _count(self, *, whole: bool) -> None:
        """Count the windows that wait; `whole`: the last one ends its document."""
        windows, self._waiting, self._tokens = self._waiting, [], 0
        values = np.zeros((len(windows), len(self._names), K))
        largest = np.zeros((2, len(windows), len(self._names)))  # and between two tokens
        places = {window.ordinal: place for place, window in enumerate(windows)}
        for batch in batches(windows):
            for some, sums in self._summed(batch):
                at = [places[window.ordinal] for window in some]
                values[at] = np.concatenate([sums.sums, sums.distances, sums.positions], axis=-1)
                largest[:, at] = sums.largest, sums.apart
        if windows[0].document in self._bad:
            self._begun, self._held = None, []  # what there was of it is not counted
        last = windows[-1].document
        goes_on = None if whole or last in self._bad else last
        good = [place for place, w in enumerate(windows) if w.document not in self._bad]
        if good:
            self._keep([windows[place] for place in good], values[good], largest[:, good], goes_on)
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
            self.skipped.append(Skipped(document.path, document.start, why))

    def _keep(
        self, windows: list[Window], values: FloatArray64, largest: FloatArray64, last: int | None
    ) -> None:
        """Add windows to the record; `last`: a document that goes on, which waits till it ends."""
        documents = np.array([window.document for window in windows])
        rows = np.array([rows_of(window.ids, causal=self._model.causal) for window in windows])
        sums = together(self._begun, Sums(documents, values, rows)).by_document()
        waits = documents == last
        parts = [self._of_windows(windows, largest, ~waits)]
        held = [self._of_windows(windows, largest, waits)]
        if self._begun is None or self._begun.documents[0] != last:
            parts += self._held  # the document that waited has ended
        else:
            held += self._held
        ended = len(sums.documents) - bool(waits.any())
        if ended:
            own = sums.of(slice(ended))
            parts.append(record_of_documents(self._record, own, self._units))
        self._begun = sums.of(slice(ended, None)) if waits.any() else None
        self._held = [merged(held)] if waits.any() else []
        self._record = merged([self._record, *parts])

    def _of_windows(
        self, windows: Sequence[Window], largest: FloatArray64, chosen: NDArray[np.bool_]
    ) -> Record:
        """The record of some windows."""
        own = [window for window, is_one in zip(windows, chosen, strict=True) if is_one]
        return record_of_windows(self._record, own, largest[:, chosen], self._shard)
