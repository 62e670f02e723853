"""The last position of a run of a transformers model, in one pass that keeps no other position.

A layer adds to the stream what its attention gives, times a factor, or through a norm (Gemma,
OLMo 2); which of these is seen once for a model, on a run over one token that is held fixed. Each
pass checks that its heads add up to what their projection gave.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnviz.models.contributing import Writing
from attnviz.models.engine import Handover, numbers
from attnviz.models.frozen.last import LastLayer, LastRead, value_lengths
from attnviz.models.frozen.layer import NEAR, frozen_norm
from attnviz.models.huggingface.attention import hooked, last_logits
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.capture import ProvenRows, hand_over
from attnviz.models.huggingface.frozen import (
    AddedBy,
    NormRows,
    embedded_of,
    freeze_transformers,
    output_layer,
    output_of,
)
from attnviz.models.huggingface.head_outputs import Writings
from attnviz.models.huggingface.layers import LayerParts, first_of, is_norm, parts_of, unknown
from attnviz.records.capture import Wanted
from attnviz.records.rests import FindRests


@dataclass(frozen=True, eq=False)
class LastPlan:
    """The places to record the last position: the layers in order, and the norms outside of them.

    `parts`, `added`: of the layers that attend, by number. `plain`: which of their modules were
    found to compute attention plainly.
    """

    layers: Sequence[nn.Module]
    parts: Mapping[int, LayerParts]
    added: Mapping[int, AddedBy]
    norms: Sequence[nn.Module]
    plain: dict[Any, bool] = field(default_factory=dict)


_PLANS: WeakKeyDictionary[nn.Module, tuple[Hashable, LastPlan]] = WeakKeyDictionary()


@torch.inference_mode(False)
@torch.no_grad()
def last_read(
    model: Any, inputs: Mapping[str, Any], heads_per_layer: Sequence[int], rests: FindRests | None
) -> LastRead:
    """Run a model over a text, and record its last position.

    `rests`: is given the lengths of all values, and its rows.

    Raises:
        ModelError: a layer adds what its attention gives in another way, or caps its logits.
    """
    state, (known, plan) = _state(model), _PLANS.get(model, (None, None))
    if plan is None or known != state:
        plan = _plan(model, inputs["input_ids"][:, -1:].clone(), heads_per_layer)
        _PLANS[model] = state, plan
    recorder = LastRecorder(model, plan, rests)
    writings = Writings(model, plan.parts, "self", recorder.written, plan.parts)
    with writings.watched(), hooked(recorder.hooks()):
        logits = last_logits(model, 1, **inputs)
    return recorder.read(inputs["input_ids"], logits, writings.biases)  # without our hooks


def _state(model: Any) -> Hashable:
    """The state that a plan depends on: the modules, and the hooks that users have put on them."""
    modules = (
        (id(m), len(m._forward_hooks), len(m._forward_pre_hooks), "forward" in vars(m))
        for m in model.modules()
    )
    return model.dtype, str(model.device), tuple(modules)


def _plan(model: Any, ids: Tensor, heads_per_layer: Sequence[int]) -> LastPlan:
    run = freeze_transformers(model, ids, heads_per_layer)
    if run.output is None:
        raise unknown(f"the logits of {type(model).__name__} are not a sum over its parts")
    layers, added = [layer.module for layer in run.layers], dict[int, AddedBy]()  # type: ignore[attr-defined]
    attending = [i for i, layer in enumerate(run.layers) if layer.attention is not None]
    for i in attending:
        how = run.layers[i].added_by()  # type: ignore[attr-defined]
        if how is None:
            raise unknown(
                f"{type(layers[i]).__name__} adds what its attention gives in its own way"
            )
        added[i] = how
    if len(set(layers)) < len(layers):
        raise unknown(f"layers of {type(model).__name__} share their modules")
    inside = {module for layer in layers for module in layer.modules()}
    norms = [module for module in model.modules() if is_norm(module) and module not in inside]
    return LastPlan(layers, parts_of(model, attending), added, norms)


class LastRecorder:
    """Hooks that keep the last position of each place that the plan names."""

    def __init__(self, model: Any, plan: LastPlan, rests: FindRests | None) -> None:
        self._model, self._plan, self._rests = model, plan, rests
        self._proven = ProvenRows(plain=plan.plain)
        self._streams: list[Tensor] = []  # what arrives at each layer, and leaves the last one
        self._rows = dict[nn.Module, Tensor]()  # the outputs of projections
        self._norms = dict[nn.Module, tuple[Tensor, Tensor]]()
        self._before, self._behind = list[NormRows](), list[NormRows]()
        self._writes = dict[int, tuple[Tensor, Writing]]()
        self._final: Tensor | None = None

    def hooks(self) -> Iterator[RemovableHandle]:
        plan = self._plan
        for layer in plan.layers:
            yield layer.register_forward_pre_hook(self._arrives, with_kwargs=True)
        yield plan.layers[-1].register_forward_hook(self._leaves)
        for i, part in plan.parts.items():
            yield part.output.register_forward_hook(self._keep)
            if (norm := plan.added[i].norm) is not None:
                yield norm.register_forward_hook(self._keep_norm)
        for norm in plan.norms:
            yield norm.register_forward_hook(self._outside)
        if (head := output_layer(self._model)) is not None:
            yield head.register_forward_pre_hook(self._before_output, prepend=True)

    def written(self, layer: int, call: AttentionCall, writing: Writing) -> None:
        """Keep the last row of a layer's heads, and how it is written."""
        last = torch.tensor([call.q.size(1) - 1])
        rows = self._proven.of(call.dense, layer, range(call.q.size(0)), last)(last)[0]
        gate = None if writing.gate is None else writing.gate[-1].to(call.v.dtype)
        row = rows[:, 0].to(call.v.dtype, copy=True)
        self._writes[layer] = row, Writing(call.v.clone(), writing.w_o, gate)
        if self._rests is not None:
            if self._rests.lengths is not None:
                self._rests.learn(layer, numbers(value_lengths(call.v, writing.w_o)))
            wanted = Wanted({layer: tuple(range(len(rows)))}, self._rests.queries)
            hand_over(call, layer, Handover(wanted, self._rests), self._proven)

    def read(self, ids: Tensor, logits: Tensor, biases: Mapping[int, Tensor | None]) -> LastRead:
        """The record of a run over ids (1, n) whose last logits are these (1, 1, V).

        `biases`: those of the output projections.
        """
        last, streams = ids[:, -1:], [stream[0, 0] for stream in self._streams]
        output = output_of(self._model, self._final, self._streams[-1], self._behind, logits)
        if output is None or len(streams) != len(self._plan.layers) + 1:
            raise unknown(
                f"the logits of {type(self._model).__name__} are not a sum over its parts"
            )
        wide = self._streams[0].size(-1)
        norms = [each for each in self._before if each[1].dim() == 3 and each[1].size(-1) == wide]
        embedded, constant = embedded_of(self._model, last, self._streams[0][0], norms)
        layers = [
            self._layer(i, after - before, biases)
            for i, (before, after) in enumerate(pairwise(streams))
        ]
        return LastRead(
            n=ids.size(1),
            embedded={kind: vectors[0] for kind, vectors in embedded.items()},
            constant=constant[0],
            layers=layers,
            final=streams[-1],
            output=output,
            logits=logits[0, 0],
        )

    def _layer(
        self, i: int, written: Tensor, biases: Mapping[int, Tensor | None]
    ) -> LastLayer | Tensor:
        if i not in self._plan.parts:
            return written
        weights, writing = self._writes[i]
        part, how = self._plan.parts[i], self._plan.added[i]
        attended, w_o = self._rows[part.output].reshape(-1), writing.w_o.detach()
        norm = None if how.norm is None else frozen_norm(how.norm, *self._norms[how.norm])
        if how.norm is not None and norm is None:
            raise unknown(f"{type(how.norm).__name__} is not a norm that can be held fixed")

        def added(x: Tensor) -> Tensor:
            return how.factor * (x if norm is None else norm(x))

        layer = LastLayer(weights, writing.v, w_o, writing.gate, added, attended, written)
        bias = biases[i]
        apart = layer.heads - (attended if bias is None else attended - bias)
        if apart.abs().max() > NEAR * layer.size:
            name = type(part.attention).__name__
            raise unknown(f"{name} changes its heads' outputs before it adds them up")
        return layer

    def _arrives(self, _layer: nn.Module, args: Any, named: Mapping[str, Any]) -> None:
        self._streams.append((args[0] if args else named["hidden_states"])[:, -1:])

    def _leaves(self, _layer: nn.Module, _args: Any, output: Any) -> None:
        self._streams.append(first_of(output)[:, -1:])

    def _keep(self, module: nn.Module, _args: Any, output: Any) -> None:
        self._rows[module] = first_of(output).reshape(-1, first_of(output).size(-1))[-1]

    def _keep_norm(self, module: nn.Module, args: Any, output: Tensor) -> None:
        self._norms[module] = args[0][:, -1:], output[:, -1:]

    def _outside(self, module: nn.Module, args: Any, output: Any) -> None:
        if args and isinstance(output, Tensor):
            where = self._behind if self._streams else self._before
            where.append((module, args[0][:, -1:], output[:, -1:]))

    def _before_output(self, _module: nn.Module, args: Any) -> None:
        self._final = args[0][:, -1:]
