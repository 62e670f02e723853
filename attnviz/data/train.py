"""Training a model on a user's own text: the user's choices, and how it went."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """The sizes of the model, and the settings of its training.

    `context` and `vocab` count tokens; `batch` counts windows of `context` tokens, for each of
    the two workers; `lr` is the highest learning rate. Every `keep_every` steps, at step 0 and at
    the last one, the model is kept in a folder of its own; None keeps none.
    """

    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    context: int = 128
    vocab: int = 1024
    max_steps: int = 2000
    batch: int = 32
    lr: float = 2e-3
    seed: int = 0
    keep_every: int | None = None

    def keeps(self, step: int) -> bool:
        """Whether the model is kept as it is after this step."""
        if self.keep_every is None:
            return False
        return step % self.keep_every == 0 or step == self.max_steps


@dataclass(frozen=True)
class TrainingProgress:
    """The state of a training after a shard of steps.

    `loss` (nats per token) and `entropy` (nats) are means over the shard; `tokens` and `seconds`
    count from the beginning, over interruptions.
    """

    step: int
    tokens: int
    seconds: float
    loss: float
    entropy: float


UNTRAINED = TrainingProgress(step=0, tokens=0, seconds=0.0, loss=0.0, entropy=0.0)
"""Before the first step; nothing was measured on the training text."""


@dataclass(frozen=True)
class Point:
    """A point of the loss curve, the first that of `UNTRAINED`; `held_out` in bits per byte."""

    progress: TrainingProgress
    held_out: float


@dataclass(frozen=True)
class Outcome:
    """The best held-out loss and the trigram model's, in bits per byte, and the loss curve.

    `predicted` is the number of held-out tokens that the losses are over.
    """

    held_out: float
    trigram: float
    points: tuple[Point, ...]
    tokens_per_byte: float
    predicted: int

    def bits_per_byte(self, point: Point) -> float:
        """The training loss in bits per byte, by the number of tokens in the held-out text."""
        return point.progress.loss / math.log(2) * self.tokens_per_byte
