"""The choices of a user who trains a model on their own text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """The sizes of the model, and the settings of its training.

    `context` and `vocab` count tokens; `batch` counts windows of `context` tokens, for each of
    the two workers; `lr` is the highest learning rate.
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
