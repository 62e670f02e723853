"""How well a model predicts a text, for what its card says of the texts of its world."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.records.capture import TextLoss
from attnviz.records.predict import LogitRows, log_softmax
from attnviz.records.tokens import Token


@dataclass
class SumLoss:
    """Consumes logits, and sums the loss of the tokens that followed, in nats."""

    ids: Sequence[int]
    nats: float = 0.0

    def __call__(self, rows: LogitRows) -> None:
        inside = rows.positions < len(self.ids) - 1
        followed = np.array(self.ids, np.int64)[rows.positions[inside] + 1]
        logs = log_softmax(rows.logits[inside])  # (rows, V)
        self.nats -= float(logs[np.arange(len(followed)), followed].sum())


def text_loss(tokens: Sequence[Token], nats: float, limit: float) -> TextLoss:
    """The loss over the characters of the tokens that were predicted: all but the first."""
    predicted = tokens[1:]
    characters = predicted[-1].end - predicted[0].start if predicted else 0
    return TextLoss(nats, characters, limit)
