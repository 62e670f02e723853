"""A run held fixed, whichever engine it is of: norms and attention weights as they were.

Letters in the shape comments: B batch, n tokens, d d_model, h heads, g heads of keys and values
(h is a multiple of g), d_k and d_v width of a head's keys and values, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

NEAR = 1e-5
"""How near a sum must be to what was observed, as a share of the largest number."""
Embedded: TypeAlias = Literal["embedding", "position"]


@dataclass(frozen=True)
class FrozenAttention:
    """The attention of a layer as it was.

    q (h, n, d_k); k (g, n, d_k); v (g, n, d_v); pattern (h, n, n); `bias` (h, n, n) is added to
    the scores q·k·scaling, after `cap` was put on them; w_o (h, d_v, d), b_o (d): the output
    projection; `attended` (n, d): its output; `seen` (n, n): True where the mask lets a query see
    a key.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    pattern: Tensor
    scaling: float
    w_o: Tensor
    b_o: Tensor | None
    attended: Tensor
    seen: Tensor
    bias: Tensor | None = None
    cap: float | None = None

    @property
    def group(self) -> int:
        """How many heads share keys and values."""
        return self.q.size(0) // self.k.size(0)

    @property
    def values(self) -> Tensor:
        """The values of each head (h, n, d_v)."""
        return self.v.repeat_interleave(self.group, dim=0)


class FrozenLayer(ABC):
    """A layer whose norms, attention weights and MLP are held at what they were.

    `attention` is None in a layer that has none. `normed`: a norm stands between the stream that
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
        unbiased = y if bias is None else y - bias.detach()
        length = (unit * unit).sum(dim=-1, keepdim=True)
        scale = (unit * unbiased).sum(dim=-1, keepdim=True) / length.clamp_min(1e-30)
        norm = FrozenNorm(scale, weight, centred)
        if near(norm(x), unbiased):
            return replace(norm, constant=y - norm(x))
    return None


def _forms(module: nn.Module) -> Iterator[tuple[Tensor | None, bool]]:
    """The weights that a norm may multiply by, and whether it takes the mean away."""
    weight = getattr(module, "weight", None)
    weights = [None] if weight is None else [weight.detach(), 1 + weight.detach()]
    for centred in (True, False):
        for each in weights:
            yield each, centred


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
        """What the output layer reads: affine in the stream x (B, n, d)."""
        return self.factor * (x if self.norm is None else self.norm(x))


@dataclass(frozen=True, eq=False)
class FrozenRun:
    """One text's run.

    `embedded`: what was added up before the first layer, each (n, d); `constant` (n, d): what was
    added beside it, such as the bias of a norm. `streams`: the stream that arrives at each layer
    and that which leaves the last one (layers + 1), each (n, d). `output` is None where the model
    has no output layer of which logits are affine. `vocabulary` (V, d): what each token's embedding
    adds to the stream; None where a norm stands between. `rotary`: queries and keys are turned by
    their positions.
    """

    embedded: Mapping[Embedded, Tensor]
    constant: Tensor
    layers: Sequence[FrozenLayer]
    streams: Sequence[Tensor]
    output: FrozenOutput | None
    vocabulary: Tensor | None = None
    rotary: bool = False

    def __post_init__(self) -> None:
        total = torch.stack([*self.embedded.values(), self.constant]).sum(dim=0)
        assert near(total, self.streams[0])

    @property
    def n(self) -> int:
        """How many tokens there are."""
        return self.constant.size(0)
