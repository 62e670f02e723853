"""The sparse linear fit of ContextCite, and the scale of probabilities that it is made on."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Doubles: TypeAlias = NDArray[np.float64]


def logit(log_probability: float) -> float:
    """The logit ln(p / (1 − p)); p = 1 counts as the nearest float32 below 1."""
    sure = min(log_probability, -float(np.finfo(np.float32).epsneg))
    return float(sure - np.log(-np.expm1(sure)))


def lasso(design: Doubles, values: Doubles, alpha: float) -> tuple[Doubles, float]:
    """The weights (d) and the intercept that minimise ‖y − b − Xw‖² / 2n + α‖w·σ‖₁.

    Coordinate descent on columns that are scaled to mean 0 and deviation 1 (their own is σ).

    Args:
        design: (n, d).
        values: (n).
        alpha: the strength of the penalty.
    """
    mean, scale = design.mean(axis=0), design.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    columns, left = (design - mean) / scale, values - values.mean()
    weights = np.zeros(design.shape[1])
    for _ in range(10_000):
        before = weights.copy()
        for j, column in enumerate(columns.T):
            left = left + column * weights[j]
            slope = column @ left / len(left)
            weights[j] = np.sign(slope) * max(abs(slope) - alpha, 0.0)
            left = left - column * weights[j]
        if np.abs(weights - before).max(initial=0.0) < 1e-10:
            break
    weights = weights / scale
    return weights, float(values.mean() - mean @ weights)
