"""The norms of a transformers model's values: the length of what a key can add to a query."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.functions import corrected
from attnviz.models.huggingface.layers import Layers, parts_of
from attnviz.models.huggingface.projections import NEAR, agrees, matrix_of, projected, unknown
from attnviz.records.capture import FloatArray


def value_norms(model: Any, ids: Tensor, heads_per_layer: Sequence[int]) -> FloatArray:
    """‖v·W_O‖ of every head and key, (layers, heads, n), NaN where there is no such head.

    Args:
        model: a transformers model of one sequence.
        ids: (1, n).
        heads_per_layer: 0 where a layer has no attention.

    Raises:
        ModelError: values or output projections cannot be found.
    """
    if not model._can_set_attn_implementation():
        raise unknown(f"{type(model).__name__} keeps its queries, keys and values to itself")
    attending = [layer for layer, heads in enumerate(heads_per_layer) if heads]
    parts = parts_of(model, attending)
    like = torch.empty((), dtype=model.dtype, device=ids.device)
    w_o = {n: matrix_of(part.output, like.expand(part.width)) for n, part in parts.items()}
    norms = torch.full((len(heads_per_layer), max(heads_per_layer), ids.size(1)), torch.nan)
    layers = Layers(model, "self")
    under_way = dict[nn.Module, tuple[int, Tensor]]()  # projections whose input is known

    def measure(call: AttentionCall, attended: Tensor) -> Tensor:
        layer = layers.at_work(call.module)
        if layer is not None and layer in parts:
            heads = call.q.size(0)
            v = call.v.repeat_interleave(heads // call.v.size(0), dim=0).float()  # (h, n, d_v)
            by_head = w_o[layer][0].float().reshape(heads, v.size(-1), -1)
            norms[layer, :heads] = (v @ by_head).norm(dim=-1).cpu()
            under_way[parts[layer].output] = layer, attended
        return attended  # (1, n, h, d_v)

    def see(output: nn.Module, _args: Any, made: Tensor) -> None:
        layer, attended = under_way.pop(output)
        _check(parts[layer].attention, attended.flatten(2)[0], made, w_o[layer])

    with corrected(model, measure), ExitStack() as stack:
        for output in {part.output for part in parts.values()}:
            stack.callback(output.register_forward_hook(see).remove)
        forward(model.base_model, input_ids=ids, use_cache=False)
    return np.asarray(norms.numpy())


def _check(
    attention: nn.Module,
    attended: Tensor,
    made: Tensor,
    matrix: tuple[Tensor, Tensor | None],
) -> None:
    """See that the output of a layer's attention is its heads' outputs (n, h·d_v) times W_O.

    Raises:
        ModelError: something else is done to them.
    """
    expected = projected(attended, matrix)
    rounding = max(NEAR, 4 * torch.finfo(made.dtype).eps)
    if not agrees(expected, made.reshape(expected.shape), rounding):
        name = type(attention).__name__
        raise unknown(f"{name} changes its heads' outputs before or behind their projection")
