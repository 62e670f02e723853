"""Heads ablated: what a model says without them, and how much that is worse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.data.capture import Capture, FloatArray
from attnviz.data.head import Head
from attnviz.data.predict import Candidate, Outlook

Ablated: TypeAlias = tuple[Head, ...]
"""Heads whose output is taken away in one run; none: the model as it is."""
Replacement: TypeAlias = Literal["zero", "mean"]
"""What a head's output becomes at every position: zero, or its mean over the positions."""


@dataclass(frozen=True, eq=False)
class AblatedRun:
    """What a model says with the heads of one ablation taken away.

    `index`: which ablation of those asked for. `followed` (n - 1): the log-probability, in
    nats, of the token that follows each position but the last; empty where it was not asked
    for. `last` (V): the logits after the last position.
    """

    index: int
    followed: FloatArray
    last: FloatArray


RunConsumer: TypeAlias = Callable[[AblatedRun], None]


@dataclass(frozen=True)
class Effect:
    """What ablating some heads does to a log-probability, in nats: negative where it hurts.

    `change` is a mean over `tokens` tokens, `error` its standard error over them (None of one).
    """

    heads: Ablated
    change: float
    error: float | None = None


@dataclass(frozen=True)
class AblationReport:
    """The effects of ablations on one text.

    `capture`: the one that was run, without patterns. `baseline`: the log-probability, in
    nats, before: the mean over the `tokens` tokens that really followed, or that of `answer`
    after the last position, which has this `rank`, counted from 1; `first` is the likeliest.
    """

    capture: Capture
    replacement: Replacement
    baseline: float
    tokens: int
    effects: Sequence[Effect]
    answer: Candidate | None = None
    rank: int | None = None
    first: Candidate | None = None


@dataclass(frozen=True)
class BeforeAfter:
    """What comes next with and without the heads of one effect; `answer` as in a report.

    `told` are the probabilities of the answer before and after, where one was asked for.
    """

    report: AblationReport
    before: Outlook
    after: Outlook
    told: tuple[float, float] | None = None
