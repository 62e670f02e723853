"""What a run held fixed offers, whichever engine it is of.

Letters in the shape comments: B batch, n tokens, d d_model, h heads, g heads of keys and values
(h is a multiple of g), d_k and d_v width of a head's keys and values, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import torch
from torch import Tensor

NEAR = 1e-5
"""How near a sum must be to what was observed, as a share of the largest number."""
Embedded: TypeAlias = Literal["embedding", "position"]


@dataclass(frozen=True)
class Attention:
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


class FrozenLayer(Protocol):
    """A layer whose norms, attention weights and MLP are held at what they were.

    `attention` is None in a layer that has none.
    """

    @property
    def attention(self) -> Attention | None:
        """What its heads did."""

    @property
    def normed(self) -> bool:
        """Whether a norm stands between the stream that arrives and its attention's scores."""

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        """The stream that leaves it, without its MLP's output: affine in both (B, n, d).

        Args:
            x: the stream that arrives (B, n, d).
            attended: the output of its attention (B, n, d).
        """

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """The queries (B, h, n, d_k), keys and values (B, g, n, d_k or d_v): affine in x.

        Args:
            x: the stream that arrives (B, n, d).
            free: let the norms follow x, as the model does; then it is not affine.
        """


class FrozenOutput(Protocol):
    """The way from the last layer to the logits, with its norm held at what it was."""

    def reads(self, x: Tensor) -> Tensor:
        """What the output layer reads: affine in the stream x (B, n, d)."""

    @property
    def weight(self) -> Tensor:
        """The direction of each token's logit (V, d)."""

    @property
    def bias(self) -> Tensor | None:
        """What is added to each token's logit (V)."""


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


def near(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape and, up to rounding, the same numbers."""
    return a.shape == b.shape and bool((a - b).abs().max() <= NEAR * (1e-6 + b.abs().max()))
