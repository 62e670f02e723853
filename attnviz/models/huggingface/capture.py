"""Any transformers model at work: its attention handed over, its output untouched.

Where the architecture lets its attention function be switched, ours is put in its place
(`registry.py`); where not, what its modules return is heard (`outputs.py`).
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnviz.data.capture import Consumer, Kind, Wanted
from attnviz.errors import ModelError
from attnviz.models.handover import Handover
from attnviz.models.huggingface.functions import AttentionCall, Layers, recording
from attnviz.models.huggingface.outputs import listening


class _LastLayerSeen(Exception):
    """Ends a forward pass after the last layer that was asked for."""


def run_and_capture(
    model: Any,
    inputs: Mapping[str, Any],
    wanted: Wanted,
    consume: Consumer,
    kind: Kind,
    *,
    whole: bool = False,
) -> Any:
    """Run a model's body on its inputs, as far as the last layer that is wanted, or as a whole.

    Args:
        model: a transformers model, in evaluation mode.
        inputs: of its forward pass, for one text.
        wanted: which heads and rows.
        consume: is given the rows, layer after layer.
        kind: of an encoder-decoder, which attention; else `self`.
        whole: go on behind the last layer that is wanted.

    Returns:
        What the body returns; None where it was not run to its end.
    """
    layers, handover = Layers(model, kind), Handover(wanted, consume)

    def on_call(call: AttentionCall) -> None:
        layer = layers.at_work(call.module)
        if layer is not None and layer in wanted.heads:
            for queries in handover.rows(call.q.size(1), call.k.size(1), call.q.size(0)):
                found = call.scores(queries) if wanted.scores else call.weights(queries)
                handover.take(layer, queries, found)
        if layer == wanted.last_layer and not whole:
            raise _LastLayerSeen

    def on_output(module: Any, pattern: Tensor) -> None:
        layer = layers.at_work(module)
        if layer is not None and layer in wanted.heads:
            handover.take_rows(layer, 0, pattern)
        if layer == wanted.last_layer and not whole:
            raise _LastLayerSeen

    switches = model._can_set_attn_implementation()
    if wanted.scores and not switches:
        raise ModelError(
            f"{model.config.model_type} hands over its weights, but not its scores",
            "leave --scores out",
        )
    heard = recording(model, on_call) if switches else listening(model, on_output)
    with torch.inference_mode(), heard, suppress(_LastLayerSeen):
        return model.base_model(**inputs)
    return None


@dataclass(frozen=True)
class Attention:
    """What attention a model has: heads of each layer (0: none), and whether it looks back only."""

    heads_per_layer: tuple[int, ...]
    causal: bool


def attention_of(model: Any, inputs: Mapping[str, Any], layers: int, kind: Kind) -> Attention:
    """What attention a model has, seen at work on a few tokens.

    Raises:
        ModelError: it has none.
    """
    heads, looks_ahead = [0] * layers, False

    def see(module: Any, pattern: Tensor) -> None:
        nonlocal looks_ahead
        layer = at_work.at_work(module)
        if layer is not None and kind != "cross" and pattern.size(1) != pattern.size(2):
            raise ModelError(
                f"the attention that {model.config.model_type} returns is no matrix of the tokens",
                "use another model",
            )
        if layer is not None and layer < layers:
            heads[layer] = pattern.size(0)
            looks_ahead |= bool(pattern.triu(1).any())

    at_work = Layers(model, kind)
    if model._can_set_attn_implementation():
        heard = recording(model, lambda call: see(call.module, call.weights()))
    else:
        heard = listening(model, see)
    with torch.inference_mode(), heard:
        model.base_model(**inputs)
    if not any(heads):
        raise ModelError(
            f"attnviz finds no attention in {model.config.model_type} that it could show: it has "
            "none, or computes it in a way of its own",
            "use another model",
        )
    return Attention(tuple(heads), causal=not looks_ahead)
