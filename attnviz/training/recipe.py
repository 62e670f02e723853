"""The choices that decide the weights: the loop's recipe, and a user's plan as a recipe."""

from dataclasses import dataclass

import numpy as np

from attnviz.data.train import Plan
from attnviz.errors import UsageError, option
from attnviz.models.folder.config import GPTConfig
from attnviz.models.placement import SHARE, free_bytes, written

SHARD, WORKERS = 50, 2


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides the weights, but for the texts and the loss.

    The learning rate follows straight lines through `rates`: (share of the steps, share of
    `learning_rate`).
    """

    seed: int = 0
    steps: int
    learning_rate: float
    rates: tuple[tuple[float, float], ...]
    weight_decay: float = 0.1
    clip: float = 1.0
    shard: int = SHARD
    workers: int = WORKERS

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        shares, heights = zip(*self.rates, strict=True)
        return self.learning_rate * float(np.interp(step / self.steps, shares, heights))


def check_plan(plan: Plan) -> None:
    """Check that a model can have these sizes, and that the learning rate is above 0.

    Raises:
        UsageError: the heads do not divide the width, the rate is 0 or not a number, or the
            training does not fit into memory.
    """
    if not plan.lr > 0:
        raise UsageError(f"{option('lr', plan.lr)} is not a learning rate", "give a number above 0")
    if plan.n_embd % plan.n_head:
        raise UsageError(
            f"{option('n_embd', plan.n_embd)} is not divisible by {plan.n_head} heads",
            f"choose a multiple of {option('n_head')}",
        )
    needed, room = _training_bytes(plan), int(SHARE * free_bytes())
    if needed > room:
        raise UsageError(
            f"this training needs about {written(needed)} of memory, and {written(room)} are free",
            f"choose a smaller model, or a smaller {option('batch')}",
        )


def _training_bytes(plan: Plan) -> int:
    """Bytes of both workers: weights, gradients and moments, and what a step keeps of a batch."""
    weights = 4 * plan.n_embd * (plan.vocab + plan.context + 12 * plan.n_layer * plan.n_embd)
    tokens, rows = plan.batch * plan.context, plan.batch * plan.n_head * plan.context**2
    kept = 4 * (plan.n_layer * (16 * tokens * plan.n_embd + 3 * rows) + 2 * tokens * plan.vocab)
    return 2 * (4 * weights + kept)


def sizes(plan: Plan, vocabulary: int) -> GPTConfig:
    """The model's configuration; a small text may have fewer tokens than the plan allows."""
    return GPTConfig(vocabulary, plan.context, plan.n_embd, plan.n_layer, plan.n_head)


def recipe_of(plan: Plan) -> Recipe:
    """The recipe of a plan."""
    return Recipe(
        seed=plan.seed,
        steps=plan.max_steps,
        learning_rate=plan.lr,
        rates=((0, 0.01), (0.03, 1.0), (1, 0.05)),
        shard=SHARD,
        workers=WORKERS,
    )
