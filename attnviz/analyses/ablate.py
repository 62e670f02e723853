"""The effect of ablated heads on a model's log-probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from attnviz.analyses.predict import log_softmax
from attnviz.data.ablate import Ablated, AblatedRun, AblationReport, Effect
from attnviz.data.heads import Estimate


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


def mean_of(reports: Sequence[AblationReport]) -> AblationReport:
    """The mean over several texts of the effects of the same ablations, with standard errors."""
    effects = []
    for same in zip(*(report.effects for report in reports), strict=True):
        found = Estimate.of([effect.change for effect in same])
        effects.append(Effect(same[0].heads, found.mean, found.error))
    answers = [report.answer.id for report in reports if report.answer]
    differ = len(set(answers)) > 1
    return replace(
        reports[0],
        answer=None if differ else reports[0].answer,
        own_answers=differ,
        baseline=fmean(report.baseline for report in reports),
        tokens=sum(report.tokens for report in reports),
        effects=effects,
        lines=len(reports),
    )


def effect_of(heads: Ablated, before: NDArray[np.float64], after: NDArray[np.float64]) -> Effect:
    """The mean change of log-probabilities, (tokens), and its standard error over the tokens."""
    change = after - before
    n = len(change)
    error = float(change.std(ddof=1)) / sqrt(n) if n > 1 else None
    return Effect(heads, float(change.mean()), error)
