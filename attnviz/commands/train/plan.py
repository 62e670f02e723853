"""Training a model on a user's own text: the user's choices, and how it went."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from attnviz.errors import UsageError, option
from attnviz.kit.described import Above
from attnviz.kit.option import panel_option
from attnviz.kit.options import LARGEST_SEED
from attnviz.models.folder.config import GPTConfig
from attnviz.models.placement import SHARE, free_bytes, written
from attnviz.records.heads import Head

SIZES, RUN = "The model", "The training"


def _count(panel: str, flag: str, about: str, least: int = 1, most: int | None = 1 << 16) -> Any:
    return panel_option(panel, flag, metavar="N", min=least, max=most, help=about)


@dataclass(frozen=True)
class Plan:
    """The sizes of the model, and the settings of its training.

    `context` and `vocab` count tokens; `batch` counts windows of `context` tokens.
    """

    n_layer: Annotated[int, _count(SIZES, "--n-layer", "Layers.", 1, 1000)] = 4
    n_head: Annotated[int, _count(SIZES, "--n-head", "Heads per layer.")] = 4
    n_embd: Annotated[int, _count(SIZES, "--n-embd", "The width of the model, d_model.", 2)] = 128
    context: Annotated[
        int, _count(SIZES, "--context", "The context: the most tokens the model takes.", 8)
    ] = 128
    vocab: Annotated[
        int, _count(SIZES, "--vocab", "The most tokens in its vocabulary.", 300, 1 << 20)
    ] = 1024
    max_steps: Annotated[
        int, _count(RUN, "--max-steps", "The number of training steps.", 1, 1 << 30)
    ] = 2000
    batch: Annotated[int, _count(RUN, "--batch", "Texts per step for each of the two workers.")] = (
        32
    )
    lr: Annotated[
        float,
        panel_option(RUN, "--lr", metavar="RATE", min=Above(0), help="The highest learning rate."),
    ] = 2e-3
    seed: Annotated[
        int,
        _count(
            RUN, "--seed", "The random seed; the same seed gives the same weights.", 0, LARGEST_SEED
        ),
    ] = 0
    keep_every: Annotated[
        int | None,
        _count(
            RUN,
            "--keep-every",
            "Keep the model every N steps, at step 0 and at the last, in DIR/step-000000 and on.",
            most=None,
        ),
    ] = None

    def keeps(self, step: int) -> bool:
        """Whether the model is kept as it is after this step."""
        every = self.keep_every
        return every is not None and (step % every == 0 or step == self.max_steps)


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
    """A point of the loss curve, the first that of `UNTRAINED`; `held_out` in bits per byte.

    `roles`: each head with its role, where the weights of this point were kept.
    """

    progress: TrainingProgress
    held_out: float
    roles: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TrainingOutcome:
    """The best held-out loss and the trigram model's, in bits per byte, and the loss curve."""

    held_out: float
    trigram: float
    points: tuple[Point, ...]
    tokens_per_byte: float

    def bits_per_byte(self, point: Point) -> float:
        """The training loss in bits per byte, by the number of tokens in the held-out text."""
        return point.progress.loss / math.log(2) * self.tokens_per_byte


@dataclass(frozen=True)
class FormedHead:
    """A head with a role on the held-out text: the metric that it follows from, over `rows`.

    `formed` is False where the value is short of the role.
    """

    role: str
    head: Head
    value: float
    rows: int
    formed: bool = True


BROAD = "broad"
"""The role of a head that attends to everything alike, as one without training does."""
LAST = 3
"""The number of last losses to report."""


def best_of(points: Sequence[Point]) -> Point:
    """The point of the lowest held-out loss, whose weights are kept."""
    return min(points, key=lambda point: point.held_out)


def last_losses(points: Sequence[Point]) -> str:
    """A sentence with the last held-out losses, and their change over the last quarter."""
    *earlier, last = points
    steps, best = last.progress.step, best_of(points)
    before = [point for point in earlier if 0 < point.progress.step <= 0.75 * steps]
    each = ", ".join(
        f"{point.held_out:.3f} (step {point.progress.step:,})" for point in points[-LAST:]
    )
    told = [f"held-out loss at the last checkpoints: {each}"]
    if before:
        since = before[-1]
        told.append(f"{last.held_out - since.held_out:+.3f} since step {since.progress.step:,}")
    if best is not last:
        told.append(
            f"lowest at step {best.progress.step:,}: {best.held_out:.3f}, which the folder keeps"
        )
    return "; ".join(told)


def formed_at(points: Sequence[Point], head: FormedHead) -> int | None:
    """The step of the first kept weights from which on a head had its role; None if not noted."""
    kept, step = points[: points.index(best_of(points)) + 1], None
    for point in reversed([each for each in kept if each.roles]):
        if (str(head.head), head.role) not in point.roles:
            break
        step = point.progress.step
    return step


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
        shares, heights = zip(*self.rates, strict=True)
        return self.learning_rate * float(np.interp(step / self.steps, shares, heights))


def check_plan(plan: Plan) -> None:
    """Check that a model can have these sizes, and that the learning rate is above 0."""
    if not plan.lr > 0:
        raise UsageError(f"{option('lr', plan.lr)} is not a learning rate", "give a number above 0")
    if plan.n_embd % plan.n_head:
        raise UsageError(
            f"{option('n_embd', plan.n_embd)} is not divisible by {plan.n_head} heads",
            f"choose a multiple of {option('n_head')}",
        )
    # both workers have weights, gradients and moments, and what a step keeps of a batch
    weights = 4 * plan.n_embd * (plan.vocab + plan.context + 12 * plan.n_layer * plan.n_embd)
    tokens, rows = plan.batch * plan.context, plan.batch * plan.n_head * plan.context**2
    batch = 4 * (plan.n_layer * (16 * tokens * plan.n_embd + 3 * rows) + 2 * tokens * plan.vocab)
    needed, room = 2 * (4 * weights + batch), int(SHARE * free_bytes())
    if needed > room:
        raise UsageError(
            f"this training needs about {written(needed)} of memory, but {written(room)} are free",
            f"choose a smaller model, or a smaller {option('batch')}",
        )


def sizes(plan: Plan, vocabulary: int) -> GPTConfig:
    """The model's configuration; a small text may have fewer tokens than the plan allows."""
    return GPTConfig(vocabulary, plan.context, plan.n_embd, plan.n_layer, plan.n_head)


def recipe_of(plan: Plan) -> Recipe:
    return Recipe(
        seed=plan.seed,
        steps=plan.max_steps,
        learning_rate=plan.lr,
        rates=((0, 0.01), (0.03, 1.0), (1, 0.05)),
        shard=SHARD,
        workers=WORKERS,
    )
