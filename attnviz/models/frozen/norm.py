"""A norm with the statistic of each token held at what it was: an affine map.

A LayerNorm is (x - mean x)·r·w + b, an RMSNorm x·r·w, where only r depends on the token's length.
Which of them a module is, and whether it multiplies by w or 1 + w, is seen in what it gave.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attnviz.models.frozen.run import near


@dataclass(frozen=True)
class FrozenNorm:
    """A norm as it was: `scale` (1, n, ..., 1) of each token, and `weight` (d) or None.

    `constant` (1, n, ..., d): what it adds, its bias and what its own arithmetic rounded off.
    Norms that are given tokens one below the other have (n, 1) and (n, d).
    """

    scale: Tensor
    weight: Tensor | None
    centred: bool
    constant: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """The affine map on vectors (B, n, ..., d), or (B·n, d)."""
        centred = x - x.mean(dim=-1, keepdim=True) if self.centred else x
        y = centred * _as_often(self.scale, x)
        y = y if self.weight is None else y * self.weight
        return y if self.constant is None else y + _as_often(self.constant, x)


def _as_often(of_tokens: Tensor, x: Tensor) -> Tensor:
    """What belongs to n tokens (n, ...), for those of several texts (B·n, d)."""
    if x.dim() > 2:
        return of_tokens
    return of_tokens.repeat(len(x) // len(of_tokens), 1)


def frozen_norm(module: nn.Module, x: Tensor, y: Tensor) -> FrozenNorm | None:
    """The norm that gave y for x; None where it is no norm of this form."""
    bias = getattr(module, "bias", None)
    for weight, centred in _forms(module):
        unit = FrozenNorm(torch.ones_like(x[..., :1]), weight, centred)(x)
        given = y if bias is None else y - bias.detach()
        length = (unit * unit).sum(dim=-1, keepdim=True)
        scale = (unit * given).sum(dim=-1, keepdim=True) / length.clamp_min(1e-30)
        made = FrozenNorm(scale, weight, centred)
        if near(made(x), given):
            return replace(made, constant=y - made(x))
    return None


def _forms(module: nn.Module) -> Iterator[tuple[Tensor | None, bool]]:
    """The weights that a norm may multiply by, and whether it takes the mean away."""
    weight = getattr(module, "weight", None)
    weights = [None] if weight is None else [weight.detach(), 1 + weight.detach()]
    for centred in (True, False):
        for each in weights:
            yield each, centred
