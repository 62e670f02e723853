"""The additions of attention and the MLP to the residual stream, found among module outputs.

Layers of different architectures add an output as it is, times a factor (Granite), through a
norm of its own (Gemma 2), or with a norm over the sum (BERT), where the two can no longer be
told apart. The outputs that sum up to the change of the stream are looked for, so that no
architecture's names are needed.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from attnviz.records.trace import Residual

Outputs: TypeAlias = Sequence[tuple[nn.Module, Tensor]]

EXACT = 1e-5
ENOUGH = 64  # tokens: two factors that fit so many rows fit them all


@dataclass(frozen=True)
class Added:
    """The additions to the stream: attention and mlp (n, d), which include their `factors`.

    Where the two cannot be told apart, attention is the output of the output projection, and
    mlp is the rest of the change.
    """

    attention: Tensor
    mlp: Tensor
    how: Residual
    factors: tuple[float, float] = (1.0, 1.0)


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a LayerNorm, RMSNorm or the like; not one that computes a weight."""
    kind = type(module)
    return "norm" in kind.__name__.lower() and kind.__module__ != parametrizations.__name__


def what_is_added(x: Tensor, x_after: Tensor, attention_out: Tensor, outputs: Outputs) -> Added:
    """Split the change of the stream in a layer between attention and the MLP.

    Args:
        x: the stream that arrives (n, d).
        x_after: the stream that leaves (n, d).
        attention_out: the output of the output projection (n, d).
        outputs: the outputs of the layer's modules outside attention, each (n, d), in the
            order of their calls.
    """
    change = x_after - x
    near = _rounding(x, x_after, attention_out)
    for attention, mlp, how in _candidates(attention_out, outputs):
        if ((attention + mlp - change).abs() <= near).all():
            return Added(attention, mlp, how)
        f, g = _factors(change[:ENOUGH], attention[:ENOUGH], mlp[:ENOUGH])
        if min(abs(f), abs(g)) < EXACT:
            continue
        if ((f * attention + g * mlp - change).abs() <= near).all():
            return Added(f * attention, g * mlp, how, (f, g))
    return Added(attention_out, change - attention_out, "mixed")


def _rounding(x: Tensor, x_after: Tensor, attention_out: Tensor) -> Tensor:
    """How far sums may be from the change of the stream, of one number or of each (n, d)."""
    if x.dtype in (torch.float32, torch.float64):
        return EXACT * (1 + x_after.abs().max())
    # each of the two sums is rounded to a few digits, and so is the change
    return 2 * torch.finfo(x.dtype).eps * (x.abs() + x_after.abs() + attention_out.abs())


def _candidates(
    attention_out: Tensor, outputs: Outputs
) -> Iterator[tuple[Tensor, Tensor, Residual]]:
    """Possible additions of attention and the MLP: the plainest first, and the last called."""
    norms = [out for module, out in outputs if is_norm(module)]
    others = [out for module, out in reversed(outputs) if not is_norm(module)]
    for other in others:
        yield attention_out, other, "plain"
    for attention, mlp in itertools.product([attention_out, *norms], [*others, *norms]):
        if attention is not mlp:
            yield attention, mlp, "normed"


def _factors(change: Tensor, a: Tensor, b: Tensor) -> tuple[float, float]:
    """The two factors for which change = f·a + g·b fits best (least squares)."""
    both = torch.stack([a.flatten(), b.flatten()]).double()  # (2, n·d)
    solved = torch.linalg.pinv(both @ both.T) @ (both @ change.flatten().double())
    return float(solved[0]), float(solved[1])
