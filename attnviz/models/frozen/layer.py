"""The parts of a run held fixed: attention, norms, layers, the output; each affine in the stream.

Letters in the shape comments: see `models/frozen/run.py`.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError, option

ROWS_AT_ONCE = 1 << 22
"""Numbers of a layer's pattern that are computed at once; a smaller one is kept."""
NEAR = 1e-5
"""The largest distance of a sum from the observed one, as a share of the largest number."""


@dataclass(frozen=True)
class FrozenAttention:
    """The attention of a layer as it was.

    q (h, n, d_k); k (g, n, d_k); v (g, n, d_v); w_o (h, d_v, d), b_o (d): the output projection;
    `attended` (n, d): its output. Each of these computes rows of queries, as the whole is the
    square of the text: `pattern` the weights (h, rows, m) of the first m keys, which are all that
    these rows attend to; `bias` the addend (h, rows, n) to the
    scores q·k·scaling, after `cap` was put on them; `seen` (rows, n), True where the mask lets a
    query see a key.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    pattern: Callable[[Tensor], Tensor]
    scaling: float
    w_o: Tensor
    b_o: Tensor | None
    attended: Tensor
    seen: Callable[[Tensor], Tensor]
    bias: Callable[[Tensor], Tensor | None] | None = None
    cap: float | None = None

    @property
    def group(self) -> int:
        """The number of heads that share keys and values."""
        return self.q.size(0) // self.k.size(0)

    @property
    def values(self) -> Tensor:
        """The values of each head (h, n, d_v)."""
        return self.v.repeat_interleave(self.group, dim=0)

    @cached_property
    def _whole(self) -> Tensor | None:
        """The whole pattern (h, n, n), where it is small."""
        heads, n, _ = self.q.shape
        return self.pattern(torch.arange(n)) if heads * n * n <= ROWS_AT_ONCE else None

    @torch.no_grad()
    def first_weights(self, queries: Tensor) -> Tensor:
        """The weights of some rows (h, rows, m) on the first m keys; they have none on others."""
        return self.pattern(queries) if self._whole is None else self._whole[:, queries]

    def weights(self, queries: Tensor) -> Tensor:
        """The weights of some rows (h, rows, n)."""
        first = self.first_weights(queries)
        return nn.functional.pad(first, (0, self.k.size(1) - first.size(2)))

    def blocks(self, queries: Tensor) -> tuple[Tensor, ...]:
        """The rows in blocks whose weights are few."""
        most = max(1, ROWS_AT_ONCE // (self.q.size(0) * self.k.size(1)))
        return torch.split(queries.cpu(), most)

    @property
    def every(self) -> Tensor:
        return torch.arange(self.q.size(1))

    @property
    def sample(self) -> Tensor:
        """Rows from the first to the last that stand for all: a block of them at most."""
        most = len(self.blocks(self.every)[0])
        return torch.linspace(0, self.q.size(1) - 1, most, dtype=torch.float64).round().long()

    def outputs(self, sources: Sequence[Mapping[int, Sequence[int]]]) -> Tensor:
        """The additions of heads from each choice of source tokens (S, n, d).

        A row's weights are computed once for all choices.
        """
        heads = sorted({head for each in sources for head, own in each.items() if own})
        added = self.attended.new_zeros((len(sources), *self.attended.shape))
        own = [i for i, each in enumerate(sources) if any(each.values())]
        if heads:
            every = self.values
            each = [[only_at(every[h], sources[i].get(h, ())) for h in heads] for i in own]
            values = torch.stack([torch.stack(some) for some in each])
            for rows in self.blocks(self.every):
                weights = self.first_weights(rows)[heads]  # (heads, rows, m)
                z = weights @ values[:, :, : weights.size(2)]  # (own, heads, rows, d_v)
                some = torch.einsum("shrv,hvd->srd", z, self.w_o[heads])
                added[torch.tensor(own)[:, None], rows] = some
        return added

    def column(self, source: int) -> Tensor:
        """The weight of each query on one key (h, n)."""
        blocks = [self.weights(rows)[..., source] for rows in self.blocks(self.every)]
        return torch.cat(blocks, dim=1)


class FrozenLayer(ABC):
    """A layer whose norms, attention weights and MLP are held at what they were.

    `attention` is None in a layer that has none. `normed`: a norm is between the stream that
    arrives and its attention's scores.
    """

    attention: FrozenAttention | None
    normed: bool

    @abstractmethod
    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        """The stream that leaves it, without its MLP's output: affine in both (B, n, d).

        `x` is the stream that arrives, `attended` the output of its attention.
        """

    @abstractmethod
    def before_mlp(self, x: Tensor) -> "FrozenNorm | None":
        """The norm between the stream behind its attention (n, d) and its MLP; None if unknown."""

    @abstractmethod
    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """The queries (B, h, n, d_k), keys and values (B, g, n, d_k or d_v): affine in x (B, n, d).

        `free`: let the norms follow x, as the model does; then it is not affine.
        """


def near(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape and, up to rounding, the same numbers."""
    return a.shape == b.shape and bool((a - b).abs().max() <= NEAR * (1e-6 + b.abs().max()))


