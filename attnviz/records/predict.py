"""Next tokens: a model's logits, and the predictions from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import ModelError, in_quotes, option
from attnviz.records.capture import Capture, FloatArray, IntArray
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Explained, Shares, aligned

# The measure after a text: an answer, or an answer rather than another token.


@dataclass(frozen=True)
class Candidate:
    """A token that may come next.

    `label` is the token as a person reads it, `exact` its own text with its leading space; empty
    if it has none (a special token, a part of a letter). `begins`: the word that was asked for, if
    it has several tokens and this is the first.
    """

    id: int
    label: str
    probability: float
    exact: str = ""
    begins: str = ""

    @property
    def quoted(self) -> str:
        """The exact text in quotes, or the label if it has no text."""
        return in_quotes(self.exact) if self.exact else self.label


Measure: TypeAlias = Literal["tokens", "answer", "difference"]
"""The unit of effects: the mean log-probability of the tokens that followed, that of an answer
after the text, or the difference of two logits."""


@dataclass(frozen=True)
class Question:
    """The tokens that are measured after the last position: `answer`, rather than `versus`."""

    answer: Candidate
    versus: Candidate | None = None

    def likely(self, last: FloatArray) -> "Question":
        """Add the probabilities of its tokens; `last`: the logits (V) after the text."""
        logs = log_softmax(last)
        answer, *other = (replace(t, probability=exp(logs[t.id])) for t in self.tokens)
        return Question(answer, other[0] if other else None)

    @property
    def tokens(self) -> tuple[Candidate, ...]:
        return tuple(each for each in (self.answer, self.versus) if each)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.tokens)

    @property
    def measure(self) -> Measure:
        return "answer" if self.versus is None else "difference"


class OfQuestion:
    """A record with a measure, such as a mean over texts, which may have `own_answers`."""

    question: Question | None
    own_answers: bool

    @property
    def measure(self) -> Measure:
        return self.question.measure if self.question else "tokens"

    @property
    def answer(self) -> Candidate | None:
        """The answer; None without one, or if texts have their own answers."""
        return self.question.answer if self.question and not self.own_answers else None

    @property
    def versus(self) -> Candidate | None:
        return self.question.versus if self.question and not self.own_answers else None


class Outcome(NamedTuple):
    """The prediction of a run for the tokens of a question, or the difference of two runs.

    Logits, and log-probabilities in nats; NaN if the question has no `versus`.
    """

    answer_logit: float
    answer_log_probability: float
    versus_logit: float = np.nan
    versus_log_probability: float = np.nan

    @property
    def measured(self) -> float:
        """The number in which effects are measured.

        The answer's log-probability; with a `versus` the difference of their logits.
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


@dataclass(frozen=True, eq=False)
class LogitRows:
    """Logits (rows, V) for the token after each of the `positions` (rows).

    `layer`: the logits as if the model stopped after this layer; None is the whole model. The
    array is valid only during the call.
    """

    layer: int | None
    positions: IntArray
    logits: FloatArray


LogitConsumer: TypeAlias = Callable[[LogitRows], None]


@dataclass(frozen=True)
class NextTokens:
    """The candidates for the token after one position, the likeliest first.

    `layer`: the prediction as if the model stopped there; None is the whole model. `followed` is
    the token that actually follows, and `rank` its rank, counted from 1; both are None at the end
    of the text.
    """

    position: int
    layer: int | None
    candidates: Sequence[Candidate]
    followed: Candidate | None = None
    rank: int | None = None


@dataclass(frozen=True)
class LastLink:
    """A link of the last position: its head, key position and weight."""

    head: Head
    key: int
    weight: float


@dataclass(frozen=True, eq=False)
class Attribution:
    """A logit, or the difference of two, as a sum over the parts of the model.

    `shares`: the sum; `bias` of the output layer is not part of it. `versus`: the other token.
    `roles` (n): each token's role, shared with other texts, if wanted; `by_position`: roles are
    positions.
    """

    token: Candidate
    versus: Candidate | None
    shares: Shares
    bias: float
    roles: tuple[str, ...] = ()
    by_position: bool = False
    explained: Explained | None = None

    @property
    def logit(self) -> float:
        return float(self.shares.total[0]) + self.bias


@dataclass(frozen=True, eq=False)
class AttributionMean:
    """Logits, or differences of two, of several texts as sums over the same parts.

    `token`, `versus`: None if texts have their own. `shares`: values (texts, parts); the source of
    a part is the number of a role. `logit`: its mean over the texts; `bias` is not in the sums.
    """

    measure: Measure
    token: Candidate | None
    versus: Candidate | None
    shares: Shares
    roles: tuple[str, ...]
    logit: Estimate
    bias: Estimate


@dataclass(frozen=True)
class Prediction:
    """The next tokens after the last position of a text, and the evidence for them.

    `each`: the next tokens after every position, where wanted; `lens`: those after each layer,
    where wanted; `evidence`: the strongest links of the last position, layer by layer, those to
    the tokens of an inset as one;
    `attribution`: the likeliest token's logit by part, where wanted. `asked`: what is predicted of
    an answer, where wanted. `fills`: the tokens stand at
    their positions, which hold masks: `last` is of the last mask, `each` of those before it.
    """

    capture: Capture
    last: NextTokens
    each: Sequence[NextTokens] = ()
    lens: Sequence[NextTokens] = ()
    evidence: Sequence[LastLink] = ()
    attribution: Attribution | None = None
    asked: PredictedAnswer | None = None
    fills: bool = False

    @property
    def measure(self) -> Measure:
        return self.asked.question.measure if self.asked else "tokens"


