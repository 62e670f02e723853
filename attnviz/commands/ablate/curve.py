"""The loss at each position of a text, with some parts and without them, and what context gains."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.commands.ablate.record import AblationReport, TokenEffects, mean_of
from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.metrics import Estimate

AROUND = 5
"""The most positions on each side of one whose losses count for an in-context score, too."""


@dataclass(frozen=True)
class ScorePositions:
    """The positions between which an in-context score is taken, counted from 0 as in rows.

    `context`: the most tokens that the model reads, where known.

    Those of Olsson et al. 2022, "In-context Learning and Induction Heads", arXiv 2209.11895.
    """

    early: int = 50
    late: int = 500
    context: int | None = None

    @property
    def around(self) -> int:
        """How many positions on each side count, too; both ranges stay apart."""
        return min(AROUND, (self.late - self.early - 1) // 2)


def between_named(name: str | None, context: int | None) -> ScorePositions:
    """The positions of `EARLY:LATE`; those of the paper for None.

    Raises:
        UsageError: it names no two positions, or one that the model never reads.
    """
    if name is None:
        return ScorePositions(context=context)
    found = re.fullmatch(r"(\d{1,9}):(\d{1,9})", name.strip())
    wrong = "" if found else f"{option('between', repr(name))} is not EARLY:LATE"
    between = ScorePositions(*map(int, found.groups())) if found else ScorePositions()
    if not between.early:
        wrong = "nothing predicts the token at position 0, so it has no loss"
    elif between.early >= between.late:
        wrong = f"position {between.early:,} does not come before {between.late:,}"
    if wrong:
        raise UsageError(wrong, "give two positions, the earlier one first, as in 50:500")
    if context is not None and between.late >= context:
        raise UsageError(
            f"position {between.late:,} is beyond the model's context of {context:,} tokens",
            f"name one up to {context - 1:,}",
        )
    return between


@dataclass(frozen=True)
class Losses:
    """The means of losses with all parts, and without some, and of the difference, in nats."""

    whole: Estimate
    without: Estimate
    change: Estimate

    @classmethod
    def of(cls, losses: FloatArray) -> "Losses":
        """Those of texts (texts, 2), without texts of NaN."""
        whole, without = losses[~np.isnan(losses).any(axis=1)].astype(np.float64).T
        every = (whole, without, without - whole)
        return cls(*(Estimate.of(each.tolist()) for each in every))


@dataclass(frozen=True, eq=False)
class LossCurve:
    """The loss of each token of some texts, with all parts and without those of one effect.

    `losses` (texts, 2, n): in nats, from position 1 on; with all parts, then without them; NaN
    where a text has no such token. `report`: the same as one mean over tokens, or over texts.
    """

    report: AblationReport
    losses: FloatArray
    between: ScorePositions = ScorePositions()

    @property
    def capture(self) -> Capture:
        """The run, without patterns."""
        return self.report.capture

    @property
    def positions(self) -> Sequence[int]:
        """Every position that a text has."""
        there = ~np.isnan(self.losses[:, 0]).all(axis=0)
        return (np.flatnonzero(there) + 1).tolist()

    def over(self, first: int, last: int) -> FloatArray:
        """The mean losses of each text over the positions from `first` to `last` (texts, 2).

        NaN for a text that has none of them.
        """
        part = self.losses[:, :, max(first, 1) - 1 : last].astype(np.float64)
        means = np.full(part.shape[:2], np.nan, np.float32)
        there = ~np.isnan(part[:, 0]).all(axis=1)
        means[there] = np.nanmean(part[there], axis=2)
        return means

    def at(self, first: int, last: int | None = None) -> Losses:
        """The losses at one position, or over several: the mean of the texts' means."""
        return Losses.of(self.over(first, last or first))

    @property
    def in_context(self) -> Losses:
        """The in-context score: the loss around the late position less that around the early one.

        The more the context helps, the further it is below 0. Of texts that have both positions;
        NaN if none does.
        """
        around, every = self.between.around, (self.between.early, self.between.late)
        near, far = (self.over(position - around, position + around) for position in every)
        both = [self.over(position, position) for position in every]
        return Losses.of(np.where(np.isnan(both).any(axis=0), np.nan, far - near))


def curve_of(effects: TokenEffects, between: ScorePositions) -> LossCurve:
    """The curve of a text, from its tokens' effects without all parts together."""
    before = np.stack([effects.before, effects.before + effects.changes[0]])
    losses = np.full((1, 2, effects.first - 1 + before.shape[1]), np.nan, np.float32)
    losses[0, :, effects.first - 1 :] = -before
    return LossCurve(effects.report, losses, between)


def mean_curve(curves: Sequence[LossCurve]) -> LossCurve:
    """The curve of several texts."""
    n = max(each.losses.shape[2] for each in curves)
    padded = [
        np.pad(each.losses, [(0, 0), (0, 0), (0, n - each.losses.shape[2])], constant_values=np.nan)
        for each in curves
    ]
    report = mean_of([each.report for each in curves])
    return LossCurve(report, np.concatenate(padded), curves[0].between)
