"""Scores and logits as sums over the parts of a run that is held fixed.

Every such number is an affine function of the residual stream at some layer. Its gradient is
followed back through the layers, each of which is affine: at each layer the gradient times what a
head, the MLP or a bias added there is what this part contributes. No part is run by itself.

Letters in the shape comments as in `frozen/run.py`; S sums at once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attnviz.models.frozen.run import FrozenAttention, FrozenRun
from attnviz.models.sampling import numbers
from attnviz.records.heads import Head
from attnviz.records.parts import Part, PartKind, ScoreRow, Shares


@dataclass(eq=False)
class Walk:
    """Numbers that are affine in the stream at some layer, followed back to the embeddings.

    `at_attention`: for each layer below the gradient there of what attention adds (S, n, d);
    `shares`: the numbers as sums.
    """

    shares: Shares
    at_attention: dict[int, Tensor] = field(default_factory=dict)


class RunSums:
    """The sums that a run held fixed gives."""

    def __init__(self, run: FrozenRun) -> None:
        self.run = run

    @cached_property
    def mlps(self) -> list[Tensor]:
        """What each layer adds beside its attention (n, d), by difference."""
        added, streams = list[Tensor](), self.run.streams
        for layer, stream, after in zip(self.run.layers, streams, streams[1:], strict=False):
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
        attention = self.run.layers[head.layer].attention
        assert attention is not None  # heads are those of the model
        return attention

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

    def of_logits(self, position: int, rows: Tensor) -> Walk:
        """Sums of logits after a position, in the directions of `rows` (S, d): without biases."""
        output = self.run.output
        assert output is not None  # who asks has looked

        def said(x: Tensor) -> Tensor:
            return (output.reads(x)[:, position] * rows).sum(dim=-1)

        return self.walked(len(self.run.layers), len(rows), said)

    def of_taken(self, walk: Walk, head: Head, source: int) -> tuple[Walk, int]:
        """What a head's part in a walk's only sum is made of, and the row that took most of it."""
        a, to = self.attention(head), walk.at_attention[head.layer][0]  # (n, d)
        direction_of_values = to @ a.w_o[head.head].T  # (n, d_v)
        taken = a.pattern[head.head, :, source]  # (n)
        row = int((taken * (direction_of_values @ a.values[head.head, source])).abs().argmax())
        direction = taken @ direction_of_values  # (d_v)

        def took(x: Tensor) -> Tensor:
            values = self.run.layers[head.layer].asks(x)[2][:, head.head // a.group, source]
            return values @ direction

        return self.walked(head.layer, 1, took), row

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

    def vector(self, parts: Iterable[Part], layer: int) -> Tensor:
        """What some parts, each from a token, are in the stream that arrives at a layer (n, d).

        With the biases, it is also what the layers themselves add on the way.
        """
        sources, biases = (
            defaultdict[tuple[PartKind, int | None, int | None], list[int]](list),
            False,
        )
        for part in parts:
            if part.source is None:
                biases = True
            else:
                sources[part.kind, part.layer, part.head].append(part.source)
        zeros = torch.zeros_like(self.run.constant)[None]
        at = zeros + (self.run.constant if biases else 0)
        for kind, vectors in self.run.embedded.items():
            at = at + _only(vectors, sources[kind, None, None])
        for i, frozen in enumerate(self.run.layers[:layer]):
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
        """What each collection of parts adds to a query vector (S, d_k)."""
        layer = self.run.layers[head.layer]
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


def _gradient(number: Callable[[Tensor], Tensor], zeros: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient (S, n, d) of numbers (S), and what they are without any stream (S)."""
    with torch.enable_grad():
        x = zeros.requires_grad_()
        numbers = number(x)
        (gradient,) = _by(numbers, x)
    return gradient, numbers.detach()


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
        directions = torch.einsum("rd,hvd->hrv", one, attention.w_o)
        weighed = directions @ attention.values.transpose(1, 2)  # (h, rows, n)
        sums.append((weighed * attention.pattern[:, rows]).sum(dim=1))
    return torch.stack(sums)
