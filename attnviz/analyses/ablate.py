"""The effect of ablated heads on a model's log-probabilities."""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from attnviz.analyses.predict import log_softmax
from attnviz.data.ablate import Ablated, AblatedRun, Effect


@dataclass
class KeepLogProbabilities:
    """Consumes runs, and keeps log-probabilities in nats.

    `answer`: keep that of this token after the last position; None: those of the tokens that
    really followed.
    """

    answer: int | None
    kept: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def __call__(self, run: AblatedRun) -> None:
        if self.answer is None:
            self.kept[run.index] = run.followed.astype(np.float64)
        else:
            self.kept[run.index] = log_softmax(run.last)[[self.answer]]


def effect_of(heads: Ablated, before: NDArray[np.float64], after: NDArray[np.float64]) -> Effect:
    """The mean change of log-probabilities, (tokens), and its standard error over the tokens."""
    change = after - before
    n = len(change)
    error = float(change.std(ddof=1)) / sqrt(n) if n > 1 else None
    return Effect(heads, float(change.mean()), error)
