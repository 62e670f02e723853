"""A layer's addition to the residual stream, found from the outputs that sum up to its change.

A layer adds an output as it is, times a factor (Granite), through a norm of its own (Gemma 2), or
with a norm over the sum (BERT), where attention and the MLP can no longer be told apart.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnviz.models.huggingface.layers import is_norm
from attnviz.records.trace import Residual

EXACT = 1e-5
ENOUGH = 64  # tokens: two factors that fit as many rows fit them all


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


def what_is_added(
    x: Tensor, x_after: Tensor, attention_out: Tensor, outputs: Sequence[tuple[nn.Module, Tensor]]
) -> Added:
    """Split the change of the stream in a layer (n, d) between attention and the MLP.

    `outputs` (n, d): those of the layer's modules outside attention, in the order of their calls.
    """
    change = x_after - x
    if x.dtype in (torch.float32, torch.float64):
        near = EXACT * (1 + x_after.abs().max())
    else:  # each of the two sums is rounded to a few digits, and so is the change
        near = 2 * torch.finfo(x.dtype).eps * (x.abs() + x_after.abs() + attention_out.abs())
    for attention, mlp, how in _candidates(attention_out, outputs):
        if ((attention + mlp - change).abs() <= near).all():
            return Added(attention, mlp, how)
        f, g = _factors(change[:ENOUGH], attention[:ENOUGH], mlp[:ENOUGH])
        if min(abs(f), abs(g)) < EXACT:
            continue
        if ((f * attention + g * mlp - change).abs() <= near).all():
            return Added(f * attention, g * mlp, how, (f, g))
    return Added(attention_out, change - attention_out, "mixed")


def _candidates(
    attention_out: Tensor, outputs: Sequence[tuple[nn.Module, Tensor]]
) -> Iterator[tuple[Tensor, Tensor, Residual]]:
    """Possible additions of attention and the MLP: the plainest first, and the last called."""
    norms = [out for module, out in outputs if is_norm(module)]
    others = [out for module, out in reversed(outputs) if not is_norm(module)]
    yield from ((attention_out, other, "plain") for other in others)
    for attention, mlp in itertools.product([attention_out, *norms], [*others, *norms]):
        if attention is not mlp:
            yield attention, mlp, "normed"


def _factors(change: Tensor, a: Tensor, b: Tensor) -> tuple[float, float]:
    """The two factors for which change = f·a + g·b fits best (least squares)."""
    both = torch.stack([a.flatten(), b.flatten()]).double()  # (2, n·d)
    solved = torch.linalg.pinv(both @ both.T) @ (both @ change.flatten().double())
    return float(solved[0]), float(solved[1])
