"""Ablation: what a model predicts without some heads, and how much worse that is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.data.blocks import FloatArray
from attnviz.data.capture import Capture
from attnviz.data.head import Head
from attnviz.data.predict import Candidate, NextTokens

Ablated: TypeAlias = tuple[Head, ...]
"""The heads whose output is replaced in one run; empty: the model as it is."""
Replacement: TypeAlias = Literal["zero", "mean"]
"""What replaces a head's output at every position: zero, or its mean over the positions."""


@dataclass(frozen=True, eq=False)
class AblatedRun:
    """What a model predicts with the heads of one ablation replaced.

    `index`: the number of the ablation among those of the run. `followed` (n - 1): the
    log-probability, in nats, of the token that follows each position but the last; empty where
    it was not wanted. `last` (V): the logits after the last position.
    """

    index: int
    followed: FloatArray
    last: FloatArray


RunConsumer: TypeAlias = Callable[[AblatedRun], None]


@dataclass(frozen=True)
class Effect:
    """The effect of ablating some heads on a log-probability, in nats; negative means worse.

    `change` is the mean over the report's tokens, `error` its standard error over them (None for
    a single token).
    """

    heads: Ablated
    change: float
    error: float | None = None


@dataclass(frozen=True)
class AblationReport:
    """The effects of ablations on one text.

    `capture`: the run, without patterns. `baseline`: the log-probability, in nats, without
    ablation: the mean over the `tokens` tokens that really followed, or that of `answer` after
    the last position, where its rank is `rank`, counted from 1, and `first` is the likeliest.
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
    rank: int | None = None
    first: Candidate | None = None
    lines: int | None = None
    own_answers: bool = False

    @property
    def strongest(self) -> Sequence[Effect]:
        """The effects, the largest first."""
        return sorted(self.effects, key=lambda effect: (-abs(effect.change), effect.heads))


@dataclass(frozen=True)
class BeforeAfter:
    """The next tokens with and without the heads of one effect.

    `answer`: the probabilities of the report's answer before and after, where it has one.
    """

    report: AblationReport
    before: NextTokens
    after: NextTokens
    answer: tuple[float, float] | None = None
