"""Attention, written out: scaled dot-product, multi-head, self-, masked and cross-attention.

Vaswani et al. 2017, "Attention Is All You Need", arXiv 1706.03762, equation 1 and
section 3.2.2. Vectors are rows (x·W). Letters in the shape comments:

    B batch   n_q queries   n_k keys   d d_model   h heads   d_k width of one head
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError

M = TypeVar("M", bound=nn.Module)


class EnoughSeen(Exception):
    """Ends a forward pass, raised in a hook that has seen all that is wanted."""


def dot_products(q: Tensor, k: Tensor) -> Tensor:
    """q·k for every query and key: (..., n_q, d_k) and (..., n_k, d_k) give (..., n_q, n_k)."""
    return q @ k.transpose(-2, -1)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """The attention scores q·k / √d_k of each query and key (..., n_q, n_k), before the mask."""
    return dot_products(q, k) / math.sqrt(q.size(-1))


def attention_pattern(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax of scores (..., n_q, n_k) over the keys; each row sums to 1.

    `mask`, broadcast to the scores: True where a query may attend, at least once in every row.
    """
    return torch.softmax(scores if mask is None else masked(scores, mask), dim=-1)


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores with −∞ wherever the mask is False, which softmax turns into 0."""
    # added, because one mask for all heads is filled in several times slower than it is added
    return scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)


def weighted_sum(pattern: Tensor, v: Tensor) -> Tensor:
    """The weighted sums of the values: (..., n_q, n_k) and (..., n_k, d_v) give (..., n_q, d_v)."""
    return pattern @ v


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """(n, n), True on and below the diagonal: a query attends to itself and earlier tokens."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def causal_rows(rows: slice, device: torch.device | None = None) -> Tensor:
    """The rows of a causal mask up to their last key: (rows, rows.stop), True where allowed."""
    ones = torch.ones(rows.stop - rows.start, rows.stop, dtype=torch.bool, device=device)
    return ones.tril(rows.start)


def rows_of_mask(mask: Tensor | None, rows: slice) -> Tensor | None:
    """Some query rows of a mask (..., n_q or 1, n_k), or None without a mask."""
    return mask if mask is None or mask.size(-2) == 1 else mask[..., rows, :]


def split_heads(x: Tensor, n_head: int) -> Tensor:
    """(..., n, h·d_k) to (..., h, n, d_k): each head gets its own slice of the width."""
    return x.view(*x.shape[:-1], n_head, -1).transpose(-3, -2)


def merge_heads(z: Tensor) -> Tensor:
    """(..., h, n, d_v) to (..., n, h·d_v): the heads' results, one after the other."""
    return z.transpose(-3, -2).flatten(-2)


