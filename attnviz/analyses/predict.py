"""Logits to what a person reads: the likeliest tokens, and where the true one stands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnviz.data.predict import Candidate, LogitRows, Outlook


@dataclass
class KeepOutlooks:
    """Consumes logits, and keeps of each position the `top` likeliest tokens.

    `ids` are those of the text; `label` names a token of the vocabulary.
    """

    ids: Sequence[int]
    top: int
    label: Callable[[int], str]
    outlooks: list[Outlook] = field(default_factory=list)

    def __call__(self, rows: LogitRows) -> None:
        for position, logits in zip(rows.positions.tolist(), rows.logits, strict=True):
            self.outlooks.append(self._outlook(position, rows.layer, log_softmax(logits)))

    def _outlook(self, position: int, layer: int | None, logs: NDArray[np.float64]) -> Outlook:
        likeliest = np.argpartition(-logs, min(self.top, len(logs)) - 1)[: self.top]
        best = sorted(likeliest.tolist(), key=lambda id_: (-logs[id_], id_))
        candidates = [self._candidate(id_, logs) for id_ in best]
        if position + 1 >= len(self.ids):
            return Outlook(position, layer, candidates)
        true = self.ids[position + 1]
        rank = int((logs > logs[true]).sum()) + 1
        return Outlook(position, layer, candidates, self._candidate(true, logs), rank)

    def _candidate(self, id_: int, logs: NDArray[np.float64]) -> Candidate:
        return Candidate(id_, self.label(id_), float(np.exp(logs[id_])))


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Logits (..., V) to log-probabilities, in nats, computed in float64."""
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    found: NDArray[np.float64] = exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    return found
