"""What the training of the built-in model lowers: three costs in one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.commands.train.loop import StepLoss, predictions
from making.asking import Asking
from making.data import AskingBatch
from making.penalty import penalty_hooks
from making.recipe import BuiltinRecipe
from making.sampled import cross_entropy


@dataclass(frozen=True)
class Objective:
    """The loss of the next tokens, of the words that are asked for, and the penalty."""

    recipe: BuiltinRecipe

    def __call__(self, model: Asking, batch: AskingBatch, step: int) -> StepLoss:
        recipe = self.recipe
        costs: list[Tensor] = []
        # one layer a step, in turn: on average the same as all layers, in a fraction of the time
        layer = step % model.config.n_layer
        hooks = penalty_hooks(layer, batch, recipe, costs) if recipe.penalised(step) else {}
        hidden, normed, targets = predictions(model, batch, hooks)
        loss = cross_entropy(normed, model.wte.weight, targets, recipe.sampled)
        penalty = sum(costs, torch.zeros(()))
        total = loss + recipe.penalty_at(step) * penalty
        total = total + recipe.asking * model.loss(hidden, batch.asked, recipe.sampled)
        return StepLoss(total, loss.item(), penalty.item())
