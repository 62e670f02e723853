"""The recipe of the built-in model."""

from dataclasses import dataclass

from attnviz.commands.train.plan import Recipe


@dataclass(frozen=True, kw_only=True)
class BuiltinRecipe(Recipe):
    """What the training of the built-in model needs besides.

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
