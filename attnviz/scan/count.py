"""A shard to its record: documents, windows of tokens, rows of attention, integers.

documents ─► windows ─► run ─► rows ─► metrics of each document ─► fixed point ─► record
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.analyses.heads import MeasureHeads, marks_of_tokens
from attnviz.data.blocks import PatternBlock
from attnviz.data.head import Head
from attnviz.data.scan import (
    DISTANCES,
    SCALE,
    WEIGHTS,
    Document,
    HeadCounts,
    Moments,
    Record,
    Skipped,
)
from attnviz.data.tokens import Token, numbered
from attnviz.errors import AttnvizError
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import prepare_tokens

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass
class Counted:
    """What is added up over the windows of one document, besides the metrics."""

    distances: dict[Head, NDArray[np.float64]] = field(default_factory=dict)
    squares: dict[Head, float] = field(default_factory=dict)
    largest: dict[Head, float] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        """Add the rows of a window."""
        n = block.weights.shape[2]
        apart = np.abs(block.queries[:, None] - np.arange(n))
        bins = np.digitize(apart, DISTANCES)  # (rows, n)
        inner = block.weights[:, :, 1:] * (block.queries > 0)[:, None]
        largest = inner.max(axis=(1, 2), initial=0.0)
        squares = np.einsum("hrk,rk->h", block.weights, np.square(apart, dtype=np.float64))
        for i, head in enumerate(Head(block.layer, h) for h in block.heads):
            mass = np.bincount(bins.ravel(), block.weights[i].ravel(), len(DISTANCES) + 1)
            self.distances[head] = self.distances.get(head, np.zeros(len(mass))) + mass
            self.squares[head] = self.squares.get(head, 0.0) + float(squares[i])
            self.largest[head] = max(self.largest.get(head, 0.0), float(largest[i]))


class Counter:
    """Counts the documents of a shard."""

    def __init__(self, model: "LoadedModel", heads: Sequence[Head], length: int) -> None:
        self._model, self._heads, self._length = model, tuple(heads), length
        self.record = Record({str(head): HeadCounts() for head in heads})

    def add(self, document: Document | Skipped) -> None:
        """One document; one that the model cannot read is noted."""
        if isinstance(document, Skipped):
            self.record.skipped.append(document)
            return
        try:
            windows = list(self._windows(document.text))
            self._count(windows)
        except AttnvizError as error:
            why = Skipped(document.path, document.start, error.wrong)
            self.record.skipped.append(why)

    def _windows(self, text: str) -> Iterator[tuple[Token, ...]]:
        """The tokens of a document, cut; each window with the model's own ends."""
        tokenizer = self._model.tokenizer
        first, last = tokenizer.ends(tokenizer.bos)
        inner = tokenizer.encode(text, bos=False, special=False)
        step = self._length - len(first) - len(last)
        for at in range(0, len(inner), step):
            yield numbered((*first, *inner[at : at + step], *last))

    def _count(self, windows: Sequence[tuple[Token, ...]]) -> None:
        """Run the windows of a document, and add its values."""
        measure = MeasureHeads(marks_of_tokens([]), self._model.causal)
        counted, queries = Counted(), 0
        largest: dict[Head, list[float]] = {head: [] for head in self._heads}
        for tokens in windows:
            measure.marks = marks_of_tokens([token.id for token in tokens])
            counted.largest.clear()

            def consume(block: PatternBlock) -> None:
                measure(block)
                counted(block)

            prepare_tokens(self._model, tokens, TextOptions()).run(self._heads, consume)
            queries += len(tokens)
            for head, weight in counted.largest.items():
                largest[head].append(weight)
        if not windows:
            return
        metrics = measure.metrics()
        for head in self._heads:
            own = self.record.heads[str(head)]
            values = dict(metrics[head])
            mass = float(counted.distances[head].sum())  # less than the queries with a sink
            variance = counted.squares[head] / mass - values["distance"] ** 2 if mass else nan
            values["distance_variance"] = max(0.0, variance)
            for name, value in values.items():
                own.metrics.setdefault(name, Moments()).add(value)
            for i, share in enumerate((counted.distances[head] / queries).tolist()):
                own.distances[i] += round(share * SCALE)
            for weight in largest[head]:
                own.largest[min(WEIGHTS - 1, int(weight * WEIGHTS))] += 1
        self.record.documents += 1
        self.record.windows += len(windows)
        self.record.tokens += queries
