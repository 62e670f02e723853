"""Interventions: what is replaced or removed in a run, and what the model predicts then."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from attnviz.errors import in_quotes
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head

SiteKind: TypeAlias = Literal["head", "attention", "mlp", "residual"]
Replacement: TypeAlias = Literal["zero", "mean"]
"""The replacement of an output: zero, or its mean over the positions of the text."""


class Site(NamedTuple):
    """A vector at each position of a run.

    `head`: z = pattern·v of head number `head`, as the output projection W_O is given it: past a
    gate (Qwen3-Next) or a norm (BitNet) where a model has one. `attention` and `mlp`: what a
    layer's attention or MLP adds to the stream, past a norm of its own (Gemma 2), without a factor
    that is the same for all (Granite). `residual`: the residual stream that arrives at a layer.
    """

    kind: SiteKind
    layer: int
    head: int | None = None


@dataclass(frozen=True)
class Edit:
    """The vectors of a site replaced, at some positions or at all (None).

    `by`: zero, their mean over all positions of the unchanged run, or what they are in the source.
    """

    site: Site
    by: Literal["zero", "mean", "source"]
    positions: tuple[int, ...] | None = None

    @property
    def layer(self) -> int:
        return self.site.layer


@dataclass(frozen=True)
class CutLink:
    """A link of a head removed: the query no longer takes the key's value.

    `renormalise`: the other weights of the row are what softmax makes of the other scores, and sum
    to 1 again; else they stay as they are.
    """

    head: Head
    query: int
    key: int
    renormalise: bool = False

    @property
    def layer(self) -> int:
        return self.head.layer


Intervention: TypeAlias = tuple[Edit | CutLink, ...]
"""All that is changed in one run; empty: the model as it is."""


@dataclass(frozen=True)
class SourceRun:
    """The tokens (n_s) from whose run vectors are taken.

    `places` (n): for each position of the text that is run, the position whose vectors it takes.
    """

    ids: Sequence[int]
    places: Sequence[int]


@dataclass(frozen=True, eq=False)
class ChangedRun:
    """The predictions of a model under one intervention.

    `index`: the number of the intervention among those of the run. `followed` (n - 1): the
    log-probability, in nats, of the token that follows each position but the last; empty where
    it was not wanted. `last` (V): the logits after the last position.
    """

    index: int
    followed: FloatArray
    last: FloatArray


RunConsumer: TypeAlias = Callable[[ChangedRun], None]


# What is measured after a text: an answer, alone or rather than another token.


@dataclass(frozen=True)
class Candidate:
    """A token that may come next.

    `label` is the token as a person reads it, `exact` its own text with its leading space; empty
    where it has none of its own (a special token, a part of a letter). `begins`: the word that was
    asked for, where it has several tokens and this is the first.
    """

    id: int
    label: str
    probability: float
    exact: str = ""
    begins: str = ""

    @property
    def quoted(self) -> str:
        """The exact text in quotes, or the label where there is no text."""
        return in_quotes(self.exact) if self.exact else self.label


@dataclass(frozen=True)
class Question:
    """The tokens that are measured after the last position: `answer`, rather than `versus`."""

    answer: Candidate
    versus: Candidate | None = None

    def likely(self, probabilities: Sequence[float]) -> "Question":
        first, *other = probabilities
        versus = replace(self.versus, probability=other[0]) if self.versus else None
        return Question(replace(self.answer, probability=first), versus)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in (self.answer, self.versus) if each)


Measure: TypeAlias = Literal["tokens", "answer", "difference"]
"""The unit of effects: the mean log-probability of the tokens that followed, that of an answer
after the text, or the difference of two logits."""


class Outcome(NamedTuple):
    """The prediction of a run for the tokens of a question, or the difference of two runs.

    Logits, and log-probabilities in nats; NaN where the question has no `versus`.
    """

    answer_logit: float
    answer_log_probability: float
    versus_logit: float = np.nan
    versus_log_probability: float = np.nan

    @property
    def measured(self) -> float:
        """The number in which effects are measured.

        The log-probability of the answer; with a `versus` the difference of both logits, which
        equals that of their log-probabilities, as softmax takes the same from each.
        """
        if np.isnan(self.versus_logit):
            return self.answer_log_probability
        return self.answer_logit - self.versus_logit

    def less(self, other: "Outcome") -> "Outcome":
        return Outcome(*(a - b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class PredictedAnswer:
    """The prediction for a question; `ranks` of its tokens, counted from 1, the likeliest."""

    question: Question
    outcome: Outcome
    ranks: tuple[int, ...]
