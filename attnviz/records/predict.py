"""Next tokens: the logits that a model hands over, and the predictions read from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import ModelError, option
from attnviz.records.capture import Capture, FloatArray, IntArray
from attnviz.records.heads import Head
from attnviz.records.interventions import Candidate, ChangedRun, Outcome, PredictedAnswer, Question
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Shares


@dataclass(frozen=True, eq=False)
class LogitRows:
    """Logits (rows, V) for the token after each of the `positions` (rows).

    `layer`: the logits as if the model stopped after this layer; None is the whole model. The
    array may be used only during the call.
    """

    layer: int | None
    positions: IntArray
    logits: FloatArray


LogitConsumer: TypeAlias = Callable[[LogitRows], None]


@dataclass(frozen=True)
class NextTokens:
    """The candidates for the token after one position, the likeliest first.

    `layer`: the prediction as if the model stopped there; None is the whole model. `followed` is
    the token that really follows, and `rank` its rank, counted from 1; both are None at the end
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

    `shares`: the one sum; `bias` of the output layer is not part of it. `versus`: the other token.
    """

    token: Candidate
    versus: Candidate | None
    shares: Shares
    bias: float

    @property
    def logit(self) -> float:
        return float(self.shares.total[0]) + self.bias


@dataclass(frozen=True)
class Prediction:
    """The next tokens after the last position of a text, and what led the model to them.

    `each`: the next tokens after every position, where wanted; `lens`: those after each layer,
    where wanted; `evidence`: the strongest links of the last position, layer by layer;
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


@dataclass(frozen=True)
class PredictionMean:
    """How sure a model is, over several texts; errors are those of means over texts.

    `model`: its name. `texts`: how many. `likeliest`: the probability of the likeliest next token
    after a text, or (`fills`) in place of its masks; `followed`: the probability of the tokens that
    really followed within it, where wanted. `measured`: the mean of what is measured of a
    `question`, where one was asked.
    """

    model: str
    texts: int
    likeliest: Estimate
    followed: Estimate | None = None
    question: Question | None = None
    measured: Estimate | None = None
    fills: bool = False


# Next tokens from logits: the likeliest candidates, and the rank of the true one.


@dataclass
class KeepNextTokens:
    """Consumes logits, and keeps the `top` likeliest next tokens of each position.

    `ids` are the tokens of the text; `label` names a token of the vocabulary, and `exact` gives its
    own text.
    """

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
    asked = [prediction.asked for prediction in predictions if prediction.asked]
    return PredictionMean(
        model=predictions[0].capture.model.name,
        texts=len(predictions),
        likeliest=Estimate.of(sure),
        followed=Estimate.of(followed) if followed else None,
        question=asked[0].question if asked else None,
        measured=Estimate.of([each.outcome.measured for each in asked]) if asked else None,
        fills=fills,
    )


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Log-probabilities in nats from logits (..., V), computed in float64."""
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    logs: NDArray[np.float64] = exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    return logs


# The prediction of a run for the tokens of a question.


def outcome_of(last: FloatArray, ids: Sequence[int]) -> Outcome:
    """The logits and log-probabilities of one token or two.

    `last`: the logits (V) after the last position.

    Raises:
        ModelError: the logits are not numbers.
    """
    if not np.isfinite(last[list(ids)]).all():
        raise ModelError(
            "the model's predictions are not numbers (NaN)",
            f"run it with {option('dtype', 'float32')}, or use another model",
        )
    logs = log_softmax(last)
    return Outcome(*(float(number) for id_ in ids for number in (last[id_], logs[id_])))


@dataclass
class KeepOutcomes:
    """Consumes runs, and keeps what each predicts of these tokens."""

    ids: Sequence[int]
    kept: dict[int, Outcome] = field(default_factory=dict)

    def __call__(self, run: ChangedRun) -> None:
        self.kept[run.index] = outcome_of(run.last, self.ids)


def mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean of each number; NaN where one of them is."""
    return Outcome(*np.mean(np.array(outcomes, np.float64), axis=0).tolist())
