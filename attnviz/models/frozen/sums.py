"""Scores and logits as sums over the parts of a run that is held fixed.

Every such number is an affine function of the residual stream at some layer. Its gradient is
followed back through the layers, each of which is affine: at each layer the gradient times what a
head, the MLP or a bias added there is what this part contributes. No part is run by itself.

Letters in the shape comments as in `frozen/run.py`; S sums at once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.sampling import numbers
from attnviz.records.heads import Head
from attnviz.records.parts import Part, PartKind, ScoreRow, Shares

# What a run held fixed offers, whichever engine it is of.
#
# Letters in the shape comments: B batch, n tokens, d d_model, h heads, g heads of keys and values
# (h is a multiple of g), d_k and d_v width of a head's keys and values, V vocabulary.


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


class FrozenLayer(Protocol):
    """A layer whose norms, attention weights and MLP are held at what they were.

    `attention` is None in a layer that has none.
    """

    @property
    def attention(self) -> FrozenAttention | None:
        """What its heads did."""

    @property
    def normed(self) -> bool:
        """Whether a norm stands between the stream that arrives and its attention's scores."""

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        """The stream that leaves it, without its MLP's output: affine in both (B, n, d).

        `x` is the stream that arrives, `attended` the output of its attention.
        """

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """The queries (B, h, n, d_k), keys and values (B, g, n, d_k or d_v): affine in x (B, n, d).

        `free`: let the norms follow x, as the model does; then it is not affine.
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


@dataclass(eq=False)
class Walk:
    """Numbers that are affine in the stream at some layer, followed back to the embeddings.

    `at_attention`: for each layer below the gradient there of what attention adds (S, n, d);
    `shares`: the numbers as sums.
    """

    shares: Shares
    at_attention: dict[int, Tensor] = field(default_factory=dict)


class Sums:
    """The sums that a run held fixed gives."""

    def __init__(self, run: FrozenRun) -> None:
        self.run = run

    @cached_property
    def mlps(self) -> list[Tensor]:
        """What each layer adds beside its attention (n, d), by difference."""
        return [self._beside(layer) for layer in range(len(self.run.layers))]

    def _beside(self, layer: int) -> Tensor:
        stream, after = self.run.streams[layer], self.run.streams[layer + 1]
        attention = self.run.layers[layer].attention
        attended = torch.zeros_like(stream) if attention is None else attention.attended
        with torch.no_grad():
            return after - self.run.layers[layer].passes(stream[None], attended[None])[0]

    # ---- a head's row ----

    def row(self, head: Head, query: int) -> ScoreRow:
        """The scores and weights of one row."""
        a = self.attention(head)
        raw = a.scaling * (a.k[head.head // a.group] @ a.q[head.head, query])  # (n)
        capped = raw if a.cap is None else a.cap * torch.tanh(raw / a.cap)
        added = torch.zeros_like(raw) if a.bias is None else a.bias[head.head, query]
        weights, scores = a.pattern[head.head, query], capped + added
        seen = a.seen[query]
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
            seen=seen.cpu().numpy(),
            sink=sink,
        )

    def attention(self, head: Head) -> FrozenAttention:
        """The attention of a head's layer."""
        attention = self.run.layers[head.layer].attention
        assert attention is not None  # heads are those of the model
        return attention

    # ---- contrasts: sums over keys of coefficients times scores ----

    def of_query(self, head: Head, query: int, coefficients: Tensor) -> Walk:
        """A contrast by what wrote the stream at the query: (1,) sums.

        `coefficients` (n): of each key's score.
        """
        a = self.attention(head)
        keys = a.scaling * (coefficients @ a.k[head.head // a.group])  # (d_k)

        def asked(x: Tensor) -> Tensor:
            return self.run.layers[head.layer].asks(x)[0][:, head.head, query] @ keys

        return self.walked(head.layer, 1, asked)

    def of_keys(self, head: Head, queries: Tensor, coefficients: Tensor) -> Walk:
        """Contrasts by what wrote the stream at the keys, for several queries (S, d_k)."""
        a = self.attention(head)

        def answered(x: Tensor) -> Tensor:
            keys = self.run.layers[head.layer].asks(x)[1][:, head.head // a.group]  # (S, n, d_k)
            return a.scaling * torch.einsum("snk,n,sk->s", keys, coefficients, queries)

        return self.walked(head.layer, len(queries), answered)

    # ---- logits ----

    def of_logits(self, position: int, rows: Tensor) -> Walk:
        """Sums of logits after a position, in the directions of `rows` (S, d): without biases."""
        output = self.run.output
        assert output is not None  # who asks has looked

        def said(x: Tensor) -> Tensor:
            return (output.reads(x)[:, position] * rows).sum(dim=-1)

        return self.walked(len(self.run.layers), len(rows), said)

    # ---- what a head took from a token ----

    def of_taken(self, walk: Walk, head: Head, source: int) -> tuple[Walk, int]:
        """What a head's part in a walk's only sum is made of, and the row that took most of it."""
        a, to = self.attention(head), walk.at_attention[head.layer][0]  # (n, d)
        asked = to @ a.w_o[head.head].T  # (n, d_v)
        taken = a.pattern[head.head, :, source]  # (n)
        row = int((taken * (asked @ a.values[head.head, source])).abs().argmax())
        direction = taken @ asked  # (d_v)

        def took(x: Tensor) -> Tensor:
            values = self.run.layers[head.layer].asks(x)[2][:, head.head // a.group, source]
            return values @ direction

        return self.walked(head.layer, 1, took), row

    # ---- the walk ----

    def walked(self, layer: int, sums: int, number: Callable[[Tensor], Tensor]) -> Walk:
        """Follow numbers (S) that are affine in the stream (S, n, d) at a layer back from there."""
        stream = self.run.streams[layer]
        gradient, constant = _gradient(number, stream.new_zeros((sums, *stream.shape)))
        with torch.no_grad():
            total = number(stream.expand(sums, *stream.shape))
        at_attention, parts, values = dict[int, Tensor](), list[Part](), list[Tensor]()
        n = range(self.run.n)
        for i in reversed(range(layer)):
            values.append((gradient * self.mlps[i]).sum(dim=-1))  # (S, n)
            parts += [Part("mlp", i, None, token) for token in n]
            gradient, to_attention, more = self._through(i, gradient)
            constant = constant + more
            attention = self.run.layers[i].attention
            if attention is not None:
                at_attention[i] = to_attention
                taken = _taken(attention, to_attention)  # (S, h, n)
                values.append(taken.flatten(1))
                parts += [Part("head", i, h, token) for h in range(taken.size(1)) for token in n]
                if attention.b_o is not None:
                    constant = constant + (to_attention @ attention.b_o).sum(dim=-1)
        for kind, vectors in self.run.embedded.items():
            values.append((gradient * vectors).sum(dim=-1))
            parts += [Part(kind, source=token) for token in n]
        constant = constant + (gradient * self.run.constant).sum(dim=(-1, -2))
        values.append(constant[:, None])
        parts.append(Part("biases"))
        together = torch.cat(values, dim=1).cpu().double().numpy()
        shares = Shares(tuple(parts), together, total.cpu().double().numpy())
        return Walk(shares, at_attention)

    def _through(self, layer: int, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients (S, n, d) by the stream that arrives and by what attention adds; a constant."""
        zeros = torch.zeros_like(gradient)
        with torch.enable_grad():
            x, attended = zeros.clone().requires_grad_(), zeros.clone().requires_grad_()
            out = (self.run.layers[layer].passes(x, attended) * gradient).sum(dim=(-1, -2))
            by_x, by_attended = _by(out, x, attended)
        return by_x, by_attended, out.detach()

    # ---- parts by themselves ----

    def vector(self, parts: Iterable[Part], layer: int) -> Tensor:
        """What some parts, each from a token, are in the stream that arrives at a layer (n, d).

        With the biases, it is also what the layers themselves add on the way.
        """
        wanted = Wanted.of(parts)
        zeros = torch.zeros_like(self.run.constant)[None]
        at = zeros + (self.run.constant if wanted.biases else 0)
        for kind, vectors in self.run.embedded.items():
            at = at + self._from(vectors, wanted.sources[kind, None, None])
        for i, frozen in enumerate(self.run.layers[:layer]):
            attended = zeros + self._attended(i, wanted)
            if wanted.biases or at.any() or attended.any():
                at = frozen.passes(at, attended)
                at = at if wanted.biases else at - frozen.passes(zeros, zeros)
            at = at + self._from(self.mlps[i], wanted.sources["mlp", i, None])
        return at[0]

    def _attended(self, layer: int, wanted: "Wanted") -> Tensor:
        """What heads of a layer take from their wanted sources, together (n, d)."""
        attention = self.run.layers[layer].attention
        total = torch.zeros_like(self.run.constant)
        if attention is None:
            return total
        for head in range(attention.q.size(0)):
            sources = wanted.sources["head", layer, head]
            if sources:
                values = self._from(attention.values[head], sources)
                total = total + attention.pattern[head] @ values @ attention.w_o[head]
        if wanted.biases and attention.b_o is not None:
            total = total + attention.b_o
        return total

    def _from(self, vectors: Tensor, sources: Sequence[int]) -> Tensor:
        """The vectors (n, …) of some tokens, and zeros for the others."""
        kept = torch.zeros_like(vectors)
        kept[sources] = vectors[sources]
        return kept

    def query_of(self, head: Head, query: int, parts: Sequence[Sequence[Part]]) -> Tensor:
        """What each collection of parts adds to a query vector (S, d_k)."""
        layer = self.run.layers[head.layer]
        with torch.no_grad():
            at = torch.stack([self.vector(some, head.layer) for some in parts])  # (S, n, d)
            made: Tensor = layer.asks(at)[0][:, head.head, query]
            zero = layer.asks(torch.zeros_like(at[:1]))[0][:, head.head, query]
        biases = [any(part.kind == "biases" for part in some) for some in parts]
        return made - zero * (1 - made.new_tensor(biases))[:, None]


@dataclass(frozen=True)
class Wanted:
    """The tokens that parts are from, by (kind, layer, head); and whether biases are wanted."""

    sources: Mapping[tuple[PartKind, int | None, int | None], list[int]]
    biases: bool

    @classmethod
    def of(cls, parts: Iterable[Part]) -> "Wanted":
        """The parts, sorted."""
        sources, biases = defaultdict[Any, list[int]](list), False
        for part in parts:
            if part.source is None:
                biases = True
            else:
                sources[part.kind, part.layer, part.head].append(part.source)
        return cls(sources, biases)


def _gradient(number: Callable[[Tensor], Tensor], zeros: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient (S, n, d) of numbers (S), and what they are without any stream (S)."""
    with torch.enable_grad():
        x = zeros.requires_grad_()
        made = number(x)
        (gradient,) = _by(made, x)
    return gradient, made.detach()


def _by(numbers: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the sum of some numbers by their inputs, on which they may not depend."""
    if not numbers.requires_grad:
        return tuple(map(torch.zeros_like, inputs))
    return torch.autograd.grad(numbers.sum(), inputs, allow_unused=True, materialize_grads=True)


def _taken(attention: FrozenAttention, gradient: Tensor) -> Tensor:
    """What each head took from each token (S, h, n), by the gradient of what it adds (S, n, d)."""
    rows = gradient.abs().sum(dim=(0, 2)).nonzero()[:, 0]
    sums = []
    for one in gradient[:, rows]:  # (rows, d)
        asked = torch.einsum("rd,hvd->hrv", one, attention.w_o)
        weighed = asked @ attention.values.transpose(1, 2)  # (h, rows, n)
        sums.append((weighed * attention.pattern[:, rows]).sum(dim=1))
    return torch.stack(sums)


# A norm with the statistic of each token held at what it was: an affine map.
#
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
