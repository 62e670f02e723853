"""The projections of one head of a transformers model: found by name, told apart by values.

Architectures name them differently (`folder/params.py` knows the usual names). Some join
queries, keys and values in one matrix; the right way to split it is the one that gives the
values that the model used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

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
        if role and isinstance(getattr(child, "weight", None), Tensor) and child.weight.dim() == 2:
            roles.setdefault(role, child)
    return roles


def weights_of_head(
    projections: Mapping[str, nn.Module], call: AttentionCall, normed: Tensor, head: int, kv: int
) -> dict[str, tuple[Tensor, Tensor | None]]:
    """This head's slices (d, d_k) of W_Q, W_K and W_V, with their biases.

    Raises:
        ModelError: no way to split a joined projection gives the values that were used.
    """
    heads, kv_heads = call.q.size(0), call.k.size(0)
    d_k, d_v = call.q.size(-1), call.v.size(-1)
    at = {"Q": (head, d_k), "K": (kv, d_k), "V": (kv, d_v)}
    if "QKV" not in projections:
        apart = {letter: matrix_of(projections[letter]) for letter in "QKV"}
        return {
            f"w_{letter.lower()}": _columns(apart[letter], range(n * wide, (n + 1) * wide))
            for letter, (n, wide) in at.items()
        }
    joined = matrix_of(projections["QKV"])
    side_by_side = {"Q": 0, "K": heads * d_k, "V": (heads + kv_heads) * d_k}
    by_head = {"Q": 0, "K": d_k, "V": 2 * d_k}  # head after head: q k v q k v
    for starts, stride in ((side_by_side, None), (by_head, 2 * d_k + d_v)):
        split = {}
        for letter, (n, wide) in at.items():
            start = starts[letter] + n * (stride or wide)
            split[f"w_{letter.lower()}"] = _columns(joined, range(start, start + wide))
        if near(projected(normed, split["w_v"]), call.v[kv]):
            return split
    raise unknown(f"queries, keys and values of {type(call.module).__name__} cannot be told apart")


def matrix_of(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """A projection's weight as (d_in, d_out), and its bias."""
    weight, bias = module.weight, getattr(module, "bias", None)
    assert isinstance(weight, Tensor)
    # transformers' Conv1D stores (d_in, d_out), torch's Linear (d_out, d_in)
    return (weight if type(module).__name__ == "Conv1D" else weight.t()), bias


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
    if near(plain, used):
        return Compared(used)
    if plain.shape == used.shape:
        factor = float((plain * used).sum() / plain.square().sum())
        if factor > 0 and near(factor * plain, used):  # OPT scales q, and not the product
            return Compared(plain, factor)
    return Compared(used, 1.0, plain)


def near(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape and, up to rounding, the same numbers."""
    return a.shape == b.shape and bool((a - b).abs().max() <= NEAR * (1 + b.abs().max()))
