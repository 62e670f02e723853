"""The layers of a transformers model: their numbers, their modules and their projections."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from attnviz.errors import ModelError
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.functions import recording
from attnviz.models.huggingface.outputs import attention_modules
from attnviz.models.huggingface.projections import projections_of, unknown
from attnviz.records.capture import Kind


class Layers:
    """Which layer each attention module of a model is at work for, in one run.

    The name of a module contains its number. A module that several layers share counts up, from
    its own number again in another run.
    """

    def __init__(self, model: Any, kind: Kind) -> None:
        self._names = {
            module: name
            for name, module in model.named_modules()
            if kind in ("self", kind_of(name))
        }
        self._own = {module: layer_of(name) for module, name in self._names.items()}
        self._architecture = model.config.model_type
        self.begin()

    def silent(
        self, layers: Collection[int], attending: Collection[nn.Module]
    ) -> Iterator[tuple[int, nn.Module]]:
        """Attention modules of these layers, none of which was called for what it attends to.

        Modules of transformers' own that hybrids have instead (Mamba, convolutions) are none. One
        is of the class of those that attend, or of a class from elsewhere that stands where they
        do, or calls itself attention.
        """
        classes = tuple({type(module) for module in attending})
        places = {_place(self._names[module]) for module in attending}
        for module, layer in self._own.items():
            if layer not in layers or next(module.parameters(), None) is None:
                continue
            kind = type(module)
            foreign = not kind.__module__.startswith("transformers.")
            stands_in = (
                _place(self._names[module]) in places or "attention" in kind.__name__.lower()
            )
            if isinstance(module, classes) or (foreign and stands_in):
                yield layer, module

    def begin(self) -> None:
        """Another run begins."""
        self._last: dict[Any, int] = {}
        self._at_work: dict[int, Any] = {}

    def at_work(self, module: Any) -> int | None:
        """The layer of this call; None where the module is another model's, or of another kind.

        Raises:
            ModelError: two modules are at work for one layer, which could not be told apart.
        """
        own = self._own.get(module)
        if own is None:
            return None
        layer = self._last[module] + 1 if module in self._last else own
        self._last[module] = layer
        if self._at_work.setdefault(layer, module) is not module:
            raise ModelError(
                f"{self._architecture} has several attentions in one layer, or layers within "
                "layers, which attnviz cannot number",
                "use another model",
            )
        return layer


def layer_of(module: str) -> int:
    """The layer that a module belongs to: the first number in its dotted name."""
    number = re.search(r"(?:^|\.)(\d+)(?:\.|$)", module)
    return int(number[1]) if number else -1


def _place(module: str) -> str:
    """Where a module stands in its layer, whatever the number of that: its name from there on."""
    return re.sub(r"^.*?(?:^|\.)\d+(?=\.|$)", "", module, count=1)


def kind_of(module: str) -> Kind:
    """Which of an encoder-decoder's attentions a module is, by its dotted name."""
    if re.search(
        r"encoder_attn|encdecattention|cross_?attention|cross_attn", module, re.IGNORECASE
    ):
        return "cross"
    return "encoder" if "encoder" in module.split(".") else "decoder"


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The modules that are a model's layers, in order: the list that its attention is in."""
    names = {module: name for name, module in model.named_modules()}
    path = names[attention_modules(model)[0]].split(".")
    depth = next(i for i, part in enumerate(path) if part.isdigit())
    return list(model.get_submodule(".".join(path[:depth])).children())


@dataclass(frozen=True)
class LayerParts:
    """The modules of one layer: the layer itself, its attention, and the projections.

    `projections`: those of queries, keys and values, by role; `output` is W_O.
    `turn`: which of the layer's runs in one forward pass is meant, from 1, since modules that
    several layers share (ALBERT) run more than once. `width`: that of what `output` reads, 0
    where attention cannot be recorded.
    """

    layer: nn.Module
    attention: nn.Module
    projections: dict[str, nn.Module]
    output: nn.Module
    turn: int
    width: int

    def outside(self, *others: "LayerParts") -> Iterator[nn.Module]:
        """The modules of the layer that do not belong to its attention, or to one of these."""
        inside = {self.layer}
        for parts in (self, *others):
            inside |= {*parts.attention.modules(), parts.output}
        yield from (module for module in self.layer.modules() if module not in inside)


def parts_of(model: Any, layers: Iterable[int], kind: Kind = "self") -> dict[int, LayerParts]:
    """The modules of these layers, around one of an encoder-decoder's attentions.

    Raises:
        ModelError: a layer calls no attention, or its projections cannot be found.
    """
    calls = _calls(model, kind)
    return {layer: _parts(model, calls, layer) for layer in layers}


_Calls: TypeAlias = Sequence[tuple[int | None, nn.Module, int]]
"""The layers of a model with the modules that attend and the width of all heads' outputs, in the
order in which they run."""


def _calls(model: Any, kind: Kind) -> _Calls:
    """The calls of a run over one token; where attention cannot be recorded, by name."""
    if not model._can_set_attn_implementation():
        names = {module: name for name, module in model.named_modules()}
        return [(layer_of(names[module]), module, 0) for module in attention_modules(model)]
    layers, calls = Layers(model, kind), list[tuple[int | None, nn.Module, int]]()

    def see(call: AttentionCall) -> None:
        width = call.q.size(0) * call.v.size(-1)
        calls.append((layers.at_work(call.module), call.module, width))

    token = torch.tensor([[0]], device=model.device)
    given: dict[str, Any] = {"input_ids": token, "use_cache": False}
    if kind != "self":
        given["decoder_input_ids"] = token
    with recording(model, see):
        forward(model.base_model, **given)
    return calls


def _parts(model: Any, calls: _Calls, layer: int) -> LayerParts:
    """The modules of one layer, looked for around the module that attends."""
    names = {module: name for name, module in model.named_modules()}
    numbers = [number for number, *_ in calls]
    if layer not in numbers:
        raise unknown(f"layer {layer} of {type(model).__name__} calls no attention")
    before = calls[: numbers.index(layer) + 1]
    _, attention, width = before[-1]
    turn = sum(module is attention for _, module, _ in before)
    path = names[attention].split(".")
    depth = next(i for i, part in enumerate(path) if part.isdigit()) + 1
    block = model.get_submodule(".".join(path[:depth]))
    # BERT keeps the output projection beside the module that attends, not in it
    for end in range(len(path), depth - 1, -1):
        projections = projections_of(model.get_submodule(".".join(path[:end])))
        if "O" in projections and ("QKV" in projections or {"Q", "K", "V"} <= set(projections)):
            output = projections.pop("O")
            return LayerParts(block, attention, projections, output, turn, width)
    raise unknown(
        f"the projections of {type(attention).__name__} are not where attnviz looks for them"
    )
