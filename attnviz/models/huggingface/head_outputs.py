"""The heads' additions in a transformers model: values, output projection, and the gate.

Some models multiply what a head read by the sigmoid of a projection of its own before it is
written (Qiu et al. 2025, "Gated Attention for Large Language Models", arXiv 2505.06708). The gate
is what makes the input of the output projection of what the attention function returned.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnviz.models.contributing import Writing
from attnviz.models.huggingface.attention import forward, gated, hooked, recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import (
    LayerParts,
    Layers,
    check_recordable,
    matrix_of,
    parts_of,
    unknown,
)
from attnviz.records.capture import Kind

Written = Callable[[int, AttentionCall, Writing], None]
"""Is given a layer, its call, and how what the call gave is written."""


class Writings:
    """Hands every attention call of some layers over, once what it writes is known."""

    def __init__(
        self,
        model: Any,
        layers: Collection[int],
        kind: Kind,
        written: Written,
        parts: Mapping[int, LayerParts] | None = None,
    ) -> None:
        """`parts`: those of the layers; None: a run over a token finds them."""
        check_recordable(model)
        self._model, self._written = model, written
        self._parts = parts_of(model, layers, kind) if parts is None else parts
        self._layers = Layers(model, kind)
        like = torch.empty((), dtype=model.dtype, device=model.device)
        matrices = {
            layer: matrix_of(part.output, like.expand(part.width))
            for layer, part in self._parts.items()
        }
        self._w_o = {layer: matrix for layer, (matrix, _) in matrices.items()}
        self.biases = {layer: bias for layer, (_, bias) in matrices.items()}
        self._under_way = dict[nn.Module, tuple[int, AttentionCall]]()
        self._sigmoids = _Sigmoids()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Hand over what runs of the model write, until the end."""
        outputs = {part.output for part in self._parts.values()}
        hooks = (m.register_forward_pre_hook(self._write, prepend=True) for m in outputs)
        beginning = self._model.register_forward_pre_hook(lambda *_: self._layers.begin())
        with recording(self._model, self._on_call), hooked([beginning]), hooked(hooks):
            if gated(self._model):
                with self._sigmoids:
                    yield
            else:
                yield

    def _on_call(self, call: AttentionCall) -> None:
        layer = self._layers.at_work(call.module)
        if layer is not None and layer in self._parts:
            self._under_way[self._parts[layer].output] = layer, call

    def _write(self, projection: nn.Module, args: Any) -> None:
        if projection not in self._under_way:
            return
        layer, call = self._under_way.pop(projection)
        heads = call.q.size(0)
        gate = self._gate(layer, call.output, args[0].reshape(call.output.shape))
        w_o = self._w_o[layer].unflatten(0, (heads, -1))  # type: ignore[no-untyped-call]
        self._written(layer, call, Writing(call.v, w_o, gate))

    def _gate(self, layer: int, z: Tensor, reads: Tensor) -> Tensor | None:
        """The factor on z (n_q, h, d_v) where it is read, or None without one."""
        if _near(z, reads):
            return None
        sizes = z.numel(), z[..., 0].numel()
        for gate in (each for each in self._sigmoids.last if each.numel() in sizes):
            by_head = gate.reshape(*z.shape[:2], -1)
            if _near(z * by_head, reads):
                return by_head
        name = type(self._parts[layer].attention).__name__
        raise unknown(f"{name} changes its heads' outputs before their projection")


def passed(model: Any, inputs: Mapping[str, Any], heads_per_layer: Sequence[int]) -> Tensor:
    """The share that gates let through in a run, (2, layers, heads, n), NaN without a gate.

    Their mean, and the share of the length of what is written.

    Raises:
        ModelError: heads' outputs are changed in another way.
    """
    n = inputs["input_ids"].size(1)
    found = torch.full((2, len(heads_per_layer), max(heads_per_layer), n), torch.nan)

    def written(layer: int, call: AttentionCall, writing: Writing) -> None:
        if writing.gate is not None:
            found[:, layer, : heads_per_layer[layer]] = writing.passed(call.output).cpu()

    attending = [layer for layer, heads in enumerate(heads_per_layer) if heads]
    with Writings(model, attending, "self", written).watched():
        forward(model.base_model, **inputs)
    return found


NEAR = 1e-5


def _near(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same up to rounding, as a share of the largest number."""
    rounding = max(NEAR, 4 * torch.finfo(b.dtype).eps)
    return bool((a - b).abs().max() <= rounding * b.abs().max())


class _Sigmoids(TorchFunctionMode):
    """Keeps the last sigmoids that were taken."""

    def __init__(self) -> None:
        super().__init__()
        self.last = deque[Tensor](maxlen=4)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in SIGMOIDS:
            self.last.append(result)
        return result


SIGMOIDS = (torch.sigmoid, Tensor.sigmoid, nn.functional.sigmoid, torch.special.expit)
