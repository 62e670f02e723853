"""Patching effects: how far vectors of another text move a prediction towards that text's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from math import nan
from statistics import fmean

import numpy as np

from attnviz.errors import InputError, option
from attnviz.records.capture import Capture
from attnviz.records.grounding import correlation_of_ranks
from attnviz.records.interventions import (
    BothRuns,
    Edit,
    Effect,
    OfEffects,
    Site,
    SiteKind,
    mean_effects,
    over_texts,
)
from attnviz.records.metrics import Estimate
from attnviz.records.paths import MlpsOnPaths, Receiver
from attnviz.records.predict import Outcome, Question, mean_outcome
from attnviz.records.tokens import Token


@dataclass(frozen=True)
class PatchEffect(Effect[Site]):
    """The effect of the vectors of a site, or of several at once, taken from the source.

    `position`: the one position at which they are taken, or None for all that are patched. `share`:
    the change as a share of the distance between both texts; 0 is the text and 1 the source.
    `receiver`: the end of the path on which the vectors act, or None for all. `exact`: the change
    itself, beside one that is estimated.
    """

    position: int | None = None
    share: Estimate = Estimate(nan)
    receiver: Receiver | None = None
    exact: Estimate | None = None

    @property
    def size(self) -> float:
        """That of the estimate or of the exact change: what is large in either is looked at."""
        return max(abs(each.mean) for each in (self.exact, self.change) if each)

    @property
    def site(self) -> Site:
        """The first site, or the only one."""
        return self.parts[0]


@dataclass(frozen=True)
class PatchReport(OfEffects[PatchEffect]):
    """A text, run with vectors of another.

    Attributes:
        capture, source: both runs, without patterns.
        kind: the kind of the sites.
        question: the question that is measured.
        before, ends: the predictions of its tokens after the text and after the source.
        places: (n) for each position of the text the position of the source whose vectors it
            takes, or None where it keeps its own.
        positions: the positions that are patched; `named`: whether by their names.
        lines: the number of pairs of texts of a mean. Every error is then that of a mean over
            them, and captures, places and positions are those of the first.
        patched: the fewest and the most positions that are patched in a text, or None for all.
        own_answers: whether the pairs have questions of their own.
        varied: the positions at which the pairs have several tokens.
        receivers: the ends of the paths that are patched, with the MLPs on them as `path_mlps`
            says; without any, the vectors act on all that reads them.
        fast: whether changes are estimated to first order.
        against: the lines of the pairs that no share is over, as their source is on the other
            side of the text than the mean of all.
    """

    capture: Capture
    source: Capture
    kind: SiteKind
    question: Question
    before: Outcome
    ends: Outcome
    places: tuple[int | None, ...]
    positions: tuple[int, ...]
    effects: Sequence[PatchEffect]
    named: bool = False
    lines: int | None = None
    patched: tuple[int, int] | None = None
    own_answers: bool = False
    varied: frozenset[int] = frozenset()
    receivers: tuple[Receiver, ...] = ()
    path_mlps: MlpsOnPaths = "recompute"
    fast: bool = False
    against: tuple[int, ...] = ()

    @property
    def by_position(self) -> bool:
        """Whether one position is patched after the other, rather than all at once."""
        return self.kind != "head" and not self.receivers

    @property
    def by_receiver(self) -> "Sequence[PatchReport]":
        """A report for each receiver with a sender before it."""
        if not self.receivers:
            return [self]
        reports = [
            replace(self, receivers=(to,), effects=[e for e in self.effects if e.receiver == to])
            for to in self.receivers
        ]
        return [report for report in reports if report.effects]

    @cached_property
    def ranks_agree(self) -> float | None:
        """Spearman's ρ of estimated and exact changes; None of few, or without exact ones."""
        exact = [effect.exact.mean for effect in self.effects if effect.exact]
        changes = [effect.change.mean for effect in self.effects if effect.exact]
        return correlation_of_ranks(np.array(changes), np.array(exact))

    def tokens_at(self, position: int) -> tuple[Token, Token]:
        """The token at a patched position, and the source's token whose vectors it takes."""
        place = self.places[position]
        assert place is not None
        return self.capture.query_tokens[position], self.source.query_tokens[place]

    @property
    def runs(self) -> tuple[Capture, Capture]:
        """The text and its source."""
        return self.capture, self.source


@dataclass(frozen=True)
class PatchedTogether(BothRuns[PatchReport]):
    """The next tokens of a text, and with vectors of several sites taken from the source at once.

    `report` has their one effect.
    """

    @property
    def runs(self) -> tuple[Capture, Capture]:
        """The text and its source."""
        return self.report.runs


def effect_of(edits: Sequence[Edit], before: Outcome, ends: Outcome, after: Outcome) -> PatchEffect:
    """The effect on one text; `ends`: the predictions of the source."""
    positions = edits[0].positions or ()
    one = len(positions) == len(edits) == 1 and edits[0].site.head is None
    change = after.measured - before.measured
    share = change / (ends.measured - before.measured)
    return PatchEffect(
        tuple(edit.site for edit in edits),
        Estimate(change),
        after.less(before),
        position=positions[0] if one else None,
        share=Estimate(share),
    )


def mean_of(reports: Sequence[PatchReport], lines: Sequence[int]) -> PatchReport:
    """The mean over several pairs of texts, with standard errors; `lines`: their numbers.

    Raises:
        InputError: the pairs are patched at different positions.
    """
    check_positions(reports)
    gaps = [report.ends.measured - report.before.measured for report in reports]
    higher = fmean(gaps) >= 0
    shared = [gap > 0 if higher else gap < 0 for gap in gaps]
    every = [report.effects for report in reports]

    def share_of(same: Sequence[PatchEffect]) -> Estimate:
        values = [effect.change.mean for effect in same]
        return Estimate.ratio(*(list(compress(each, shared)) for each in (values, gaps)))

    effects = [
        replace(
            mean,
            share=share_of(same),
            exact=Estimate.of([e.exact.mean for e in same if e.exact]) if mean.exact else None,
        )
        for mean, same in zip(mean_effects(every), zip(*every, strict=True), strict=True)
    ]
    numbers = [len(report.positions) for report in reports]
    everywhere = all(report.patched is None for report in reports)
    varied = (
        position
        for i, position in enumerate(reports[0].positions if reports[0].by_position else ())
        if len({tuple(t.id for t in r.tokens_at(r.positions[i])) for r in reports}) > 1
    )
    return over_texts(
        reports,
        before=mean_outcome([report.before for report in reports]),
        ends=mean_outcome([report.ends for report in reports]),
        effects=effects,
        patched=None if everywhere else (min(numbers), max(numbers)),
        varied=frozenset(varied),
        against=tuple(line for line, own in zip(lines, shared, strict=True) if not own),
    )


def check_positions(reports: Sequence[PatchReport]) -> None:
    """Check that the positions of the pairs correspond.

    Named positions correspond by their order, others by their numbers.

    Raises:
        InputError: they do not correspond.
    """
    if not reports[0].by_position:
        return
    positions = {len(r.positions) if r.named else r.positions for r in reports}
    if len(positions) > 1:
        raise InputError(
            "the pairs are patched at different positions, so they have no mean",
            f"give texts of one length, name positions with {option('queries')}, or patch heads",
        )
