"""What a layer adds to the residual stream: seen by hooks in one run, and told apart by sums.

Layers of different architectures add an output as it is, times a factor (Granite), through a norm
of its own (Gemma 2), or with a norm over the sum (BERT), where attention and the MLP can no longer
be told apart. A decoder of an encoder-decoder adds a second attention. The outputs that sum up to
the change of the stream are looked for, so that no architecture's names are needed.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.utils.hooks import RemovableHandle

from attnviz.models.huggingface.attention import hooked, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import LayerParts, agrees, layers_of, parts_of
from attnviz.records.capture import Kind
from attnviz.records.trace import Residual


@dataclass
class Seen:
    """A layer at work: what its hooks saw in the turn that `parts` names.

    x, x_after, normed, attention_out (n_q, d), source (n_k, d), as in `HeadTrace`; `outputs`
    (n_q, d) of the modules outside attention, in the order of their calls; `reads` (n_q, d): the
    inputs of the norms among them; `mlp`: the width of the hidden layer; `final` (d): the
    vector at position `at` before the output layer. `own_at`: how many of the outputs came
    before attention_out. `other`: the other attention of the same layer, in the decoder of a
    pair; `other_out` (n_q, d): its output; `other_at`: how many of the outputs came before it.
    """

    parts: LayerParts
    other: LayerParts | None = None
    at: int = -1
    turn: int = 0
    call: AttentionCall = field(init=False)
    x: Tensor = field(init=False)
    x_after: Tensor = field(init=False)
    normed: Tensor = field(init=False)
    source: Tensor = field(init=False)
    attention_out: Tensor = field(init=False)
    other_out: Tensor = field(init=False)
    own_at: int = 0
    other_at: int = 0
    outputs: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    reads: dict[nn.Module, Tensor] = field(default_factory=dict)
    mlp: int | None = None
    final: Tensor | None = None

    def on_call(self, call: AttentionCall) -> None:
        if call.module is self.parts.attention and self._now:
            self.call = call

    @property
    def _now(self) -> bool:
        """Whether the run that is recorded is under way."""
        return self.turn == self.parts.turn

    def _before_layer(self, _: object, args: Any, named: Any) -> None:
        self.turn += 1
        if self._now:
            self.x = (args[0] if args else named["hidden_states"])[0].clone()  # some add in place

    def _after_layer(self, _: object, _args: Any, output: Any) -> None:
        if self._now:
            self.x_after = first_of(output)[0].clone()

    def _after_projection(self, _: object, _args: Any, output: Tensor) -> None:
        if self._now:
            self.attention_out, self.own_at = output[0].clone(), len(self.outputs)

    def _after_other_projection(self, _: object, _args: Any, output: Tensor) -> None:
        if self._now:
            self.other_out, self.other_at = output[0], len(self.outputs)

    def _before_projection(self, role: str, _: object, args: Any) -> None:
        if self._now:
            setattr(self, "normed" if role == "Q" else "source", args[0][0])

    def _after_module(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep what a module outside attention gives for each token, and the MLP's width."""
        vectors = first_of(output)
        if not self._now or not isinstance(vectors, Tensor) or vectors.numel() != self.x.numel():
            return
        if vectors.size(-1) == self.x.size(-1):
            # OPT's MLP runs on (n, d), others on (1, n, d)
            self.outputs.append((module, vectors.reshape(len(self.x), -1).clone()))
            if is_norm(module):
                self.reads[module] = args[0].reshape(len(self.x), -1)
            weight = getattr(module, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2:
                self.mlp = int(args[0].size(-1))  # the last such module leads back to d

    def _before_output_layer(self, _: object, args: Any) -> None:
        self.final = args[0][0, self.at] if args[0].dim() == 3 else None

    def hooks(self, model: Any) -> Iterator[RemovableHandle]:
        """Attach the hooks to the layer and to the model's output layer; their handles."""
        parts, others = self.parts, [] if self.other is None else [self.other]
        yield parts.layer.register_forward_pre_hook(self._before_layer, with_kwargs=True)
        yield parts.layer.register_forward_hook(self._after_layer)
        yield parts.output.register_forward_hook(self._after_projection)
        for role in "QK":
            projection = parts.projections.get(role) or parts.projections["QKV"]
            # before a hook of the user's: it is a part of what the projection does
            keep = partial(self._before_projection, role)
            yield projection.register_forward_pre_hook(keep, prepend=True)
        for other in others:
            yield other.output.register_forward_hook(self._after_other_projection)
        for module in parts.outside(*others):
            yield module.register_forward_hook(self._after_module)
        if (head := model.get_output_embeddings()) is not None:
            yield head.register_forward_pre_hook(self._before_output_layer, prepend=True)


def first_of(output: Any) -> Any:
    """A module's output; the first one where it gives several."""
    return output[0] if isinstance(output, tuple) else output


ModuleOutputs: TypeAlias = Sequence[tuple[nn.Module, Tensor]]
EXACT = 1e-5
ENOUGH = 64  # tokens: two factors that fit so many rows fit them all


@dataclass(frozen=True)
class Added:
    """The additions to the stream: attention and mlp (n, d), which include their `factors`.

    Where the two cannot be told apart, attention is the output of the output projection, and
    mlp is the rest of the change.
    """

    attention: Tensor
    mlp: Tensor
    how: Residual
    factors: tuple[float, float] = (1.0, 1.0)


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a LayerNorm, RMSNorm or the like; not one that computes a weight."""
    kind = type(module)
    return "norm" in kind.__name__.lower() and kind.__module__ != parametrizations.__name__


def what_is_added(
    x: Tensor, x_after: Tensor, attention_out: Tensor, outputs: ModuleOutputs
) -> Added:
    """Split the change of the stream in a layer (n, d) between attention and the MLP.

    `outputs` (n, d): those of the layer's modules outside attention, in the order of their calls.
    """
    change = x_after - x
    if x.dtype in (torch.float32, torch.float64):
        near = EXACT * (1 + x_after.abs().max())
    else:  # each of the two sums is rounded to a few digits, and so is the change
        near = 2 * torch.finfo(x.dtype).eps * (x.abs() + x_after.abs() + attention_out.abs())
    for attention, mlp, how in _candidates(attention_out, outputs):
        if ((attention + mlp - change).abs() <= near).all():
            return Added(attention, mlp, how)
        f, g = _factors(change[:ENOUGH], attention[:ENOUGH], mlp[:ENOUGH])
        if min(abs(f), abs(g)) < EXACT:
            continue
        if ((f * attention + g * mlp - change).abs() <= near).all():
            return Added(f * attention, g * mlp, how, (f, g))
    return Added(attention_out, change - attention_out, "mixed")


def _candidates(
    attention_out: Tensor, outputs: ModuleOutputs
) -> Iterator[tuple[Tensor, Tensor, Residual]]:
    """Possible additions of attention and the MLP: the plainest first, and the last called."""
    norms = [out for module, out in outputs if is_norm(module)]
    others = [out for module, out in reversed(outputs) if not is_norm(module)]
    for other in others:
        yield attention_out, other, "plain"
    for attention, mlp in itertools.product([attention_out, *norms], [*others, *norms]):
        if attention is not mlp:
            yield attention, mlp, "normed"


def _factors(change: Tensor, a: Tensor, b: Tensor) -> tuple[float, float]:
    """The two factors for which change = f·a + g·b fits best (least squares)."""
    both = torch.stack([a.flatten(), b.flatten()]).double()  # (2, n·d)
    solved = torch.linalg.pinv(both @ both.T) @ (both @ change.flatten().double())
    return float(solved[0]), float(solved[1])


@dataclass(frozen=True)
class Sublayer:
    """An attention in its layer: the stream `x` (n_q, d) that arrives at it, the `norm` between,
    and what is added to the stream. `crossed` (n_q, d): in a decoder's self-attention, what
    cross-attention adds; None where it cannot be told apart from the rest."""

    x: Tensor
    norm: nn.Module | None
    added: Added
    crossed: Tensor | None = None


def sublayer_of(seen: Seen, kind: Kind) -> Sublayer | None:
    """The attention that was seen, in its layer; None where a decoder adds it up in other ways.

    `kind`: "cross", "decoder", or "self" for a layer with one attention.
    """
    if kind == "cross":
        return _cross(seen)
    if kind == "decoder":
        return _decoder(seen)
    added = what_is_added(seen.x, seen.x_after, seen.attention_out, seen.outputs)
    return Sublayer(seen.x, _norm_before(seen), added)


def _norm_before(seen: Seen) -> nn.Module | None:
    """The norm whose output the queries are made of."""
    norms = (m for m, out in seen.outputs if is_norm(m) and torch.equal(out, seen.normed))
    return next(norms, None)


def _cross(seen: Seen) -> Sublayer | None:
    """The stream arrives behind self-attention: before the norm, or as the queries read it."""
    norm = _norm_before(seen)
    after = seen.outputs[seen.own_at :]  # before it, among others, is what the queries read
    before_norm = [] if norm is None else [(seen.reads[norm], norm)]
    for x, before in [*before_norm, (seen.normed, None)]:
        added = what_is_added(x, seen.x_after, seen.attention_out, after)
        if added.how != "mixed":
            return Sublayer(x, before, added)
    return Sublayer(seen.normed, None, added) if _summed_in_a_norm(seen, seen.normed) else None


def _decoder(seen: Seen) -> Sublayer | None:
    """Self-attention adds to what arrives at the layer, cross-attention and the MLP after it."""
    norm = _norm_before(seen)
    # cross-attention may add its output, or that of the first norm behind it
    norms = [out for module, out in seen.outputs[seen.other_at :] if is_norm(module)]
    for crossed in (seen.other_out, *norms[:1]):
        rest = [(module, out) for module, out in seen.outputs if out is not crossed]
        added = what_is_added(seen.x, seen.x_after - crossed, seen.attention_out, rest)
        if added.how != "mixed":
            return Sublayer(seen.x, norm, added, crossed)
    if not _summed_in_a_norm(seen, seen.x):
        return None
    change = seen.x_after - seen.x
    added = Added(seen.attention_out, change - seen.attention_out, "mixed")
    return Sublayer(seen.x, norm, added)


def _summed_in_a_norm(seen: Seen, x: Tensor) -> bool:
    """Whether norms stand over the sums: over that of the stream and attention, and at the end."""
    summed = any(agrees(read, x + seen.attention_out) for read in seen.reads.values())
    return summed and any(is_norm(m) and agrees(out, seen.x_after) for m, out in seen.outputs)


@dataclass
class Turn:
    """One call of a layer: its arguments, and what its modules gave in it.

    `norms`: for each norm the inputs and outputs of its calls; `normed`: one of them came before
    attention; `made`: the last output of every
    other module.
    """

    layer: nn.Module
    parts: LayerParts | None
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    norms: dict[nn.Module, list[tuple[Tensor, Tensor]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    made: dict[nn.Module, Any] = field(default_factory=dict)
    call: AttentionCall | None = None
    normed: bool = False
    after: Tensor = field(init=False)

    @property
    def x(self) -> Tensor:
        """The stream that arrives (1, n, d)."""
        arrived: Tensor = self.args[0] if self.args else self.named["hidden_states"]
        return arrived

    def given(self, x: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the same call on another stream."""
        if self.args:
            return (x, *self.args[1:]), dict(self.named)
        return (), {**self.named, "hidden_states": x}


class TurnRecorder:
    """Hooks that keep the turns of a model's layers, and the norms called outside of them."""

    def __init__(self, model: Any, heads_per_layer: Sequence[int]) -> None:
        attending = [layer for layer, heads in enumerate(heads_per_layer) if heads]
        self._parts = parts_of(model, attending)
        every = layers_of(model)
        self._modules = [
            self._parts[i].layer if i in self._parts else every[i]
            for i in range(len(heads_per_layer))
        ]
        self._model = model
        self.turns: list[Turn] = []
        self.before: list[tuple[nn.Module, Tensor, Tensor]] = []
        self.behind: list[tuple[nn.Module, Tensor, Tensor]] = []
        self.final: Tensor | None = None
        self._inside = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Keep everything of the runs until the end."""
        with recording(self._model, self._on_call), hooked(self._hooks()):
            yield

    def _hooks(self) -> Iterator[RemovableHandle]:
        layers = set(self._modules)
        for module in self._model.modules():
            if module not in layers:
                yield module.register_forward_hook(self._after_module)
        for layer in layers:
            yield layer.register_forward_pre_hook(self._begin, with_kwargs=True)
            yield layer.register_forward_hook(self._end)
        if (head := output_layer(self._model)) is not None:
            yield head.register_forward_pre_hook(self._before_output, prepend=True)

    def _begin(self, layer: nn.Module, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        parts = self._parts.get(len(self.turns))
        self.turns.append(Turn(layer, parts, args, named))
        self._inside = True

    def _end(self, _layer: nn.Module, _args: Any, output: Any) -> None:
        self.turns[-1].after, self._inside = first_of(output), False

    def _after_module(self, module: nn.Module, args: Any, output: Any) -> None:
        if is_norm(module) and args:
            if self._inside:
                self.turns[-1].norms[module].append((args[0], output))
                self.turns[-1].normed |= self.turns[-1].call is None
            else:
                (self.behind if self.turns else self.before).append((module, args[0], output))
        elif self._inside:
            self.turns[-1].made[module] = output

    def _on_call(self, call: AttentionCall) -> None:
        if self._inside:
            self.turns[-1].call = call

    def _before_output(self, _module: nn.Module, args: Any) -> None:
        self.final = args[0]


def output_layer(model: Any) -> Any:
    """The output layer; None where there is none."""
    return getattr(model, "get_output_embeddings", lambda: None)()
