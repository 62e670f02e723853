"""The last position of a text: the tokens it reads, and how far each part of it moves a logit.

`writes` has the direct effect of every head at other positions, from a run that is held fixed.

With the last norm held at what it was, a logit is affine in what was added to the residual stream
at that position: the direct effect of a head, key by key, is exact (Elhage et al. 2021, "A
Mathematical Framework for Transformer Circuits"; nostalgebraist 2020). One pass gives it, and keeps
nothing of other positions but the values that they are read with.

Letters in the shape comments as in `models/frozen/run.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.engine import numbers
from attnviz.models.frozen.layer import FrozenOutput
from attnviz.models.frozen.run import (
    Embedded,
    FrozenRun,
    gradients,
    parts_below,
    parts_of_walk,
)
from attnviz.records.capture import FloatArray
from attnviz.records.parts import Shares
from attnviz.records.tokens import Ids

AT_ONCE = 16
"""Sums of logits whose effects are computed at once."""


def value_lengths(v: Tensor, w_o: Tensor) -> Tensor:
    """(h, n): ‖v·W_O‖ of values (g, n, d_v), which heads may share, and w_o (h, d_v, d)."""
    v = v.repeat_interleave(len(w_o) // len(v), dim=0)
    squares = w_o @ w_o.transpose(1, 2)  # (h, d_v, d_v)
    return ((v @ squares) * v).sum(dim=-1).clamp_min(0).sqrt()


@dataclass(frozen=True, eq=False)
class LastLayer:
    """A layer at the last position.

    `weights` (h, n): the row of each head; v (g, n, d_v), w_o (h, d_v, d): the values, and the
    output projection; `gate` (h, d_v or 1): what a gate behind the softmax lets through. `added`
    is affine in vectors (B, 1, d): what the stream gets of an attention output; `attended`,
    `written` (d): that output, and all that the layer adds.
    """

    weights: Tensor
    v: Tensor
    w_o: Tensor
    gate: Tensor | None
    added: Callable[[Tensor], Tensor]
    attended: Tensor
    written: Tensor

    @cached_property
    def lengths(self) -> Tensor:
        """(h, n): ‖v·W_O‖ of each key."""
        return value_lengths(self.v, self.w_o)

    @property
    def size(self) -> Tensor:
        """An upper bound on the sum of the lengths that the heads take."""
        taken = (self.weights * self._values.norm(dim=-1)).sum(dim=1)
        size: Tensor = taken @ torch.linalg.vector_norm(self.w_o, dim=(1, 2))
        return size

    @property
    def heads(self) -> Tensor:
        """(d): what the heads add up to, without the bias of their projection."""
        z = (self.weights[:, None] @ self._values)[:, 0]  # (h, d_v)
        z = z if self.gate is None else z * self.gate
        return torch.einsum("hv,hvd->d", z, self.w_o)

    def effects(self, direction: Tensor) -> Tensor:
        """(S, h, n): how far what each key gives goes along directions (S, d)."""
        by_value = torch.einsum("sd,hvd->shv", direction, self.w_o)
        if self.gate is not None:
            by_value = by_value * self.gate
        return torch.einsum("shv,hnv->shn", by_value, self._values) * self.weights

    @property
    def _values(self) -> Tensor:
        return self.v.repeat_interleave(len(self.weights) // len(self.v), dim=0)


@dataclass(frozen=True, eq=False)
class LastRead:
    """The last position of a run of n tokens.

    `layers`: None where one has no attention and adds `alone[layer]` (d). `embedded`, `constant`
    (d): what was added up before the first layer. `final` (d): the stream behind the last one.
    `logits` (V).
    """

    n: int
    embedded: Mapping[Embedded, Tensor]
    constant: Tensor
    layers: Sequence[LastLayer | Tensor]
    final: Tensor
    output: FrozenOutput
    logits: Tensor

    def direction(self, ids: Ids) -> Tensor:
        """Directions (S, d) of the logits of tokens, each less the mean over the vocabulary."""
        return self.output.weight[list(ids)] - self._mean

    def effects(self, directions: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Each layer with the direct effects of its heads and keys on sums of logits (S, h, n).

        `directions` (S, d): of what the output layer reads.
        """
        gradient = self._at_stream(directions)[0]
        for number, layer in enumerate(self.layers):
            if isinstance(layer, LastLayer):
                yield number, layer.effects(_through(layer, gradient)[0])

    @torch.inference_mode(False)
    def brought(self, ids: Ids, kept: Mapping[int, NDArray[np.bool_]]) -> FloatArray:
        """The effect of kept links on the logits of tokens, each less the vocabulary's mean (S, n).

        The root of the sum of squares of the effects above 0 over all heads. `kept`: for each layer
        (h, n).
        """
        parts = [ids[i : i + AT_ONCE] for i in range(0, len(ids), AT_ONCE)]
        return np.concatenate([self._brought(part, kept) for part in parts])

    @torch.no_grad()
    def _brought(self, ids: Ids, kept: Mapping[int, NDArray[np.bool_]]) -> FloatArray:
        squares = self.final.new_zeros((len(ids), self.n))
        for layer, effects in self.effects(self.direction(ids)):
            off = torch.from_numpy(~kept[layer]).to(effects.device)
            squares += effects.clamp_min(0).masked_fill(off, 0).square().sum(dim=1)
        return numbers(squares.sqrt())

    @torch.inference_mode(False)
    def at_key(self, id_: int, key: int) -> dict[int, FloatArray]:
        """The effects of a key on a token's logit, less the vocabulary's mean: by layer (h)."""
        return {i: numbers(each[0, :, key]) for i, each in self.effects(self.direction([id_]))}

    @property
    def logit_row(self) -> FloatArray:
        """The logits (1, V)."""
        return numbers(self.logits)[None]

    def weight_rows(self) -> Iterator[tuple[int, FloatArray]]:
        """Each layer with the position's weights (h, n)."""
        for number, layer in enumerate(self.layers):
            if isinstance(layer, LastLayer):
                yield number, numbers(layer.weights)

    @property
    def lengths(self) -> FloatArray:
        """(layers, heads, n): ‖v·W_O‖ of each key, NaN where there is no such head."""
        own = {i: each.lengths for i, each in enumerate(self.layers) if isinstance(each, LastLayer)}
        heads = max(map(len, own.values()))
        found = np.full((len(self.layers), heads, self.n), np.nan, np.float32)
        for i, lengths in own.items():
            found[i, : len(lengths)] = numbers(lengths)
        return found

    @torch.inference_mode(False)
    def shares(self, directions: Tensor) -> Shares:
        """Sums of logits, without biases of the output layer, over the parts of the model."""
        gradient, constant = self._at_stream(directions)  # (S, d), (S)
        sums, last, values = len(directions), self.n - 1, list[Tensor]()

        def at_last(number: Tensor) -> Tensor:  # (S) to (S, n)
            placed = number.new_zeros((sums, self.n))
            placed[:, last] = number
            return placed

        for layer in reversed(self.layers):
            if not isinstance(layer, LastLayer):
                values.append(at_last(gradient @ layer))
                continue
            to_attention, more = _through(layer, gradient)
            effects = layer.effects(to_attention)
            attended = to_attention @ layer.attended
            values.append(at_last(gradient @ layer.written - attended - more))
            values.append(effects.flatten(1))
            constant = constant + more + attended - effects.sum(dim=(1, 2))
        for vector in self.embedded.values():
            values.append(at_last(gradient @ vector))
        constant = constant + gradient @ self.constant
        values.append(constant[:, None])
        heads = tuple(len(e.weights) if isinstance(e, LastLayer) else 0 for e in self.layers)
        with torch.no_grad():
            total = (self.output.reads(self.final[None, None])[:, 0] * directions).sum(dim=-1)
        parts = parts_of_walk(self.n, heads, parts_below(self.n, (*self.embedded,)))
        together = torch.cat(values, dim=1).cpu().double().numpy()
        return Shares(parts, together, total.cpu().double().numpy())

    @cached_property
    def _mean(self) -> Tensor:
        return self.output.weight.mean(dim=0)

    def _at_stream(self, directions: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients (S, d) of the numbers by the stream at the end, and their constants (S)."""

        def number(x: Tensor) -> Tensor:
            return (self.output.reads(x)[:, 0] * directions).sum(dim=-1)

        (gradient,), constant = gradients(
            number, self.final.new_zeros((len(directions), 1, len(self.final)))
        )
        return gradient[:, 0], constant


def _through(layer: LastLayer, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients (S, d) by what attention gives, of those by the stream; and their constants (S)."""

    def number(attended: Tensor) -> Tensor:
        return (layer.added(attended)[:, 0] * gradient).sum(dim=-1)

    (to_attention,), constant = gradients(number, torch.zeros_like(gradient)[:, None])
    return to_attention[:, 0], constant


# What heads add to the logits of tokens, from each key, on the direct path.


def writes(
    run: FrozenRun, positions: Sequence[int], ids: Ids
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For each layer with attention, the addends (h, S, n) to S logits, from the last layer on.

    φ_j = a_j · v_j W_O · u: the weight of the query at a position on key j, times what its value
    adds to the logit of a token there. u is the token's vector in the output layer, behind the
    last norm, which is held at what it was. What later layers make of it does not count.

    Raises:
        ModelError: the logits are not sums.
    """
    output, stream = run.output, run.streams[-1]
    if output is None:
        raise ModelError(
            "the logits of this model are not a sum over its parts",
            "it caps them, or has no output layer that attnviz can follow; use another model",
        )
    most, at = run.at_once, list(positions)
    parts = [slice(i, i + most) for i in range(0, len(at), most)]
    rows = output.weight[list(ids)]  # (S, d)

    def gradient(part: slice) -> Tensor:
        own = at[part]

        def logits(x: Tensor) -> Tensor:
            return (output.reads(x)[range(len(own)), own] * rows[part]).sum(dim=-1)

        return gradients(logits, stream.new_zeros((len(own), *stream.shape)))[0][0]  # (S, n, d)

    below = list(map(gradient, parts))
    for number in reversed(range(len(run.layers))):
        both = [run.through(number, each)[0] for each in below]
        below = [each for each, _ in both]
        attention = run.layers[number].attention
        if attention is None:
            continue
        added = [to[range(to.size(0)), at[part]] for part, (_, to) in zip(parts, both, strict=True)]
        directions = torch.einsum("sd,hvd->hsv", torch.cat(added), attention.w_o)
        of_keys = directions @ attention.values.transpose(1, 2)  # (h, S, n)
        yield number, (attention.weights(torch.tensor(at)) * of_keys).cpu().double().numpy()
