"""The logits of a transformers model, after its last layer or after any other.

The model itself turns the output of its last layer into logits, through whatever stands
between them (a norm, a soft cap, a factor). For the logit lens, the output of an earlier
layer replaces that of the last one in a second run.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.handover import LOGIT_ROWS
from attnviz.models.huggingface.forward import forward
from attnviz.models.huggingface.layers import layers_of
from attnviz.records.capture import FloatArray
from attnviz.records.predict import LogitConsumer, LogitRows


def predict(
    model: Any, ids: Tensor, positions: Sequence[int], consume: LogitConsumer, *, lens: bool
) -> None:
    """Hand over logits: first those of the lens, from layer 0 on, then the model's own.

    Args:
        model: a causal transformers model with an output layer.
        ids: (1, n).
        positions: the positions whose logits are wanted, in rising order.
        consume: is given the logits, in blocks.
        lens: also as if the model stopped after each layer but the last.
    """
    wanted = torch.tensor(list(positions))
    with torch.inference_mode():
        if lens:
            *earlier, last = layers_of(model)
            streams = _streams(model, ids, earlier)
            for layer, stream in enumerate(streams):
                with _replaced(last, stream):
                    _hand_over(
                        layer, forward(model, input_ids=ids, use_cache=False), wanted, consume
                    )
        _hand_over(None, forward(model, input_ids=ids, use_cache=False), wanted, consume)


def vectors(model: Any, ids: Tensor, position: int) -> FloatArray:
    """The residual stream of a position (layers + 1, d): before layer 0, after each layer.

    Args:
        model: a transformers model of one sequence, or an encoder.
        ids: (1, n).
        position: from 0 to n - 1.
    """
    layers, first = layers_of(model), list[Tensor]()

    def keep(_module: nn.Module, args: Any, named: Any) -> None:
        first.append(args[0] if args else named["hidden_states"])

    handle = layers[0].register_forward_pre_hook(keep, with_kwargs=True)
    try:
        after = _streams(model, ids, layers)
    finally:
        handle.remove()
    streams = [stream[0, position].float().cpu() for stream in (*first, *after)]
    return np.asarray(torch.stack(streams).numpy())


def _streams(model: Any, ids: Tensor, layers: Sequence[nn.Module]) -> list[Tensor]:
    """The stream after each of the layers, (1, n, d)."""
    streams: list[Tensor] = []

    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        streams.append(output[0] if isinstance(output, tuple) else output)

    with ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_hook(keep).remove)
        getattr(model, "base_model", model)(input_ids=ids, use_cache=False)
    return streams


@contextmanager
def _replaced(layer: nn.Module, stream: Tensor) -> Iterator[None]:
    """Let the layer give this stream, whatever its input is."""

    def replace(_module: nn.Module, _args: Any, output: Any) -> Any:
        return (stream, *output[1:]) if isinstance(output, tuple) else stream

    handle = layer.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()


def _hand_over(layer: int | None, output: Any, wanted: Tensor, consume: LogitConsumer) -> None:
    for part in torch.split(wanted, LOGIT_ROWS):
        logits = output.logits[0, part].float().cpu().numpy()
        consume(LogitRows(layer, part.numpy(), logits))
