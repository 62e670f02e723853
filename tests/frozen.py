"""Runs of every architecture, held fixed, and how exact their sums are."""

from typing import Any

import numpy as np
import torch

from attnviz.models.frozen.contrast import Contrast
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.records.heads import Head
from tests.architectures import Architecture, N

QUERY = N - 1
EXPERTS = {"mixtral", "qwen3_moe", "gpt_oss"}  # transformers runs none of them in float64
# whatever the run is, these turn queries and keys, or take the softmax, in float32
IN_FLOAT32 = {"cohere", "modernbert", "gemma2"}


def model_of(architecture: Architecture, dtype: torch.dtype = torch.float32) -> Any:
    """The model, with every parameter random: biases and the weights of norms, too.

    Of an encoder-decoder it is the encoder.
    """
    model = architecture.model()
    draw = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=draw)
    return (model if architecture.kind == "self" else model.get_encoder()).to(dtype)


def heads_of(model: Any) -> list[int]:
    """How many heads each layer has."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or [""] * config.num_hidden_layers
    return [0 if kind == "conv" else config.num_attention_heads for kind in kinds]


def frozen(architecture: Architecture, dtype: torch.dtype = torch.float32) -> FrozenRun:
    """A run of the architecture's text, held fixed."""
    model = model_of(architecture, dtype)
    ids = architecture.inputs()["input_ids"]
    return freeze_transformers(model, ids, heads_of(model))


def every_head(run: FrozenRun) -> list[Head]:
    """The heads of a run; each layer with attention has four."""
    layers = [layer for layer, each in enumerate(run.layers) if each.attention is not None]
    return [Head(layer, head) for layer in layers for head in range(4)]


def worst_sum(sums: FrozenRun) -> float:
    """How far the parts' sum is from the captured contrast at most, over all heads.

    A share of the sizes of the terms. The contrast is that of the last row's strongest key.
    """
    return max(_distance(sums, head) for head in every_head(sums))


def _distance(sums: FrozenRun, head: Head) -> float:
    a, row = sums.attention(head), sums.row(head, QUERY)
    first, second = np.argsort(-row.weights)[:2].tolist()
    contrast = Contrast(sums, head, QUERY, first, second)
    scores = a.scaling * (a.k[head.head // a.group] @ a.q[head.head, QUERY]).double()
    captured = float(scores[first] - scores[second])
    found = [contrast.query_walk.shares.values[0], contrast.key_walk.shares.values[0]]
    return max(abs(float(each.sum()) - captured) / float(np.abs(each).sum()) for each in found)
