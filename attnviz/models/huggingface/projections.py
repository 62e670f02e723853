"""The projections of one head of a transformers model: found by name, told apart by values.

Architectures name them differently (`folder/params.py` knows the usual names). Some join
queries, keys and values in one matrix; the right way to split it is the one that gives the
values that the model used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.modules.module import _has_any_global_hook
from transformers.pytorch_utils import Conv1D

from attnviz.errors import ModelError
from attnviz.models.folder.params import ROLES
from attnviz.models.huggingface.call import AttentionCall

NEAR = 1e-4


@dataclass(frozen=True)
class Compared:
    """Queries or keys (n, d_k) as they are compared, without a `factor` that all of them share.

    `plain`: as the projection gives them; None where they are compared as they are.
    """

    used: Tensor
    factor: float = 1.0
    plain: Tensor | None = None


def unknown(what: str) -> ModelError:
    """The error for an architecture that cannot be taken apart; `what` is the obstacle."""
    return ModelError(what, "its patterns can be shown; for this use one such as GPT-2 or Llama")


def projections_of(module: nn.Module) -> dict[str, nn.Module]:
    """The query, key, value and output projections below a module, by role."""
    roles: dict[str, nn.Module] = {}
    for name, child in module.named_modules():
        role = ROLES.get(name.rsplit(".", 1)[-1])
        if role and _may_project(child):
            roles.setdefault(role, child)
    return roles


def _may_project(module: nn.Module) -> bool:
    """Whether its weight is a matrix; a wrapper has none of its own, but holds something."""
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor):
        return weight.dim() == 2
    return any(True for held in (module.parameters(), module.buffers()) for _ in held)


def weights_of_head(
    projections: Mapping[str, nn.Module],
    call: AttentionCall,
    read: Mapping[str, Tensor],
    head: int,
    kv: int,
) -> dict[str, tuple[Tensor, Tensor | None]]:
    """This head's slices (d, d_k) of W_Q, W_K and W_V, with their biases.

    `read`: the vectors (n, d) that each of the projections Q, K and V reads.

    Raises:
        ModelError: no way to split a joined projection gives the values that were used.
    """
    heads, kv_heads = call.q.size(0), call.k.size(0)
    d_k, d_v = call.q.size(-1), call.v.size(-1)
    at = {"Q": (head, d_k), "K": (kv, d_k), "V": (kv, d_v)}
    if "QKV" not in projections:
        apart = {letter: matrix_of(projections[letter], read[letter]) for letter in "QKV"}
        return {
            f"w_{letter.lower()}": _columns(apart[letter], range(n * wide, (n + 1) * wide))
            for letter, (n, wide) in at.items()
        }
    joined = matrix_of(projections["QKV"], read["V"])
    side_by_side = {"Q": 0, "K": heads * d_k, "V": (heads + kv_heads) * d_k}
    by_head = {"Q": 0, "K": d_k, "V": 2 * d_k}  # head after head: q k v q k v
    for starts, stride in ((side_by_side, None), (by_head, 2 * d_k + d_v)):
        split = {}
        for letter, (n, wide) in at.items():
            start = starts[letter] + n * (stride or wide)
            split[f"w_{letter.lower()}"] = _columns(joined, range(start, start + wide))
        if agrees(projected(read["V"], split["w_v"]), call.v[kv]):
            return split
    raise unknown(f"queries, keys and values of {type(call.module).__name__} cannot be told apart")


def matrix_of(module: nn.Module, reads: Tensor) -> tuple[Tensor, Tensor | None]:
    """What a projection does: a matrix (d_in, d_out), and its bias.

    A plain one says so by its weight. One with an adapter, a hook, a wrapper or a `forward` of its
    own is asked: for an affine f, a row of the matrix is f(eᵢ) - f(0).

    Args:
        module: the projection.
        reads: vectors (..., d_in) that it reads, for their width, type and device.

    Raises:
        ModelError: what it does is not affine.
    """
    if is_plain(module):
        weight, bias = module.weight, getattr(module, "bias", None)
        assert isinstance(weight, Tensor)
        # transformers' Conv1D stores (d_in, d_out), torch's Linear (d_out, d_in)
        return (weight if isinstance(module, Conv1D) else weight.t()), bias
    return _asked(module, reads)


def is_plain(module: nn.Module) -> bool:
    """Whether a projection does what its weight says, and nothing else."""
    return type(module) in PLAIN and not (
        module._forward_hooks
        or module._forward_pre_hooks
        or "forward" in vars(module)
        or _has_any_global_hook()  # type: ignore[no-untyped-call]
    )


PLAIN = (nn.Linear, NonDynamicallyQuantizableLinear, Conv1D, nn.Embedding)
AT_ONCE = 512  # directions that a projection is asked about


@torch.no_grad()
def _asked(module: nn.Module, reads: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix and the bias of a projection by what it makes of each direction."""
    width = reads.size(-1)
    every = torch.eye(width, dtype=reads.dtype, device=reads.device)
    draw = torch.Generator().manual_seed(0)
    some = torch.randn((8, width), generator=draw, dtype=torch.float32).to(every)
    try:
        bias = module(torch.zeros_like(every[None, :1]))[0, 0]
        weight = torch.cat([module(rows[None])[0] for rows in torch.split(every, AT_ONCE)]) - bias
        made = module(some[None])[0]
    except (RuntimeError, TypeError, ValueError, IndexError):
        raise unknown(f"{type(module).__name__} cannot be asked what it projects") from None
    rounding = 4 * torch.finfo(made.dtype).eps
    if not agrees(projected(some, (weight, bias)), made, max(NEAR, rounding)):
        raise unknown(f"{type(module).__name__} is a projection that is not linear")
    return weight.detach(), bias.detach()


def projected(x: Tensor, matrix: tuple[Tensor, Tensor | None]) -> Tensor:
    """x·W + b for vectors x (n, d_in)."""
    weight, bias = matrix
    return x @ weight if bias is None else x @ weight + bias


def _columns(matrix: tuple[Tensor, Tensor | None], span: range) -> tuple[Tensor, Tensor | None]:
    weight, bias = matrix
    cut = slice(span.start, span.stop)
    return weight[:, cut], None if bias is None else bias[cut]


def compared(plain: Tensor, used: Tensor) -> Compared:
    """Queries or keys (n, d_k): compared as projected, as a multiple of that, or changed."""
    if agrees(plain, used):
        return Compared(used)
    if plain.shape == used.shape:
        factor = float((plain * used).sum() / plain.square().sum())
        if factor > 0 and agrees(factor * plain, used):  # OPT scales q, and not the product
            return Compared(plain, factor)
    return Compared(used, 1.0, plain)


def agrees(a: Tensor, b: Tensor, rounding: float = NEAR) -> bool:
    """Whether two tensors have the same shape and, up to rounding, the same numbers."""
    return a.shape == b.shape and bool((a - b).abs().max() <= rounding * (1 + b.abs().max()))
