"""The norms of a transformers model's values: the length of what a key can add to a query."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz.data.blocks import FloatArray
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.functions import recording
from attnviz.models.huggingface.layers import Layers, parts_of
from attnviz.models.huggingface.projections import matrix_of, unknown


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
    norms = torch.full((len(heads_per_layer), max(heads_per_layer), ids.size(1)), torch.nan)
    layers = Layers(model, "self")

    def measure(call: AttentionCall) -> None:
        layer = layers.at_work(call.module)
        if layer is None or layer not in parts:
            return
        heads = call.q.size(0)
        v = call.v.repeat_interleave(heads // call.v.size(0), dim=0).float()  # (h, n, d_v)
        w_o = matrix_of(parts[layer].output)[0].float()  # (h·d_v, d)
        norms[layer, :heads] = (v @ w_o.reshape(heads, v.size(-1), -1)).norm(dim=-1).cpu()

    with recording(model, measure):
        forward(model.base_model, input_ids=ids, use_cache=False)
    return np.asarray(norms.numpy())
