"""What the training of the built-in model lowers: four costs in one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.commands.train.loop import StepLoss, predictions
from attnviz.models.attention import Hook
from making.asking import Around, Asking, AskingBatch
from making.kept import Keeper, Streams
from making.penalty import penalty_hooks
from making.recipe import BuiltinRecipe
from making.sampled import cross_entropy


@dataclass(frozen=True)
class Objective:
    """The loss of the next tokens, of the words that are asked for, of kept streams, the penalty.

    Guesses cost nothing by themselves: their matrix learns, and the stream unlearns.
    """

    recipe: BuiltinRecipe
    kept: Keeper

    def __call__(self, model: Asking, batch: AskingBatch, step: int) -> StepLoss:
        recipe = self.recipe
        costs: list[Tensor] = []
        # one layer a step, in turn: on average the same as all layers, in a fraction of the time
        layer = step % model.config.n_layer
        hooks = penalty_hooks(layer, batch, recipe, costs)
        around, streams = Around(), Streams()
        looking = joined(hooks, around.hooks(), streams.hooks(model.config.n_layer))
        _, normed, targets = predictions(model, batch, looking)
        loss = cross_entropy(normed, model.wte.weight, targets, recipe.sampled)
        penalty = sum(costs, torch.zeros(()))
        total = loss + recipe.penalty * penalty
        reads = step < recipe.reading * recipe.steps
        asked = model.loss(around, batch, recipe.hiding, recipe.sampled, reads=reads)
        total = total + recipe.asking * asked.answer + asked.guess + recipe.idle * asked.rest
        total = total + recipe.kept * self.kept.loss(streams, batch)
        return StepLoss(total, loss.item(), penalty.item())


def joined(*hooks: Mapping[str, Hook]) -> dict[str, Hook]:
    """Hooks that only look, of which several may stand at one point."""
    points = dict.fromkeys(point for each in hooks for point in each)
    return {point: _all([each[point] for each in hooks if point in each]) for point in points}


def _all(hooks: Sequence[Hook]) -> Hook:
    def record(value: Tensor) -> None:
        for hook in hooks:
            hook(value)

    return record
