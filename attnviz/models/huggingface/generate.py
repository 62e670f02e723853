"""A transformers model goes on with a text, by its own `generate`; its rows are handed over.

What is written is what `generate` writes without us: nothing is passed to it but the sampling,
and a criterion that is asked after every token whether to go on.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.handover import Handover
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.functions import recording
from attnviz.models.huggingface.layers import Layers
from attnviz.models.huggingface.outputs import listening
from attnviz.models.huggingface.proof import ProvenRows
from attnviz.models.probability import log_probability
from attnviz.models.tracing import numbers
from attnviz.records.capture import Consumer, FloatArray, Kind, Wanted
from attnviz.records.prompt import GoOn, Sampling


class LastRows:
    """The last row of every wanted layer's attention in the forward pass at work."""

    def __init__(self, model: Any, kind: Kind, wanted: Wanted) -> None:
        self._model, self._wanted, self._layers = model, wanted, Layers(model, kind)
        self._proven = ProvenRows()
        self.rows: dict[int, Tensor] = {}

    def begin(self, *_: Any) -> None:
        """A forward pass begins."""
        self._layers.begin()
        self.rows.clear()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record every pass of the model until the end."""
        with ExitStack() as stack:
            handle = self._model.register_forward_pre_hook(self.begin)
            stack.callback(handle.remove)
            if self._model._can_set_attn_implementation():
                stack.enter_context(recording(self._model, self._on_call))
            else:
                stack.enter_context(listening(self._model, self._on_output))
            yield

    def _on_call(self, call: AttentionCall) -> None:
        layer = self._layers.at_work(call.module)
        if layer is not None and layer in self._wanted.heads:
            last = torch.tensor([call.q.size(1) - 1])
            rows = self._proven.of(call, layer, self._wanted.heads[layer], last)
            self.rows[layer] = rows(last)[0].clone()

    def _on_output(self, module: nn.Module, pattern: Tensor) -> None:
        layer = self._layers.at_work(module)
        if layer is not None and layer in self._wanted.heads:
            self.rows[layer] = pattern[:, -1:].clone()


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
    """Write tokens until one of `ends`, which is not handed over, or as long as `go_on` says so.

    Args:
        model: a transformers model with an output layer, in evaluation mode.
        inputs: what its `generate` reads: `inputs` (1, n), of an encoder-decoder also the token
            to begin with.
        sampling: how tokens are chosen.
        ends: the ids that end a text.
        wanted: which heads; their rows are those of the positions that predict a new token.
        consume: is given the rows of a new token, numbered from 0, before `go_on` is told of it.
        go_on: see `GoOn`.
        kind: the attention of an encoder-decoder that is wanted, else "self".

    Raises:
        ModelError: transformers cannot run it.
    """
    last = LastRows(model, kind, wanted)
    handover, step = Handover(wanted, consume), 0
    read: int = inputs["inputs"].size(1)

    def keys() -> int:
        """How many keys there are at this step."""
        return read + step if kind == "self" else 1 + step if kind == "decoder" else read

    def ended(ids: Tensor, _scores: Any, **_more: Any) -> Tensor:
        nonlocal step
        id_ = int(ids[0, -1])
        if id_ in ends:
            return torch.tensor([True], device=ids.device)
        for layer, row in last.rows.items():
            if row.size(2) < keys():  # a window's cache has forgotten the first ones
                row = torch.nn.functional.pad(row, (keys() - row.size(2), 0))
            handover.take(layer, torch.tensor([step]), row)
        step += 1
        return torch.tensor([not go_on(id_)], device=ids.device)

    chosen = (
        {"do_sample": False, "temperature": None, "top_p": None}
        if sampling.greedy
        else {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p}
    )
    with torch.inference_mode(), torch.random.fork_rng(), last.recorded():
        torch.manual_seed(sampling.seed)
        forward(
            model,
            through=model.generate,
            **inputs,
            **chosen,
            top_k=None if sampling.greedy else 0,
            num_beams=1,
            max_new_tokens=sampling.most,
            stopping_criteria=[ended],
        )


def log_probabilities(model: Any, inputs: Mapping[str, Any], answer: Tensor) -> FloatArray:
    """The log-probability in nats of each token of an answer, given all before it (m).

    Args:
        model: a transformers model with an output layer, in evaluation mode.
        inputs: what its forward pass reads; the last m logits are those of the answer.
        answer: the ids of the m tokens.
    """
    m = answer.size(0)
    given = dict(inputs)
    if "logits_to_keep" in signature(model.forward).parameters:
        given["logits_to_keep"] = m
    with torch.inference_mode():
        logits = forward(model, **given).logits[0, -m:]  # (m, V)
        return numbers(log_probability(logits, answer))
