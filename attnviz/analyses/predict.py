"""Next tokens from logits: the likeliest candidates, and the rank of the true one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from attnviz.data.heads import Estimate
from attnviz.data.outcome import Candidate
from attnviz.data.predict import LogitRows, NextTokens, Prediction, PredictionMean


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
    sure = [fmean(map(_likeliest, _asked(prediction))) for prediction in predictions]
    followed = [
        fmean(each.followed.probability for each in prediction.each if each.followed)
        for prediction in predictions
        if prediction.each and not prediction.fills
    ]
    name = predictions[0].capture.model.name
    mean = Estimate.of(followed) if followed else None
    fills = predictions[0].fills
    asked = [prediction.asked for prediction in predictions if prediction.asked]
    return PredictionMean(
        *(name, len(predictions), Estimate.of(sure), mean),
        asked[0].question if asked else None,
        Estimate.of([each.outcome.measured for each in asked]) if asked else None,
        fills,
    )


def _asked(prediction: Prediction) -> Sequence[NextTokens]:
    """What was asked of a text: the next token, or that of each mask."""
    return [*prediction.each, prediction.last] if prediction.fills else [prediction.last]


def _likeliest(next_tokens: NextTokens) -> float:
    return next_tokens.candidates[0].probability


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Log-probabilities in nats from logits (..., V), computed in float64."""
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    logs: NDArray[np.float64] = exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    return logs
