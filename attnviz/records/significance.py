"""Which of many effects differ from 0: p-values, corrected for how many were tested."""

from collections.abc import Sequence
from math import erfc, sqrt

from attnviz.records.metrics import Estimate

LEVEL = 0.05
"""The chance of even one false finding among all that are tested."""


def two_sided(estimate: Estimate) -> float:
    """The p-value of a mean against 0, by its standard error, which it needs.

    Normal approximation: the chance that a standard normal number is further from 0 than the mean
    is in standard errors.
    """
    assert estimate.error is not None
    if not estimate.error:
        return float(estimate.mean == 0)
    return erfc(abs(estimate.mean) / estimate.error / sqrt(2))


def holm(estimates: Sequence[Estimate]) -> list[float | None]:
    """Holm's step-down p-values of means against 0; None for all where they have no errors.

    With m tested, the i-th smallest p-value, from 0, is multiplied by m - i; none is below an
    earlier one, or above 1 (Holm 1979). Rejecting what is below a level keeps the chance of any
    false finding below it, however the effects depend on one another.
    """
    if any(estimate.error is None for estimate in estimates):
        return [None] * len(estimates)
    values = [two_sided(estimate) for estimate in estimates]
    corrected, least = [0.0] * len(values), 0.0
    for i, number in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, values[number] * (len(values) - i)))
        corrected[number] = least
    return list(corrected)
