"""Muon, an optimizer for the matrices of hidden layers, in float32.

Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks". A step is the
momentum made orthogonal: all its singular values become about 1. It needs fewer tokens than
AdamW. `torch.optim.Muon` computes in bfloat16, which many processors only emulate.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from attnviz.commands.train.loop import adamw_of
from attnviz.commands.train.plan import Recipe
from attnviz.models.scratch.gpt import GPT

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5


def muon_and_adamw(model: GPT, recipe: Recipe) -> list[Optimizer]:
    """Muon for the matrices of the blocks, and AdamW for the rest."""
    blocks = [p for p in model.h.parameters() if p.dim() > 1]
    taken = {id(p) for p in blocks}
    rest = (p for p in model.parameters() if id(p) not in taken)
    return [Muon(blocks, recipe.learning_rate, recipe.weight_decay), adamw_of(rest, recipe)]


class Muon(Optimizer):
    """Muon with Nesterov momentum and decoupled weight decay, for matrices alone.

    The step of an m × n matrix is scaled by 0.2·√max(m, n), so that its root mean square is that
    of AdamW's steps, and both can share a learning rate (Liu et al. 2025, "Muon is scalable").
    """

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, weight_decay: float, momentum: float = 0.95
    ) -> None:
        defaults = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes[parameter.shape].append(parameter)
            for same in shapes.values():
                self._step_together(same, group)

    def _step_together(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """One step of matrices of the same shape, stacked: one product instead of many."""
        updates = []
        for parameter in parameters:
            state = self.state[parameter]
            momentum = state.setdefault("momentum", torch.zeros_like(parameter))
            assert parameter.grad is not None
            momentum.lerp_(parameter.grad, 1 - group["momentum"])
            updates.append(parameter.grad.lerp(momentum, group["momentum"]))
        scale = 0.2 * max(parameters[0].shape) ** 0.5
        for parameter, update in zip(parameters, orthogonal(torch.stack(updates)), strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices (k, m, n) with all singular values near 1, by Newton and Schulz's iteration."""
    a, b, c = COEFFICIENTS
    wide = matrices if matrices.size(-2) <= matrices.size(-1) else matrices.mT
    x = wide / (wide.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT  # (k, m, m)
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = x if wide is matrices else x.mT
    return result