class Affine(nn.Module):
    """x·W + b with W stored (d_in, d_out), as GPT-2's checkpoints do."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        self.bias = nn.Parameter(torch.zeros(d_out))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.t(), self.bias)


class MultiHeadAttention(nn.Module):
    """h heads side by side, each with its own d_k-wide slice of W_Q, W_K, W_V and W_O.

    Hook points, all per head: `q` (B, h, n_q, d_k), `k` and `v` (B, h, n_k, d_k),
    `scores` (before the mask) and `pattern` (B, h, n_q, n_k), `z` (B, h, n_q, d_k). With
    queries in blocks, `scores` and `pattern` are passed once for each block of rows, in order.

    Raises:
        ValueError: d_model is not a multiple of the number of heads.
    """

    def __init__(self, d_model: int, n_head: int) -> None:
        super().__init__()
        if d_model % n_head:
            raise ValueError(f"d_model {d_model} is not divisible by {n_head} heads")
        self.n_head = n_head
        self.w_q, self.w_k = Affine(d_model, d_model), Affine(d_model, d_model)
        self.w_v, self.w_o = Affine(d_model, d_model), Affine(d_model, d_model)
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        source: Tensor | None = None,
        causal: bool = False,
        rows: int | None = None,
    ) -> Tensor:
        """Attend from x (B, n_q, d) to itself, or to `source` (B, n_k, d): (B, n_q, d).

        `mask`: broadcast to (B, h, n_q, n_k), True where a query may attend; None allows all.
        `causal`, in place of a mask: to itself and earlier tokens. `rows`: how many queries form a
        block, so that a long text needs no n_q x n_k matrix; None takes all at once.
        """
        source = x if source is None else source
        q = self.q(split_heads(self.w_q(x), self.n_head))  # (B, h, n_q, d_k)
        k = self.k(split_heads(self.w_k(source), self.n_head))  # (B, h, n_k, d_k)
        v = self.v(split_heads(self.w_v(source), self.n_head))  # (B, h, n_k, d_k)
        n_q, before = x.size(1), k.size(2) - x.size(1)  # a cache puts earlier keys in front
        parts = []
        for first in range(0, n_q, rows or n_q):
            block = slice(first, min(first + (rows or n_q), n_q))
            own = slice(before + block.start, before + block.stop)
            seen = slice(own.stop if causal else None)  # no query attends to a later key
            visible = causal_rows(own, x.device) if causal else rows_of_mask(mask, block)
            scores = self.scores(attention_scores(q[..., block, :], k[..., seen, :]))
            pattern = self.pattern(attention_pattern(scores, visible))  # (B, h, rows, seen)
            parts.append(weighted_sum(pattern, v[..., seen, :]))  # (B, h, rows, d_k)
        z = self.z(torch.cat(parts, dim=-2) if len(parts) > 1 else parts[0])  # (B, h, n_q, d_k)
        merged: Tensor = self.w_o(merge_heads(z))  # (B, n_q, d)
        return merged


# Hook points: named places in a model where a value can be read or replaced.

Hook: TypeAlias = Callable[[Tensor], Tensor | None]
"""Is given the value at a hook point; a tensor that it returns replaces the value."""


class HookPoint(nn.Identity):
    """A named place in a model, which costs nothing without a hook."""


def hook_names(model: nn.Module) -> list[str]:
    """The dotted names of all hook points of a model, in the order of its modules."""
    return [name for name, module in model.named_modules() if isinstance(module, HookPoint)]


@contextmanager
def attached(model: nn.Module, hooks: Mapping[str, Hook]) -> Iterator[None]:
    """Attach hooks to the named hook points; detach all of them at the end, also on an error.

    Raises:
        KeyError: a name is not a hook point of this model (nothing stays attached).
    """
    points = dict(model.named_modules())
    with ExitStack() as stack:
        for name, hook in hooks.items():
            if not isinstance(points.get(name), HookPoint):
                known = ", ".join(hook_names(model))
                raise KeyError(f"{name!r} is no hook point; there are: {known}")
            handle = points[name].register_forward_hook(
                lambda _m, _in, value, hook=hook: hook(value)
            )
            stack.callback(handle.remove)
        yield


@contextmanager
def kept(
    model: nn.Module, names: Iterable[str], part: Callable[[Tensor], Tensor]
) -> Iterator[dict[str, Tensor]]:
    """A part of what passes these hook points until the end, by name; the last of several."""
    values: dict[str, Tensor] = {}

    def keeper(name: str) -> Hook:
        def keep(value: Tensor) -> None:
            values[name] = part(value)

        return keep

    with attached(model, {name: keeper(name) for name in names}):
        yield values


def with_added(model: M, path: str, vector: Tensor) -> M:
    """A view of a model that adds a vector (d) to what the module at a path is given.

    All weights, and all modules that are not on the way to it, are the model's own.

    Raises:
        ModelError: a forward pass on the way was replaced, so that it would not come by.
    """
    if "forward" in vars(model):
        raise ModelError(
            f"the forward pass of {type(model).__name__} was replaced: nothing can be added",
            "use the model as it was loaded",
        )
    view = copy(model)
    view._modules = dict(model._modules)
    if path:
        name, _, rest = path.partition(".")
        view._modules[name] = with_added(model.get_submodule(name), rest, vector)
        return view

    def before(_module: nn.Module, args: Any, named: Mapping[str, Any]) -> Any:
        x = args[0] if args else named["hidden_states"]
        if x.dim() > 3 or x.size(-1) != len(vector):
            wrong = f"{type(model).__name__} is given vectors of the shape {tuple(x.shape)}"
            raise ModelError(f"{wrong}, not a stream", "use a model such as GPT-2 or Llama")
        new = (x + vector.to(x.device)).to(x)  # in the higher of both precisions
        return ((new, *args[1:]), named) if args else (args, {**named, "hidden_states": new})

    for hooks in ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"):
        vars(view)[hooks] = OrderedDict(vars(model)[hooks])
    view.register_forward_pre_hook(before, with_kwargs=True)
    return view
