"""How much of each head's attention goes to the true keys of labelled rows.

With the tokens of a question as queries and those of a document as keys, the mass is the score by
which query-focused retrieval heads are found: Zhang et al. 2025, "Query-Focused Retrieval Heads
Improve Long-Context Reasoning and Re-ranking", arXiv 2506.09944, equation 1.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnviz.data.labels import LabelScore
from attnviz.records.capture import PatternBlock
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate


@dataclass
class MeasureLabels:
    """Consumes the rows of one text.

    `keys`: the true keys of each labelled query. `sums` holds, for each head, the sum over rows of
    the mass on true keys, and the number of rows whose strongest key is true.
    """

    keys: Mapping[int, Set[int]]
    sums: dict[Head, NDArray[np.float64]] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        """Add these rows."""
        true = np.zeros((len(block.queries), block.weights.shape[2]), np.bool_)
        for row, query in enumerate(block.queries.tolist()):
            true[row, list(self.keys[query])] = True
        mass = np.einsum("hrk,rk->h", block.weights, true, dtype=np.float64)
        strongest = block.weights.argmax(axis=2)  # (heads, rows)
        hits = true[np.arange(len(true)), strongest].sum(axis=1)
        for i, head in enumerate(block.heads):
            own = self.sums.setdefault(Head(block.layer, head), np.zeros(2))
            own += (mass[i], hits[i])

    def means(self) -> dict[Head, NDArray[np.float64]]:
        """For each head the mean mass, and the share of rows whose strongest key is true (2)."""
        return {head: own / len(self.keys) for head, own in self.sums.items()}


def label_scores(texts: Sequence[Mapping[Head, NDArray[np.float64]]]) -> list[LabelScore]:
    """The heads' means over texts, with their standard errors; the best first."""
    scores = [
        LabelScore(head, *(Estimate.of([float(text[head][i]) for text in texts]) for i in (0, 1)))
        for head in texts[0]
    ]
    return sorted(scores, key=lambda each: (-each.mass.mean, each.head))
