"""A run of any transformers model: its attention, its logits, and the text that it writes.

Where the architecture lets its attention function be switched, ours takes its place; elsewhere the
weights that its modules return are recorded (`attention.py`). The output is unchanged. The model
itself turns the output of its last layer into logits, through whatever stands between them (a norm,
a soft cap, a factor). For the logit lens, the output of an earlier layer replaces that of the last
one in a second run. What is written is what its own `generate` writes without us: nothing is passed
to it but the sampling, and a criterion that is asked after every token whether to go on.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.errors import ModelError, option
from attnviz.models.engine import LOGIT_ROWS, Handover, log_probability, numbers, rows_at_a_time
from attnviz.models.huggingface.attention import corrected, forward, recording, watching
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.intervening import SitePlace, passing
from attnviz.models.huggingface.layers import (
    Layers,
    check_outputs,
    check_recordable,
    layers_of,
    matrix_of,
    parts_of,
)
from attnviz.models.huggingface.proof import CannotCompute, ProvenRows
from attnviz.models.huggingface.residual import first_of
from attnviz.models.loaded import HeadRows, TakeRows
from attnviz.records.capture import Consumer, FloatArray, Kind, Wanted
from attnviz.records.predict import LogitConsumer, LogitRows
from attnviz.records.tokens import GoOn, Sampling


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


def predict(
    model: Any, ids: Tensor, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
) -> None:
    """Hand over logits of ids (1, n): those of the lens, from layer 0 on, then the model's own."""
    wanted = torch.tensor(list(positions))

    def hand_over(layer: int | None) -> None:
        logits = forward(model, input_ids=ids, use_cache=False).logits[0]
        for part in torch.split(wanted, LOGIT_ROWS):
            consume(LogitRows(layer, part.numpy(), numbers(logits[part])))

    with torch.inference_mode():
        if lens:
            *earlier, last = layers_of(model)
            for layer, stream in enumerate(_streams(model, ids, earlier)):
                with passing(SitePlace(last, incoming=False), partial(_instead, stream)):
                    hand_over(layer)
        hand_over(None)


def _instead(stream: Tensor, _: Tensor) -> Tensor:
    return stream


def vectors(model: Any, ids: Tensor, position: int) -> FloatArray:
    """The residual stream over ids (1, n) at a position, as `LoadedModel.vectors`."""
    layers, first = layers_of(model), list[Tensor]()
    with passing(SitePlace(layers[0], incoming=True), first.append):
        after = _streams(model, ids, layers)
    return numbers(torch.stack([stream[0, position].float() for stream in (*first, *after)]))


def _streams(model: Any, ids: Tensor, layers: Sequence[nn.Module]) -> list[Tensor]:
    """The stream after each of the layers, (1, n, d)."""
    streams: list[Tensor] = []

    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        streams.append(first_of(output))

    with ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_hook(keep).remove)
        getattr(model, "base_model", model)(input_ids=ids, use_cache=False)
    return streams


@contextmanager
def _last_rows(model: Any, kind: Kind, wanted: Wanted) -> Iterator[dict[int, Tensor]]:
    """The last row of every wanted layer's attention in the forward pass at work."""
    layers, proven, rows = Layers(model, kind), ProvenRows(), dict[int, Tensor]()

    def begin(*_: Any) -> None:
        layers.begin()
        rows.clear()

    def on_call(call: AttentionCall) -> None:
        layer = layers.at_work(call.module)
        if layer is not None and layer in wanted.heads:
            last = torch.tensor([call.q.size(1) - 1])
            rows[layer] = proven.of(call, layer, wanted.heads[layer], last)(last)[0].clone()

    def on_output(module: nn.Module, pattern: Tensor) -> None:
        layer = layers.at_work(module)
        if layer is not None and layer in wanted.heads:
            rows[layer] = pattern[:, -1:].clone()

    with ExitStack() as stack:
        stack.callback(model.register_forward_pre_hook(begin).remove)
        stack.enter_context(watching(model, on_call, on_output))
        yield rows


def generate(
    model: Any,
    inputs: Mapping[str, Any],
    sampling: Sampling,
    ends: Collection[int],
    wanted: Wanted,
    consume: Consumer,
    go_on: GoOn,
    kind: Kind,
) -> None:
    """Write tokens, as `LoadedModel.generate`, until one of `ends`, which is not handed over.

    `inputs`: what its own `generate` reads: `inputs` (1, n), of an encoder-decoder also the token
    to begin with.
    """
    handover, step = Handover(wanted, consume), 0
    read: int = inputs["inputs"].size(1)

    def keys() -> int:
        return read + step if kind == "self" else 1 + step if kind == "decoder" else read

    def ended(ids: Tensor, _scores: Any, **_more: Any) -> Tensor:
        nonlocal step
        id_ = int(ids[0, -1])
        if id_ in ends:
            return torch.tensor([True], device=ids.device)
        for layer, row in rows.items():
            if row.size(2) < keys():  # a window's cache has forgotten the first ones
                row = torch.nn.functional.pad(row, (keys() - row.size(2), 0))
            handover.take(layer, torch.tensor([step]), row)
        step += 1
        return torch.tensor([not go_on(id_)], device=ids.device)

    greedy = sampling.greedy
    with torch.inference_mode(), torch.random.fork_rng(), _last_rows(model, kind, wanted) as rows:
        torch.manual_seed(sampling.seed)
        forward(
            model,
            through=model.generate,
            **inputs,
            do_sample=not greedy,
            temperature=None if greedy else sampling.temperature,
            top_p=None if greedy else sampling.top_p,
            top_k=None if greedy else 0,
            num_beams=1,
            max_new_tokens=sampling.most,
            stopping_criteria=[ended],
        )


def log_probabilities(model: Any, inputs: Mapping[str, Any], answer: Tensor) -> FloatArray:
    """As `LoadedModel.log_probabilities`; the last m logits are those of the answer (m)."""
    m = answer.size(0)
    inputs = dict(inputs)
    if "logits_to_keep" in signature(model.forward).parameters:
        inputs["logits_to_keep"] = m
    with torch.inference_mode():
        logits = forward(model, **inputs).logits[0, -m:]  # (m, V)
        return numbers(log_probability(logits, answer))
