"""The effect of patched vectors, as a share of the distance between two texts."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

from attnviz.analyses.outcome import mean_outcome
from attnviz.data.heads import Estimate
from attnviz.data.interventions import Site
from attnviz.data.outcome import Outcome
from attnviz.data.patch import PatchEffect, PatchReport
from attnviz.errors import InputError


def effect_of(
    site: Site, position: int | None, before: Outcome, ends: Outcome, after: Outcome
) -> PatchEffect:
    """The effect on one text; `ends`: what the source predicts."""
    change = after.measured - before.measured
    share = change / (ends.measured - before.measured)
    return PatchEffect(site, position, Estimate(change), Estimate(share), after.less(before))


def mean_of(reports: Sequence[PatchReport]) -> PatchReport:
    """The mean over several pairs of texts, with standard errors.

    Raises:
        InputError: single positions are patched, and the texts have other numbers of tokens.
    """
    first = reports[0]
    if any(effect.position is not None for effect in first.effects):
        lengths = sorted({len(report.places) for report in reports})
        if len(lengths) > 1 or any(r.positions != first.positions for r in reports):
            raise InputError(
                f"the texts have {lengths[0]} to {lengths[-1]} tokens, so that their positions "
                "have no mean",
                "give texts of one pattern, or patch heads",
            )
    gaps = [report.ends.measured - report.before.measured for report in reports]
    effects = []
    for same in zip(*(report.effects for report in reports), strict=True):
        changes = [effect.change.mean for effect in same]
        effects.append(
            PatchEffect(
                same[0].site,
                same[0].position,
                Estimate.of(changes),
                ratio(changes, gaps),
                mean_outcome([effect.own for effect in same]),
            )
        )
    return replace(
        first,
        before=mean_outcome([report.before for report in reports]),
        ends=mean_outcome([report.ends for report in reports]),
        effects=effects,
        lines=len(reports),
        own_answers=len({report.question.ids for report in reports}) > 1,
    )


def ratio(values: Sequence[float], sizes: Sequence[float]) -> Estimate:
    """The ratio of two means, with its standard error (Cochran 1977, equation 2.39).

    A mean of ratios would let a pair decide whose size is next to nothing.
    """
    size = fmean(sizes)
    found = fmean(values) / size
    if len(values) < 2:
        return Estimate(found)
    rest = [value - found * own for value, own in zip(values, sizes, strict=True)]
    return Estimate(found, stdev(rest) / sqrt(len(rest)) / abs(size))
