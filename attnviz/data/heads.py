"""What heads do, as numbers: one record for each head, and how they were measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnviz.data.capture import Capture
from attnviz.data.head import Head

SCORES = (
    *("entropy", "normalised", "distance"),
    *("previous", "first", "self", "duplicate", "induction"),
)
"""The names of all scores; `docs/metrics.md` defines each."""


@dataclass(frozen=True)
class Estimate:
    """A mean, NaN where nothing could be measured; `error` its standard error over samples."""

    mean: float
    error: float | None = None


@dataclass(frozen=True)
class Role:
    """What a head is taken for, as it passed a threshold: `induction`, as induction ≥ 0.4."""

    name: str
    score: str
    least: float


@dataclass(frozen=True)
class HeadScores:
    """All scores of a head; `role` None where it passed no threshold.

    `named` are the behaviours that the model's card names the head for.
    """

    head: Head
    scores: Mapping[str, Estimate]
    role: Role | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeadReport:
    """The scores of some heads of a model, over a text or a probe.

    `capture` is the one that was run, without its patterns; `probe` says by which convention
    a probe was measured, and is empty for a text; `sinks` is the share of heads that have more
    than 0.3 of their weight on the first token.
    """

    capture: Capture
    heads: Sequence[HeadScores]
    sinks: float
    probe: str = ""
