"""A run held fixed, whichever engine it is of, and its scores and logits as sums over its parts.

With its norms and its attention weights as they were, a model is affine: a query, a key or a logit
is a sum over what was written into the residual stream (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits"). The gradient of such a number is followed back through the
layers; times what a head, the MLP or a bias added there, it is what this part contributes.

Letters in the shape comments: B batch, n tokens, d d_model, h heads, g heads of keys and values
(h is a multiple of g), d_k and d_v width of a head's keys and values, V vocabulary, S sums at once.
"""

import itertools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.engine import numbers
from attnviz.records.heads import Head
from attnviz.records.parts import Part, PartKind, ScoreRow, Shares

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
    """Rows of n tokens (n, ...), repeated for those of several texts (B·n, d)."""
    if x.dim() > 2:
        return of_tokens
    return of_tokens.repeat(len(x) // len(of_tokens), 1)


def frozen_norm(module: nn.Module, x: Tensor, y: Tensor) -> FrozenNorm | None:
    """The norm that gave y for x; None where it is no norm of this form."""
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


@dataclass(frozen=True, eq=False)
class Walk:
    """Numbers that are affine in the stream at some layer, followed back to the embeddings.

    `at_attention`: for each layer below the gradient there of what attention adds (S, n, d);
    `shares`: the numbers as sums.
    """

    shares: Shares
    at_attention: Mapping[int, Tensor]


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
        return self.constant.size(0)

    @cached_property
    def mlps(self) -> list[Tensor]:
        """The addition of each layer beside its attention (n, d), by difference."""
        added, streams = list[Tensor](), self.streams
        for layer, stream, after in zip(self.layers, streams, streams[1:], strict=False):
            none = torch.zeros_like(stream)
            attended = none if layer.attention is None else layer.attention.attended
            with torch.no_grad():
                added.append(after - layer.passes(stream[None], attended[None])[0])
        return added

    def row(self, head: Head, query: int) -> ScoreRow:
        """The scores and weights of one row."""
        a = self.attention(head)
        raw = a.scaling * (a.k[head.head // a.group] @ a.q[head.head, query])  # (n)
        capped = raw if a.cap is None else a.cap * torch.tanh(raw / a.cap)
        added = torch.zeros_like(raw) if a.bias is None else a.bias[head.head, query]
        weights, scores = a.pattern[head.head, query], capped + added
        left = 1 - float(weights.double().sum())
        strongest = int(weights.argmax())
        sink = None
        if left > 1e-4:  # a learned sink takes the rest
            sink = float(scores[strongest]) + float(np.log(left / float(weights[strongest])))
        return ScoreRow(
            raw=numbers(raw),
            scores=numbers(scores),
            added=numbers(added),
            weights=numbers(weights),
            seen=a.seen[query].cpu().numpy(),
            sink=sink,
        )

    def attention(self, head: Head) -> FrozenAttention:
        """The attention of a head's layer."""
        attention = self.layers[head.layer].attention
        assert attention is not None  # heads are those of the model
        return attention

    def of_query(self, head: Head, query: int, coefficients: Tensor) -> Walk:
        """A contrast by what wrote the stream at the query: (1,) sums.

        `coefficients` (n): of each key's score.
        """
        a = self.attention(head)
        keys = a.scaling * (coefficients @ a.k[head.head // a.group])  # (d_k)

        def score(x: Tensor) -> Tensor:
            return self.layers[head.layer].asks(x)[0][:, head.head, query] @ keys

        return self.walked(head.layer, 1, score)

    def of_keys(self, head: Head, queries: Tensor, coefficients: Tensor) -> Walk:
        """Contrasts by what wrote the stream at the keys, for several queries (S, d_k)."""
        a = self.attention(head)

        def score(x: Tensor) -> Tensor:
            keys = self.layers[head.layer].asks(x)[1][:, head.head // a.group]  # (S, n, d_k)
            return a.scaling * torch.einsum("snk,n,sk->s", keys, coefficients, queries)

        return self.walked(head.layer, len(queries), score)

    def of_logits(self, position: int, rows: Tensor) -> Walk:
        """Sums of logits after a position, in the directions of `rows` (S, d): without biases."""
        output = self.output
        assert output is not None  # the caller has seen that there is one

        def logit(x: Tensor) -> Tensor:
            return (output.reads(x)[:, position] * rows).sum(dim=-1)

        return self.walked(len(self.layers), len(rows), logit)

    def of_taken(self, walk: Walk, head: Head, source: int) -> tuple[Walk, int]:
        """The parts of a head's part in a walk's only sum, and the row that took most of it."""
        a, to = self.attention(head), walk.at_attention[head.layer][0]  # (n, d)
        direction_of_values = to @ a.w_o[head.head].T  # (n, d_v)
        taken = a.pattern[head.head, :, source]  # (n)
        row = int((taken * (direction_of_values @ a.values[head.head, source])).abs().argmax())
        direction = taken @ direction_of_values  # (d_v)

        def value(x: Tensor) -> Tensor:
            values = self.layers[head.layer].asks(x)[2][:, head.head // a.group, source]
            return values @ direction

        return self.walked(head.layer, 1, value), row

    def walked(self, layer: int, sums: int, number: Callable[[Tensor], Tensor]) -> Walk:
        """Follow numbers (S) that are affine in the stream (S, n, d) at a layer back from there."""
        stream = self.streams[layer]
        (gradient,), constant = gradients(number, stream.new_zeros((sums, *stream.shape)))
        with torch.no_grad():
            total = number(stream.expand(sums, *stream.shape))
        at_attention, parts, values = dict[int, Tensor](), list[Part](), list[Tensor]()
        n = range(self.n)
        for i in reversed(range(layer)):
            values.append((gradient * self.mlps[i]).sum(dim=-1))  # (S, n)
            parts += [Part("mlp", i, None, token) for token in n]
            (gradient, to_attention), more = self.through(i, gradient)
            constant = constant + more
            attention = self.layers[i].attention
            if attention is not None:
                at_attention[i] = to_attention
                taken = _taken(attention, to_attention)  # (S, h, n)
                values.append(taken.flatten(1))
                parts += [Part("head", i, h, token) for h in range(taken.size(1)) for token in n]
                if attention.b_o is not None:
                    constant = constant + (to_attention @ attention.b_o).sum(dim=-1)
        for kind, vectors in self.embedded.items():
            values.append((gradient * vectors).sum(dim=-1))
            parts += [Part(kind, source=token) for token in n]
        constant = constant + (gradient * self.constant).sum(dim=(-1, -2))
        values.append(constant[:, None])
        parts.append(Part("biases"))
        together = torch.cat(values, dim=1).cpu().double().numpy()
        shares = Shares(tuple(parts), together, total.cpu().double().numpy())
        return Walk(shares, at_attention)

    def through(self, layer: int, gradient: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Gradients (S, n, d) by the stream that arrives and by what attention adds; a constant."""

        def passed(x: Tensor, attended: Tensor) -> Tensor:
            return (self.layers[layer].passes(x, attended) * gradient).sum(dim=(-1, -2))

        return gradients(passed, torch.zeros_like(gradient), torch.zeros_like(gradient))

    def vector(self, parts: Sequence[Part], layer: int) -> Tensor:
        """The sum of some parts, each from a token, in the stream that arrives at a layer (n, d).

        With the biases, it is also what the layers themselves add on the way.
        """
        biases = any(part.source is None for part in parts)
        sources = defaultdict[tuple[PartKind, int | None, int | None], list[int]](list)
        for part in parts:
            if part.source is not None:
                sources[part.kind, part.layer, part.head].append(part.source)
        zeros = torch.zeros_like(self.constant)[None]
        at = zeros + (self.constant if biases else 0)
        for kind, vectors in self.embedded.items():
            at = at + _only(vectors, sources[kind, None, None])
        for i, frozen in enumerate(self.layers[:layer]):
            attended = zeros
            if (attention := frozen.attention) is not None:
                for head in range(attention.q.size(0)):
                    if taken := sources["head", i, head]:
                        values = _only(attention.values[head], taken)
                        attended = attended + attention.pattern[head] @ values @ attention.w_o[head]
                if biases and attention.b_o is not None:
                    attended = attended + attention.b_o
            if biases or at.any() or attended.any():
                at = frozen.passes(at, attended)
                at = at if biases else at - frozen.passes(zeros, zeros)
            at = at + _only(self.mlps[i], sources["mlp", i, None])
        return at[0]

    def query_of(self, head: Head, query: int, parts: Sequence[Sequence[Part]]) -> Tensor:
        """The addition of each collection of parts to a query vector (S, d_k)."""
        layer = self.layers[head.layer]
        with torch.no_grad():
            at = torch.stack([self.vector(some, head.layer) for some in parts])  # (S, n, d)
            queries: Tensor = layer.asks(at)[0][:, head.head, query]
            zero = layer.asks(torch.zeros_like(at[:1]))[0][:, head.head, query]
        biases = [any(part.kind == "biases" for part in some) for some in parts]
        return queries - zero * (1 - queries.new_tensor(biases))[:, None]


def _only(vectors: Tensor, tokens: Sequence[int]) -> Tensor:
    """The vectors (n, …) of some tokens, and zeros for the others."""
    kept = torch.zeros_like(vectors)
    kept[tokens] = vectors[tokens]
    return kept


def gradients(number: Callable[..., Tensor], *inputs: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """The gradients of affine numbers (S) by inputs that are zeros, and the numbers there.

    The numbers may depend on none of the inputs.
    """
    with torch.enable_grad():
        numbers = number(*(each.requires_grad_() for each in inputs))
        if not numbers.requires_grad:
            return tuple(map(torch.zeros_like, inputs)), numbers
        by_input = torch.autograd.grad(
            numbers.sum(), inputs, allow_unused=True, materialize_grads=True
        )
    return by_input, numbers.detach()


def _taken(attention: FrozenAttention, gradient: Tensor) -> Tensor:
    """The share of each token in each head (S, h, n), by the gradient of its addition (S, n, d)."""
    rows = gradient.abs().sum(dim=(0, 2)).nonzero()[:, 0]
    sums = []
    for one in gradient[:, rows]:  # (rows, d)
        directions = torch.einsum("rd,hvd->hrv", one, attention.w_o)
        weighed = directions @ attention.values.transpose(1, 2)  # (h, rows, n)
        sums.append((weighed * attention.pattern[:, rows]).sum(dim=1))
    return torch.stack(sums)
