"""Head metrics: numbers that describe what each head does, and how they were measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, sqrt
from statistics import fmean
from typing import Literal, TypeAlias, get_args

import numpy as np

from attnviz.data.capture import Capture
from attnviz.data.head import Head

Metric: TypeAlias = Literal[
    "entropy", "normalised", "distance", "previous", "first", "self", "duplicate", "induction"
]
METRICS: tuple[str, ...] = get_args(Metric)
"""The names of all metrics; `docs/metrics.md` defines them."""
RoleName: TypeAlias = Literal[
    "induction", "duplicate token", "previous token", "self", "sink", "broad"
]


@dataclass(frozen=True)
class Estimate:
    """A mean, NaN where nothing could be measured; `error` is its standard error over samples."""

    mean: float
    error: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """The mean of some samples, at least one."""
        error = float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else None
        return cls(fmean(values), error)


def descending(value: float) -> float:
    """What to sort by, so that the largest value comes first and what was not measured last."""
    return inf if isnan(value) else -value


@dataclass(frozen=True)
class Role:
    """What a head is called when a metric reaches a threshold: `induction`, as induction ≥ 0.4.

    `rows`: how many rows must be able to show it. With fewer, a head would reach the threshold by
    chance.
    """

    name: str
    metric: str
    least: float
    rows: int = 1


@dataclass(frozen=True)
class HeadMetrics:
    """All metrics of a head.

    `role` is None where no threshold was reached, over enough rows; `named` holds the behaviours
    that the model's card names the head for.
    """

    head: Head
    metrics: Mapping[str, Estimate]
    role: Role | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeadReport:
    """The metrics of a model's heads, over a text or a probe.

    `capture` is the run that was measured, without its patterns; `probe` names the convention by
    which a probe was measured, and is empty for a text; `sinks` of all `measured` heads put
    more than 0.3 of their weight on the first token; `heads` may be some of them. `untold` are the
    roles that were measured over too few rows, and over how many.
    """

    capture: Capture
    heads: Sequence[HeadMetrics]
    sinks: int
    measured: int
    probe: str = ""
    untold: Sequence[tuple[Role, int]] = ()
