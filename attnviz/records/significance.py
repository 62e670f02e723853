"""The effects that differ from 0: p-values, corrected for the number of tests."""

from collections.abc import Sequence
from math import exp, lgamma, log, log1p

from attnviz.records.metrics import Estimate

LEVEL = 0.05
"""The chance of even one false finding among all tests."""


MOST_TERMS = 10_000
"""Terms of the continued fraction; about the root of the larger parameter are needed."""
FEWEST = 5
"""With fewer samples nothing is tested: the test assumes normal samples, or enough that their mean
is nearly normal."""


def two_sided(estimate: Estimate, samples: int) -> float:
    """The p-value of a mean of samples against 0, by its standard error, which must be known.

    Student's t: the chance that a number of this distribution with `samples` - 1 degrees of freedom
    is further from 0 than the mean is in standard errors (Student 1908).
    """
    assert estimate.error is not None
    if not estimate.error:
        return float(estimate.mean == 0)
    freedom, t = samples - 1, estimate.mean / estimate.error
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction.

    DLMF 8.17.22, evaluated by the modified Lentz algorithm (Press et al. 2007, section 6.4).
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - incomplete_beta(b, a, 1 - x)
    upper, lower, value = 1.0, 0.0, 1.0
    for i in range(MOST_TERMS):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / (1 + term * lower)
        upper = 1 + term / upper
        value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    front = a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(front) / a * (value - 1)


def holm(estimates: Sequence[Estimate], samples: int) -> list[float | None]:
    """Holm's step-down p-values of means against 0; None for all with too few samples.

    With m tests, the i-th smallest p-value, from 0, is multiplied by m - i; none is below an
    earlier one, or above 1 (Holm 1979). Rejecting p-values below a level keeps the chance of any
    false finding below it, however the effects depend on one another.
    """
    if samples < FEWEST:
        return [None] * len(estimates)
    values = [two_sided(estimate, samples) for estimate in estimates]
    corrected, least = [0.0] * len(values), 0.0
    for i, number in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, values[number] * (len(values) - i)))
        corrected[number] = least
    return list(corrected)
