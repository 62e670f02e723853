"""The recipe of the built-in model.

Its weights were made in four stages; this is the recipe of the last one, and the card has those
before it under `from`. The first, 18,000 steps from random weights, has the code of git revision
fc863739, the third that of a1aca0a8; the second was the third with fewer cases and a lower penalty.
"""

from dataclasses import dataclass

from attnviz.commands.train.plan import Recipe


@dataclass(frozen=True, kw_only=True)
class BuiltinRecipe(Recipe):
    """What the training of the built-in model needs besides.

    `penalty` is added to the loss, in nats per nat of the attention rows' mean entropy. `sampled`
    is how many words stand for those that are no target; see `sampled.cross_entropy`. `asking` is
    the weight of the questions in the loss, `hiding` of what the stream before does not say,
    `idle` of the weight that asked rows put on BOS and on themselves; see `asking.py`. `kept` is
    the weight of the distance from the streams before; for the first share of the steps, `reading`,
    answers and guesses do not reach the streams. `early` and `late` are the shares of what was
    trained in the finished model; see `kept.py`.
    """

    steps: int = 3_000
    learning_rate: float = 3e-4
    rates: tuple[tuple[float, float], ...] = ((0, 1.0), (0.4, 1.0), (1, 0.01))
    workers: int = 1
    sampled: int | None = 1_500
    penalty: float = 0.15
    resting: float = 0.8
    resting_cost: float = 4.0
    highest: float = 25.0
    highest_cost: float = 0.05
    asking: float = 1.0
    hiding: float = 0.2
    idle: float = 1.0
    kept: float = 60.0
    reading: float = 0.15
    early: float = 0.8
    late: float = 0.7