# A LayerNorm is (x - mean x)·r·w + b, an RMSNorm x·r·w, where only r depends on the token's length.
# Which of them a module is, and whether it multiplies by w or 1 + w, is seen in what it gave.


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

    def at(self, token: int) -> "FrozenNorm":
        """The norm of one token, for vectors (B, 1, d)."""
        of_token = slice(token, token + 1)
        constant = None if self.constant is None else self.constant[..., of_token, :]
        return replace(self, scale=self.scale[..., of_token, :], constant=constant)


def _as_often(of_tokens: Tensor, x: Tensor) -> Tensor:
    """Rows of n tokens (n, ...), repeated for those of several texts (B·n, d)."""
    if x.dim() > 2:
        return of_tokens
    return of_tokens.repeat(len(x) // len(of_tokens), 1)


def frozen_norm(module: nn.Module, x: Tensor, y: Tensor) -> FrozenNorm | None:
    """The norm that gave y for x, or None if it is not a norm of this form."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    weights = [None] if weight is None else [weight.detach(), 1 + weight.detach()]
    unbiased = y if bias is None else y - bias.detach()
    for centred, weight in itertools.product((True, False), weights):
        unit = FrozenNorm(torch.ones_like(x[..., :1]), weight, centred)(x)
        length = (unit * unit).sum(dim=-1, keepdim=True)
        scale = (unit * unbiased).sum(dim=-1, keepdim=True) / length.clamp_min(1e-30)
        norm = FrozenNorm(scale, weight, centred)
        if near(norm(x), unbiased):
            return replace(norm, constant=y - norm(x))
    return None


def check_adds_up(dtype: torch.dtype) -> None:
    """See that what a model computes in this precision is the sum of its parts."""
    if dtype in (torch.float16, torch.bfloat16):
        raise ModelError(
            f"in {str(dtype).removeprefix('torch.')} the parts of a model do not add up",
            f"run it with {option('dtype', 'float32')}",
        )


@torch.no_grad()
def norm_held(module: nn.Module, x: Tensor) -> FrozenNorm:
    """A norm, held at what it does to x (n, d)."""
    frozen = frozen_norm(module, x, module(x))
    assert frozen is not None  # a norm is one
    return frozen


@dataclass(frozen=True)
class FrozenOutput:
    """The last norm, held at what it was, and the output layer: weight (V, d), bias (V).

    `factor` is put on what the layer reads.
    """

    norm: FrozenNorm | None
    weight: Tensor
    bias: Tensor | None = None
    factor: float = 1.0

    def reads(self, x: Tensor) -> Tensor:
        """The input of the output layer: affine in the stream x (B, n, d)."""
        return self.factor * (x if self.norm is None else self.norm(x))


def only_at(vectors: Tensor, tokens: Sequence[int]) -> Tensor:
    """The vectors (n, …) of some tokens, and zeros for the others."""
    kept = torch.zeros_like(vectors)
    kept[tokens] = vectors[tokens]
    return kept
