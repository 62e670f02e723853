"""What the attention costs in the later part of the training, so that heads are crisp.

An entropy penalty on whole rows would reward a head for resting on BOS, and for extreme scores.
So three things cost: the entropy of what is off BOS, rest on BOS, and extreme scores.
"""

import torch
from torch import Tensor

from attnviz.commands.train.loop import PADDING
from attnviz.models.attention import Hook
from making.asking import AskingBatch
from making.recipe import BuiltinRecipe


def penalty_hooks(
    layer: int, batch: AskingBatch, recipe: BuiltinRecipe, into: list[Tensor]
) -> dict[str, Hook]:
    """Hooks that collect what a layer's rows cost, as scalars in nats; by hook point."""
    return {
        f"h.{layer}.attn.pattern": _pattern_hook(batch, recipe, into),
        f"h.{layer}.attn.scores": _scores_hook(batch, recipe, into),
    }


def _pattern_hook(batch: AskingBatch, recipe: BuiltinRecipe, into: list[Tensor]) -> Hook:
    """A hook that collects what a layer's rows cost: the entropy off BOS, and resting on BOS.

    A penalty on the whole row's entropy would reward a head for resting on BOS. So the entropy of
    a row's distribution over the other keys counts, in nats. It is weighted by how much there is
    off BOS, as a constant, so that to rest does not lower it. A head's mean weight on BOS counts
    as far as it exceeds `recipe.resting`.
    """
    first = batch.first().float()  # (B, n), 1 at each BOS
    real = (batch.documents != PADDING).float() * (1 - first)  # (B, n), the rows that count

    def record(pattern: Tensor) -> None:  # (B, h, n, n)
        weights = pattern.float()
        sink = weights @ first[:, None, :, None]  # (B, h, n, 1)
        sink = sink.squeeze(-1)
        off = weights * (1 - first)[:, None, None, :]
        share = off.sum(-1).clamp_min(1e-6)  # (B, h, n)
        among = off / share.unsqueeze(-1)  # the distribution over the other keys
        spread = -(among * among.clamp_min(1e-9).log()).sum(-1) * share.detach()  # (B, h, n)
        rows = real[:, None, :]
        count = rows.sum() * weights.size(1)
        rests = (sink * rows).sum((0, 2)) / rows.sum()  # (h)
        over = torch.relu(rests - recipe.resting).mean()
        into.append((spread * rows).sum() / count + recipe.resting_cost * over)

    return record


def _scores_hook(batch: AskingBatch, recipe: BuiltinRecipe, into: list[Tensor]) -> Hook:
    """A hook that collects by how much a layer's scores exceed `recipe.highest`, squared."""
    mask = batch.mask()

    def record(scores: Tensor) -> None:  # (B, h, n, n)
        extreme = torch.relu(scores.float().abs() - recipe.highest).masked_fill(~mask, 0.0)
        into.append(recipe.highest_cost * extreme.square().mean())

    return record
