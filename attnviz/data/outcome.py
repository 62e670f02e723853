"""What is measured after a text: an answer, alone or rather than another token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from attnviz.errors import in_quotes


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
        """Both tokens, with these probabilities."""
        first, *other = probabilities
        versus = replace(self.versus, probability=other[0]) if self.versus else None
        return Question(replace(self.answer, probability=first), versus)

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of both."""
        return tuple(each.id for each in (self.answer, self.versus) if each)


Measure: TypeAlias = Literal["tokens", "answer", "difference"]
"""What effects are told in: the mean log-probability of the tokens that followed, that of an answer
after the text, or the difference of two logits."""


class Outcome(NamedTuple):
    """What a run predicts of the tokens of a question, or by how much two runs differ in it.

    Logits, and log-probabilities in nats; NaN where the question has no `versus`.
    """

    answer_logit: float
    answer_log_probability: float
    versus_logit: float = np.nan
    versus_log_probability: float = np.nan

    @property
    def measured(self) -> float:
        """The number that effects are told in.

        The log-probability of the answer; with a `versus` the difference of both logits, which
        equals that of their log-probabilities, as softmax takes the same from each.
        """
        if np.isnan(self.versus_logit):
            return self.answer_log_probability
        return self.answer_logit - self.versus_logit

    def less(self, other: "Outcome") -> "Outcome":
        """The difference of each number."""
        return Outcome(*(a - b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Asked:
    """What a model predicts of a question; `ranks` of its tokens, counted from 1, the likeliest."""

    question: Question
    outcome: Outcome
    ranks: tuple[int, ...]
