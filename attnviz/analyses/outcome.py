"""What a run predicts of the tokens of a question."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from attnviz.analyses.predict import log_softmax
from attnviz.data.blocks import FloatArray
from attnviz.data.interventions import ChangedRun
from attnviz.data.outcome import Outcome
from attnviz.errors import ModelError, option


def outcome_of(last: FloatArray, ids: Sequence[int]) -> Outcome:
    """The logits and log-probabilities of one token or two.

    Args:
        last: the logits (V) after the last position.
        ids: of the answer, and of the token that it is told from.

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
