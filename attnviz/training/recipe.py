"""The choices that decide the weights: the loop's recipe, and a user's plan as a recipe."""

from dataclasses import dataclass

import numpy as np

from attnviz.data.train import Plan
from attnviz.errors import UsageError, option
from attnviz.models.folder.config import GPTConfig
from attnviz.models.memory import SHARE, free_bytes, written

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


@dataclass(frozen=True, kw_only=True)
class BundledRecipe(Recipe):
    """The recipe of a bundled model.

    `penalty` is added to the loss, in nats per nat of the attention rows' mean entropy; it rises in
    a straight line from 0 at `penalty_from` (a share of the steps), so that it would be whole at
    the end, but no further than to `penalty_most`. `sampled` is how many words stand for those
    that are no target; see `sampled.cross_entropy`. `asking` is the weight of the questions in the
    loss; see `asking.py`.
    """

    steps: int = 18_000
    learning_rate: float = 4e-3
    rates: tuple[tuple[float, float], ...] = ((0, 0.005), (1 / 150, 1.0), (0.35, 1.0), (1, 0.01))
    sampled: int | None = 1_500
    penalty: float = 0.25
    penalty_from: float = 0.3
    penalty_most: float = 0.1
    resting: float = 0.8
    resting_cost: float = 4.0
    highest: float = 25.0
    highest_cost: float = 0.05
    asking: float = 1.0

    def penalised(self, step: int) -> bool:
        return self.penalty > 0 and step >= self.penalty_from * self.steps

    def penalty_at(self, step: int) -> float:
        """The penalty of a step."""
        risen = (step / self.steps - self.penalty_from) / (1 - self.penalty_from)
        return min(self.penalty * max(0.0, risen), self.penalty_most)


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
