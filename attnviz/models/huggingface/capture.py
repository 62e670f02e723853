"""A run of any transformers model: its attention is handed over, its output is unchanged.

Where the architecture lets its attention function be switched, ours takes its place
(`functions.py`). Elsewhere the weights that its modules return are recorded (`outputs.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.errors import ModelError, option
from attnviz.models.huggingface.attention import corrected, forward, recording, watching
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.layers import (
    Layers,
    check_outputs,
    check_recordable,
    matrix_of,
    parts_of,
)
from attnviz.models.huggingface.proof import CannotCompute, ProvenRows
from attnviz.models.loaded import HeadRows, TakeRows
from attnviz.models.sampling import Handover, rows_at_a_time
from attnviz.records.capture import Consumer, FloatArray, Kind, Wanted


class _LastLayerSeen(Exception):
    """Ends a forward pass after the last wanted layer."""


def run_and_capture(
    model: Any,
    inputs: Mapping[str, Any],
    wanted: Wanted,
    consume: Consumer,
    kind: Kind,
    *,
    whole: bool = False,
    errors: dict[int, float] | None = None,
) -> Any:
    """Run a model's body up to the last wanted layer, or `whole`, and hand over what is wanted.

    `kind`: the attention of an encoder-decoder that is wanted, else "self". `errors`: if given,
    every row is proven, and each layer's largest error is put here. Returns the output of the body;
    None where it was not run to its end.
    """
    handover, proven, layers = Handover(wanted, consume), ProvenRows(errors), Layers(model, kind)

    def at_layer(module: Any, hand_over: Callable[[int], None]) -> None:
        layer = layers.at_work(module)
        if layer is not None and layer in wanted.heads:
            hand_over(layer)
        if layer == wanted.last_layer and not whole:
            raise _LastLayerSeen

    def on_call(call: AttentionCall) -> None:
        at_layer(call.module, lambda layer: _hand_over(call, layer, handover, proven))

    def on_output(module: Any, pattern: Tensor) -> None:
        at_layer(module, lambda layer: handover.take_rows(layer, 0, pattern))

    if wanted.scores and not model._can_set_attn_implementation():
        raise ModelError(
            f"{model.config.model_type} returns its weights, but not its scores",
            f"leave {option('scores')} out",
        )
    with torch.inference_mode(), watching(model, on_call, on_output), suppress(_LastLayerSeen):
        return forward(model.base_model, **inputs)
    return None


def _hand_over(call: AttentionCall, layer: int, handover: Handover, proven: ProvenRows) -> None:
    wanted, n = handover.wanted, call.q.size(1)
    queries = torch.arange(n) if wanted.queries is None else torch.tensor(wanted.queries)
    rows = proven.of(call, layer, wanted.heads[layer], queries, scores=wanted.scores)
    for block in handover.rows(n, call.k.size(1), call.q.size(0)):
        weights = rows(block)[0]  # proven, where scores are wanted, too
        handover.take(layer, block, call.scores(block) if wanted.scores else weights)


def reduce_windows(model: Any, inputs: Mapping[str, Any], wanted: Wanted, take: TakeRows) -> None:
    """Run windows of text at once, and give the wanted heads' rows to a reduction."""
    layers, proven = Layers(model, "self"), ProvenRows()

    def on_call(call: AttentionCall) -> None:
        layer = layers.at_work(call.module)
        if layer is not None and layer in wanted.heads:
            if call.texts != len(inputs["input_ids"]):
                raise ModelError(f"{model.config.model_type} mixes the texts of a batch", "run one")
            _give(call, layer, wanted.heads[layer], take, proven)
        if layer == wanted.last_layer:
            raise _LastLayerSeen

    with torch.inference_mode(), recording(model, on_call), suppress(_LastLayerSeen):
        forward(model.base_model, **inputs)


def _give(
    call: AttentionCall, layer: int, heads: tuple[int, ...], take: TakeRows, proven: ProvenRows
) -> None:
    """Give the rows of one call to a reduction, text by text, in blocks."""
    every = len(heads) == call.q.size(0)
    step = rows_at_a_time(call.k.size(1), call.q.size(0))
    for text in range(call.texts):
        rows = proven.of(call.of(text), layer, heads)
        for queries in torch.split(torch.arange(call.q.size(1)), step):
            weights, scores = rows(queries)
            if not every:
                weights = weights[list(heads)]
                scores = None if scores is None else scores[list(heads)]
            some = None if scores is None else scores[None]
            take(HeadRows(layer, slice(text, text + 1), int(queries[0]), weights[None], some))


@dataclass(frozen=True)
class ModelAttention:
    """The attention of a model: heads of each layer (0: none), and whether it is causal.

    `sinks`: its attention function is not transformers' own, and may leave a part of a row out.
    """

    heads_per_layer: tuple[int, ...]
    causal: bool
    sinks: bool


def attention_of(model: Any, inputs: Mapping[str, Any], layers: int, kind: Kind) -> ModelAttention:
    """The attention that a model has, seen at work on a few tokens."""
    heads, looks_ahead, sinks, numbering = [0] * layers, False, False, Layers(model, kind)
    attending = set[nn.Module]()

    def see(module: Any, pattern: Tensor) -> None:
        nonlocal looks_ahead
        layer = numbering.at_work(module)
        if layer is not None and kind != "cross" and pattern.size(1) != pattern.size(2):
            raise ModelError(
                f"the attention that {model.config.model_type} returns is not a matrix over the "
                "tokens",
                "use another model",
            )
        if layer is not None and layer < layers:
            heads[layer] = pattern.size(0)
            attending.add(module)
            looks_ahead |= bool(pattern.triu(1).any())

    def on_call(call: AttentionCall) -> None:
        nonlocal sinks
        sinks |= call.foreign
        see(call.module, _some_pattern(call))

    with torch.inference_mode(), watching(model, on_call, see):
        forward(model.base_model, **inputs)
    if not any(heads):
        raise ModelError(
            f"attnviz finds no attention in {model.config.model_type} that it could show: it has "
            "none, or computes it in a way of its own",
            "use another model",
        )
    without = {layer for layer, n in enumerate(heads) if not n}
    for layer, module in numbering.silent(without, attending):
        raise ModelError(
            f"the attention of layer {layer}, of the class {type(module).__name__}, does not call "
            "the attention function of transformers, so attnviz cannot show it",
            "let it call that function, as the other layers do",
        )
    return ModelAttention(tuple(heads), causal=not looks_ahead, sinks=sinks)


def _some_pattern(call: AttentionCall) -> Tensor:
    """The pattern (h, n_q, n_k); where it is not known, the links that the mask leaves."""
    heads, n_q = call.q.shape[:2]
    try:
        return ProvenRows().of(call, -1, range(heads))(torch.arange(n_q))[0]
    except ModelError:
        try:
            seen = call.visible.float()
        except CannotCompute:  # a mask of another form
            seen = torch.ones(n_q, call.k.size(1))
            seen = seen.tril() if call.causal else seen
        return (seen / seen.sum(dim=-1, keepdim=True)).expand(heads, -1, -1)


def value_norms(model: Any, ids: Tensor, heads_per_layer: Sequence[int]) -> FloatArray:
    """As `LoadedModel.value_norms`, over ids (1, n)."""
    check_recordable(model)
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
        check_outputs(parts[layer].attention, attended.flatten(2)[0], made, w_o[layer])

    with corrected(model, measure), ExitStack() as stack:
        for output in {part.output for part in parts.values()}:
            stack.callback(output.register_forward_hook(see).remove)
        forward(model.base_model, input_ids=ids, use_cache=False)
    return np.asarray(norms.numpy())
