"""A run held fixed, whichever engine it is of, and its scores and logits as sums over its parts.

With its norms and its attention weights as they were, a model is affine: a query, a key or a logit
is a sum over what was written into the residual stream (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits"). The gradient of such a number is followed back through the
layers; times what a head, the MLP or a bias added there, it is what this part contributes.

Letters in the shape comments: B batch, n tokens, d d_model, h heads, g heads of keys and values
(h is a multiple of g), d_k and d_v width of a head's keys and values, V vocabulary, S sums at once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from attnviz.models.engine import numbers
from attnviz.models.frozen.layer import FrozenAttention, FrozenLayer, FrozenOutput, near, only_at
from attnviz.records.heads import Head
from attnviz.records.parts import Part, Shares
from attnviz.records.why import ScoreRow

AT_ONCE = 1 << 22
"""Numbers of the gradients that are followed back at once."""
Embedded: TypeAlias = Literal["embedding", "position"]


@dataclass(frozen=True, eq=False)
class Walk:
    """Numbers that are affine in the stream at some layer, followed back to the embeddings.

    `at_attention`: for each layer below the gradient there of what attention adds (S, n, d);
    `shares`: the numbers as sums.
    """

    shares: Shares
    at_attention: Mapping[int, Tensor]


@dataclass(frozen=True, eq=False)
class StreamParts:
    """The stream that arrives at a layer, or what its MLP writes, as a sum.

    Each of the `parts` (P) is a vector of `vectors` (P, d), at a token of `tokens` (P); `rest`
    (n, d) is there whatever the tokens are.
    """

    layer: int
    parts: tuple[Part, ...]
    tokens: Tensor
    vectors: Tensor
    rest: Tensor

    @cached_property
    def _numbers(self) -> Mapping[Part, int]:
        return {part: number for number, part in enumerate(self.parts)}

    def values(self, gradient: Tensor) -> Tensor:
        """What each part adds to numbers (S, P), by their gradients (S, n, d)."""
        some = torch.split(torch.arange(len(self.parts)), len(self.rest))
        each = [(gradient[:, self.tokens[own]] * self.vectors[own]).sum(dim=-1) for own in some]
        return torch.cat(each, dim=1)

    def only(self, parts: Iterable[Part]) -> Tensor:
        """The sum of those of some parts that are among its own (n, d)."""
        own = [self._numbers[part] for part in parts if part in self._numbers]
        return torch.zeros_like(self.rest).index_add(0, self.tokens[own], self.vectors[own])


@dataclass(frozen=True, eq=False)
class FrozenRun:
    """One text's run.

    `embedded`: the parts added up before the first layer, each (n, d); `constant` (n, d): what was
    added beside it, such as the bias of a norm. `streams`: the stream that arrives at each layer
    and that which leaves the last one (layers + 1), each (n, d). `output` is None where the model
    has no output layer of which logits are affine. `vocabulary` (V, d): what each token's embedding
    adds to the stream; None where a norm is between. `rotary`: queries and keys are turned by
    their positions. `features`: parts in the place of all that wrote a stream; `fed`: of the MLPs
    of some layers.
    """

    embedded: Mapping[Embedded, Tensor]
    constant: Tensor
    layers: Sequence[FrozenLayer]
    streams: Sequence[Tensor]
    output: FrozenOutput | None
    vocabulary: Tensor | None = None
    rotary: bool = False
    features: StreamParts | None = None
    fed: Mapping[int, StreamParts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        total = torch.stack([*self.embedded.values(), self.constant]).sum(dim=0)
        assert near(total, self.streams[0])

    @property
    def n(self) -> int:
        return self.constant.size(0)

    @cached_property
    def _embeddings(self) -> StreamParts:
        kinds = len(self.embedded)
        tokens = torch.arange(self.n, device=self.constant.device).repeat(kinds)
        vectors = torch.cat([*self.embedded.values()])
        return StreamParts(
            0, parts_below(self.n, (*self.embedded,)), tokens, vectors, self.constant
        )

    def _below(self, layer: int) -> StreamParts:
        """The parts with which the stream that arrives at a layer begins."""
        below = self.features
        return self._embeddings if below is None or below.layer > layer else below

    @property
    def at_once(self) -> int:
        """The number of sums to walk back at a time."""
        return max(1, AT_ONCE // self.constant.numel())

    @cached_property
    def mlps(self) -> list[Tensor]:
        """The addition of each layer beside its attention (n, d), by difference."""
        layers = range(len(self.layers))
        return [self.streams[i + 1] - self.behind_attention(i) for i in layers]

    @torch.no_grad()
    def behind_attention(self, layer: int) -> Tensor:
        """The stream between a layer's attention and its MLP (n, d)."""
        stream, attention = self.streams[layer], self.layers[layer].attention
        attended = torch.zeros_like(stream) if attention is None else attention.attended
        return self.layers[layer].passes(stream[None], attended[None])[0]

    def row(self, head: Head, query: int) -> ScoreRow:
        """The scores and weights of one row."""
        a = self.attention(head)
        raw = a.scaling * (a.k[head.head // a.group] @ a.q[head.head, query])  # (n)
        capped = raw if a.cap is None else a.cap * torch.tanh(raw / a.cap)
        rows = torch.tensor([query])
        bias = None if a.bias is None else a.bias(rows)  # (h, 1, n)
        added = torch.zeros_like(raw) if bias is None else bias[head.head, 0]
        weights, scores = a.weights(rows)[head.head, 0], capped + added
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
            seen=a.seen(rows)[0].cpu().numpy(),
            sink=sink,
        )

    def attention(self, head: Head) -> FrozenAttention:
        """The attention of a head's layer."""
        attention = self.layers[head.layer].attention
        assert attention is not None  # heads are those of the model
        return attention

    def of_query(self, head: Head, query: int, keys: Tensor) -> Walk:
        """Scores by what wrote the stream at the query, for several keys (S, d_k)."""

        def score(x: Tensor) -> Tensor:
            return (self.layers[head.layer].asks(x)[0][:, head.head, query] * keys).sum(dim=-1)

        return self.walked(head.layer, len(keys), score)

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

    def shares(self, rows: Tensor) -> Shares:
        """Sums of logits after the last position, in directions (S, d), over all parts."""
        return self.of_logits(self.n - 1, rows).shares

    def of_taken(self, walk: Walk, head: Head, source: int) -> tuple[Walk, int]:
        """The parts of a head's part in a walk's only sum, and the row that took most of it."""
        a, to = self.attention(head), walk.at_attention[head.layer][0]  # (n, d)
        direction_of_values = to @ a.w_o[head.head].T  # (n, d_v)
        taken, rows = to.new_zeros(len(to)), _reached(to)
        for some in a.blocks(rows):
            taken[some] = a.weights(some)[head.head, :, source]
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
        at_attention, values, below = dict[int, Tensor](), list[Tensor](), self._below(layer)
        for i in reversed(range(below.layer, layer)):
            if fed := self.fed.get(i):
                values.append(fed.values(gradient))
                constant = constant + (gradient * fed.rest).sum(dim=(-1, -2))
            else:
                values.append((gradient * self.mlps[i]).sum(dim=-1))  # (S, n)
            (gradient, to_attention), more = self.through(i, gradient)
            constant = constant + more
            attention = self.layers[i].attention
            if attention is not None:
                at_attention[i] = to_attention
                values.append(_taken(attention, to_attention).flatten(1))
                if attention.b_o is not None:
                    constant = constant + (to_attention @ attention.b_o).sum(dim=-1)
        values.append(below.values(gradient))
        constant = constant + (gradient * below.rest).sum(dim=(-1, -2))
        values.append(constant[:, None])
        heads = (
            0 if a is None else a.q.size(0) for a in (f.attention for f in self.layers[:layer])
        )
        mlps = tuple((i, fed.parts) for i, fed in self.fed.items())
        parts = parts_of_walk(self.n, tuple(heads), below.parts, below.layer, mlps)
        together = torch.cat(values, dim=1).cpu().double().numpy()
        shares = Shares(parts, together, total.cpu().double().numpy())
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
        return self.vectors([parts], layer)[0]

    def vectors(self, collections: Sequence[Sequence[Part]], layer: int) -> Tensor:
        """The vectors of several collections of parts (S, n, d), by one pass over each pattern."""
        sources, below = [_sources(parts) for parts in collections], self._below(layer)
        zeros = torch.zeros_like(self.constant)[None]
        # 1 where a collection has the biases (S, 1, 1)
        biased = zeros.new_tensor([any(p.source is None for p in c) for c in collections])
        biased = biased[:, None, None]
        at = biased * below.rest + torch.stack([below.only(parts) for parts in collections])
        for i in range(below.layer, layer):
            frozen = self.layers[i]
            attended = torch.zeros_like(at)
            if (attention := frozen.attention) is not None:
                heads = range(attention.q.size(0))
                own = [{head: each["head", i, head] for head in heads} for each in sources]
                attended = attention.outputs(own)
                if attention.b_o is not None:
                    attended = attended + biased * attention.b_o
            at = frozen.passes(at, attended) - (1 - biased) * frozen.passes(zeros, zeros)
            if fed := self.fed.get(i):
                at = at + biased * fed.rest + torch.stack([fed.only(c) for c in collections])
            else:
                written = (only_at(self.mlps[i], each["mlp", i, None]) for each in sources)
                at = at + torch.stack([*written])
        return at

    def asked_by(
        self, head: Head, query: int, coefficients: Tensor, parts: Sequence[Sequence[Part]]
    ) -> Tensor:
        """The addition of each collection of parts to a query and to a sum of keys (2, S, d_k)."""
        a, size = self.attention(head), self.at_once

        def asked(at: Tensor) -> Tensor:
            q, k, _ = self.layers[head.layer].asks(at)
            keys = torch.einsum("snk,n->sk", k[:, head.head // a.group], coefficients)
            return torch.stack([q[:, head.head, query], a.scaling * keys])

        with torch.no_grad():
            batches = [parts[i : i + size] for i in range(0, len(parts), size)]
            both = torch.cat([asked(self.vectors(b, head.layer)) for b in batches], dim=1)
            zero = asked(torch.zeros_like(self.constant)[None])
        biases = [any(part.kind == "biases" for part in some) for some in parts]
        return both - zero * (1 - both.new_tensor(biases))[:, None]


Sources: TypeAlias = Mapping[tuple[str, int | None, int | None], Sequence[int]]


def _sources(parts: Sequence[Part]) -> Sources:
    """The tokens that each embedding, head or MLP among some parts is from."""
    sources = defaultdict[tuple[str, int | None, int | None], list[int]](list)
    for part in parts:
        if part.source is not None:
            sources[part.kind, part.layer, part.head].append(part.source)
    return sources


@lru_cache(maxsize=4)
def parts_below(n: int, embedded: tuple[Embedded, ...]) -> tuple[Part, ...]:
    """The parts of the stream before the first layer."""
    return tuple(Part(kind, source=token) for kind in embedded for token in range(n))


@lru_cache(maxsize=4)
def parts_of_walk(
    n: int,
    heads: tuple[int, ...],
    below: tuple[Part, ...],
    first: int = 0,
    fed: tuple[tuple[int, tuple[Part, ...]], ...] = (),
) -> tuple[Part, ...]:
    """The parts of a walk down to the layer `first`, by all layers' heads, in its order.

    `fed`: layers, and the parts in the place of their MLPs. A long text has as many parts that
    walks must share them.
    """
    parts = list[Part]()
    for i in reversed(range(first, len(heads))):
        parts += dict(fed).get(i) or [Part("mlp", i, None, token) for token in range(n)]
        parts += [Part("head", i, h, token) for h in range(heads[i]) for token in range(n)]
    return *parts, *below, Part("biases")


def _reached(gradient: Tensor) -> Tensor:
    """The rows of a gradient (…, n, d) that are not 0."""
    return gradient.abs().sum(dim=-1).reshape(-1, gradient.size(-2)).sum(dim=0).nonzero()[:, 0]


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
    values, (sums, n, _) = attention.values, gradient.shape
    heads, _, width = values.shape
    w_o = attention.w_o.permute(2, 0, 1).reshape(-1, heads * width)
    at_keys = gradient.new_zeros(heads, n, sums * width)
    for rows in attention.blocks(_reached(gradient)):
        # all sums beside each other, so that a block of weights is multiplied once (h, rows, S·d_v)
        by_value = (gradient[:, rows] @ w_o).view(sums, len(rows), heads, width)
        by_value = by_value.permute(2, 1, 0, 3).reshape(heads, len(rows), -1)
        weights = attention.first_weights(rows).transpose(1, 2)  # (h, m, rows)
        at_keys[:, : weights.size(1)] += weights @ by_value
    shares = (at_keys.view(heads, n, sums, width) * values[:, :, None]).sum(dim=-1)
    return shares.permute(2, 0, 1)
