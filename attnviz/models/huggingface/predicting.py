"""What a transformers model predicts: logits after any layer, and the tokens that it writes.

The model itself turns the output of its last layer into logits, through whatever stands between
them (a norm, a soft cap, a factor). For the logit lens, the output of an earlier layer replaces
that of the last one in a second run. What is written is what its own `generate` writes without us:
nothing is passed to it but the sampling, and a criterion that is asked after every token whether to
go on.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.huggingface.attention import forward, watching
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.intervening import SitePlace, passing
from attnviz.models.huggingface.layers import Layers, layers_of
from attnviz.models.huggingface.proof import ProvenRows
from attnviz.models.huggingface.residual import first_of
from attnviz.models.sampling import LOGIT_ROWS, Handover, log_probability, numbers
from attnviz.records.capture import Consumer, FloatArray, Kind, Wanted
from attnviz.records.predict import LogitConsumer, LogitRows
from attnviz.records.prompt import GoOn, Sampling


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
