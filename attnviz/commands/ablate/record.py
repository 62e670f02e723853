"""Ablation: what a model predicts without some of its parts, and how much worse that is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture
from attnviz.records.heads import Head
from attnviz.records.interventions import Candidate, ChangedRun, Outcome, Replacement
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.predict import NextTokens, mean_outcome


@dataclass(frozen=True)
class LinkNames:
    """Links that are cut, by the names of their queries and keys.

    `renormalise`: the weights that are left sum to 1 again. `number`: how many these are in a text,
    of each head; 0 where nothing was run yet.
    """

    query: str
    key: str
    renormalise: bool = False
    number: int = 0


def link_named(name: str, *, renormalise: bool = False) -> LinkNames:
    """The links that `QUERY:KEY` names.

    Raises:
        UsageError: it is no such pair.
    """
    query, colon, key = name.partition(":")
    if not (colon and query and key) or ":" in key:
        raise UsageError(
            f"{option('cut', repr(name))} is not QUERY:KEY",
            "give two tokens, as in creature:blue; one that has a colon, by its position",
        )
    return LinkNames(query, key, renormalise)


@dataclass(frozen=True)
class Effect:
    """The effect of ablating some parts on what is measured; negative means worse.

    `parts`: heads, MLPs or layers, or the heads whose links are cut. `change` is the mean over the
    report's tokens, `error` its standard error over them (None for a single token). `own`: by how
    much what the model predicts of an answer changed, and of the token that it is told from.
    """

    parts: tuple[Part, ...]
    change: float
    error: float | None = None
    own: Outcome | None = None

    @property
    def heads(self) -> tuple[Head, ...]:
        """Those of the parts that are heads."""
        return tuple(
            Head(part.layer, part.head)
            for part in self.parts
            if part.layer is not None and part.head is not None
        )


@dataclass(frozen=True)
class AblationReport:
    """The effects of ablations on one text.

    `capture`: the run, without patterns. `baseline`: what is measured without ablation. It is a
    log-probability, in nats: the mean over the `tokens` tokens that really followed, or that of
    `answer` after the last position, where its rank is `rank`, counted from 1, and `first` is the
    likeliest. With `versus`, it is the difference of the logits of the two.
    `cut`: the links that are removed; None where outputs are replaced by `replacement`.
    `lines`: how many texts it is the mean of, where it is one; then every error is that of a mean
    over them, and `capture` the run of one of them. `own_answers`: each of these texts had an
    answer of its own.
    """

    capture: Capture
    replacement: Replacement
    baseline: float
    tokens: int
    effects: Sequence[Effect]
    answer: Candidate | None = None
    versus: Candidate | None = None
    rank: int | None = None
    first: Candidate | None = None
    cut: LinkNames | None = None
    lines: int | None = None
    own_answers: bool = False
    differences: bool = False
    """Whether the baseline is a difference of logits."""

    @property
    def strongest(self) -> Sequence[Effect]:
        """The effects, the largest first."""
        return sorted(self.effects, key=lambda effect: -abs(effect.change))


@dataclass(frozen=True)
class BeforeAfter:
    """The next tokens with and without the parts of one effect.

    `answer`: the probabilities of the report's answer before and after, where it has one.
    """

    report: AblationReport
    before: NextTokens
    after: NextTokens
    answer: tuple[float, float] | None = None

    @property
    def capture(self) -> Capture:
        """The run, without patterns."""
        return self.report.capture


Found: TypeAlias = AblationReport | BeforeAfter
"""What ablating parts one at a time finds, or together."""


# The effect of ablations on what a model predicts.


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