@dataclass(frozen=True)
class PredictionMean:
    """A model's certainty over several texts; errors are those of means over texts.

    `model`: its name. `texts`: their number. `likeliest`: the probability of the likeliest next
    token after a text, or (`fills`) in place of its masks; `followed`: the probability of the
    tokens that actually followed within it, if wanted. `measured`: the mean measure of an answer,
    if one was asked for; `answer` and `versus` are None if texts have their own. `attribution`:
    the logits by part, if wanted. `classes`: of images, in place of next tokens.
    """

    model: str
    texts: int
    likeliest: Estimate
    followed: Estimate | None = None
    measure: Measure = "tokens"
    answer: Candidate | None = None
    versus: Candidate | None = None
    measured: Estimate | None = None
    fills: bool = False
    attribution: AttributionMean | None = None
    classes: bool = False

    @property
    def noun(self) -> str:
        """The noun for the items of the mean."""
        return "image" if self.classes else "text"


# Next tokens from logits: the likeliest candidates, and the rank of the true one.


@dataclass
class KeepNextTokens:
    """Consumes logits, and keeps the `top` likeliest next tokens of each position of a text."""

    ids: Sequence[int]
    top: int
    label: Callable[[int], str]
    exact: Callable[[int], str] = lambda id_: ""
    next_tokens: list[NextTokens] = field(default_factory=list)

    def __call__(self, rows: LogitRows) -> None:
        for position, logits in zip(rows.positions.tolist(), rows.logits, strict=True):
            self.next_tokens.append(self._after(position, rows.layer, log_softmax(logits)))

    def _after(self, position: int, layer: int | None, logs: NDArray[np.float64]) -> NextTokens:
        likeliest = np.argpartition(-logs, min(self.top, len(logs)) - 1)[: self.top]
        best = sorted(likeliest.tolist(), key=lambda id_: (-logs[id_], id_))
        candidates = [self._candidate(id_, logs) for id_ in best]
        if position + 1 >= len(self.ids):
            return NextTokens(position, layer, candidates)
        true = self.ids[position + 1]
        rank = int((logs > logs[true]).sum()) + 1
        return NextTokens(position, layer, candidates, self._candidate(true, logs), rank)

    def _candidate(self, id_: int, logs: NDArray[np.float64]) -> Candidate:
        return Candidate(id_, self.label(id_), float(np.exp(logs[id_])), self.exact(id_))


def mean_of(predictions: Sequence[Prediction]) -> PredictionMean:
    """The mean over several texts, with standard errors."""
    fills = predictions[0].fills
    sure = [
        fmean(each.candidates[0].probability for each in (*(one.each if fills else ()), one.last))
        for one in predictions
    ]
    followed = [
        fmean(each.followed.probability for each in prediction.each if each.followed)
        for prediction in predictions
        if prediction.each and not prediction.fills
    ]
    answers = [prediction.asked for prediction in predictions if prediction.asked]
    asked = _shared([each.question for each in answers])
    logits = [prediction.attribution for prediction in predictions if prediction.attribution]
    return PredictionMean(
        model=predictions[0].capture.model.name,
        classes=predictions[0].capture.image_alone,
        texts=len(predictions),
        likeliest=Estimate.of(sure),
        followed=Estimate.of(followed) if followed else None,
        measure=predictions[0].measure,
        answer=asked.answer if asked else None,
        versus=asked.versus if asked else None,
        measured=Estimate.of([each.outcome.measured for each in answers]) if answers else None,
        fills=fills,
        attribution=_mean_attribution(logits) if logits else None,
    )


def _shared(questions: Sequence[Question]) -> Question | None:
    """The question that all texts share; None without one, or if they have their own."""
    return questions[0] if len({each.ids for each in questions}) == 1 else None


def _mean_attribution(each: Sequence[Attribution]) -> AttributionMean:
    shared = _shared([Question(logit.token, logit.versus) for logit in each])
    shares, roles = aligned(
        [logit.shares for logit in each],
        [logit.roles for logit in each],
        by_position=each[0].by_position,
    )
    return AttributionMean(
        token=shared.answer if shared else None,
        versus=shared.versus if shared else None,
        measure="answer" if each[0].versus is None else "difference",
        shares=shares,
        roles=roles,
        logit=Estimate.of([logit.logit for logit in each]),
        bias=Estimate.of([logit.bias for logit in each]),
    )


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Log-probabilities in nats from logits (..., V), computed in float64."""
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    logs: NDArray[np.float64] = exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    return logs


# The prediction of a run for the tokens of a question.


def outcome_of(last: FloatArray, ids: Sequence[int]) -> Outcome:
    """The logits and log-probabilities of one token or two, from the `last` logits (V)."""
    if not np.isfinite(last[list(ids)]).all():
        raise ModelError(
            "the model's predictions are not numbers (NaN)",
            f"run it with {option('dtype', 'float32')}, or use another model",
        )
    logs = log_softmax(last)
    return Outcome(*(float(number) for id_ in ids for number in (last[id_], logs[id_])))


def mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean of each number; NaN if one of them is NaN."""
    return Outcome(*np.mean(np.array(outcomes, np.float64), axis=0).tolist())
