"""The effect of ablations on what a model predicts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from attnviz.data.ablate import AblationReport, Effect, LinkNames
from attnviz.records.interventions import ChangedRun, Outcome
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.predict import mean_outcome


@dataclass
class KeepFollowed:
    """Consumes runs, and keeps the log-probabilities, in nats, of the tokens that followed."""

    kept: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def __call__(self, run: ChangedRun) -> None:
        self.kept[run.index] = run.followed.astype(np.float64)


def mean_of(reports: Sequence[AblationReport]) -> AblationReport:
    """The mean over several texts of the effects of the same ablations, with standard errors."""
    effects = []
    for same in zip(*(report.effects for report in reports), strict=True):
        found = Estimate.of([effect.change for effect in same])
        own = [effect.own for effect in same if effect.own]
        changes = mean_outcome(own) if own else None
        effects.append(Effect(same[0].parts, found.mean, found.error, changes))
    asked = {(report.answer, report.versus) for report in reports}
    ids = {tuple(each.id for each in pair if each) for pair in asked}
    differ = len(ids) > 1
    return replace(
        reports[0],
        answer=None if differ else reports[0].answer,
        versus=None if differ else reports[0].versus,
        own_answers=differ,
        baseline=fmean(report.baseline for report in reports),
        tokens=sum(report.tokens for report in reports),
        effects=effects,
        cut=_common([report.cut for report in reports]),
        lines=len(reports),
    )


def _common(cuts: Sequence[LinkNames | None]) -> LinkNames | None:
    """The links that are cut in all texts; their number, where it is the same in all."""
    if cuts[0] is None:
        return None
    return cuts[0] if len(set(cuts)) == 1 else replace(cuts[0], number=0)


def effect_on_tokens(
    parts: tuple[Part, ...], before: NDArray[np.float64], after: NDArray[np.float64]
) -> Effect:
    """The mean change of log-probabilities, (tokens), and its standard error over the tokens."""
    change = after - before
    n = len(change)
    error = float(change.std(ddof=1)) / sqrt(n) if n > 1 else None
    return Effect(parts, float(change.mean()), error)


def effect_on_answer(parts: tuple[Part, ...], before: Outcome, after: Outcome) -> Effect:
    """The change of what is measured, with the changes that it is made of."""
    return Effect(parts, after.measured - before.measured, own=after.less(before))
