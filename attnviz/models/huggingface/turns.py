"""The turns of a transformers model's layers in one run: what each was given, and what it made.

A layer that several places share (ALBERT) has several turns.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.functions import recording
from attnviz.models.huggingface.layers import LayerParts, layers_of, parts_of
from attnviz.models.huggingface.residual import is_norm


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


class Recorder:
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
        layers = set(self._modules)
        with ExitStack() as stack:
            stack.enter_context(recording(self._model, self._on_call))
            for module in self._model.modules():
                if module not in layers:
                    stack.callback(module.register_forward_hook(self._after_module).remove)
            for layer in layers:
                begin = layer.register_forward_pre_hook(self._begin, with_kwargs=True)
                stack.callback(begin.remove)
                stack.callback(layer.register_forward_hook(self._end).remove)
            head = getattr(self._model, "get_output_embeddings", lambda: None)()
            if head is not None:
                stack.callback(
                    head.register_forward_pre_hook(self._before_output, prepend=True).remove
                )
            yield

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


def first_of(output: Any) -> Any:
    """A module's output; the first one where it gives several."""
    return output[0] if isinstance(output, tuple) else output
