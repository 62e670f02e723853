"""Ablation: what a model predicts without some of its parts, and how much worse that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture
from attnviz.records.heads import Head
from attnviz.records.interventions import Candidate, Outcome, Replacement
from attnviz.records.parts import Part
from attnviz.records.predict import NextTokens


@dataclass(frozen=True)
class LinkNames:
    """Links that are cut, by the names of their queries and keys.

    `renormalise`: the weights that are left sum to 1 again. `number`: how many these are in a text,
    of each head; 0 where nothing was run yet.
    """

    query: str
    key: str
    renormalise: bool = False
    number: int = 0


def link_named(name: str, *, renormalise: bool = False) -> LinkNames:
    """The links that `QUERY:KEY` names.

    Raises:
        UsageError: it is no such pair.
    """
    query, colon, key = name.partition(":")
    if not (colon and query and key) or ":" in key:
        raise UsageError(
            f"{option('cut', repr(name))} is not QUERY:KEY",
            "give two tokens, as in creature:blue; one that has a colon, by its position",
        )
    return LinkNames(query, key, renormalise)


@dataclass(frozen=True)
class Effect:
    """The effect of ablating some parts on what is measured; negative means worse.

    `parts`: heads, MLPs or layers, or the heads whose links are cut. `change` is the mean over the
    report's tokens, `error` its standard error over them (None for a single token). `own`: by how
    much what the model predicts of an answer changed, and of the token that it is told from.
    """

    parts: tuple[Part, ...]
    change: float
    error: float | None = None
    own: Outcome | None = None

    @property
    def heads(self) -> tuple[Head, ...]:
        """Those of the parts that are heads."""
        return tuple(
            Head(part.layer, part.head)
            for part in self.parts
            if part.layer is not None and part.head is not None
        )


@dataclass(frozen=True)
class AblationReport:
    """The effects of ablations on one text.

    `capture`: the run, without patterns. `baseline`: what is measured without ablation. It is a
    log-probability, in nats: the mean over the `tokens` tokens that really followed, or that of
    `answer` after the last position, where its rank is `rank`, counted from 1, and `first` is the
    likeliest. With `versus`, it is the difference of the logits of the two.
    `cut`: the links that are removed; None where outputs are replaced by `replacement`.
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
    versus: Candidate | None = None
    rank: int | None = None
    first: Candidate | None = None
    cut: LinkNames | None = None
    lines: int | None = None
    own_answers: bool = False
    differences: bool = False
    """Whether the baseline is a difference of logits."""

    @property
    def strongest(self) -> Sequence[Effect]:
        """The effects, the largest first."""
        return sorted(self.effects, key=lambda effect: -abs(effect.change))


@dataclass(frozen=True)
class BeforeAfter:
    """The next tokens with and without the parts of one effect.

    `answer`: the probabilities of the report's answer before and after, where it has one.
    """

    report: AblationReport
    before: NextTokens
    after: NextTokens
    answer: tuple[float, float] | None = None

    @property
    def capture(self) -> Capture:
        """The run, without patterns."""
        return self.report.capture


Found: TypeAlias = AblationReport | BeforeAfter
"""What ablating parts one at a time finds, or together."""
