"""Every architecture's own attention, as its eager implementation returns it."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch

from attnviz.data.capture import LayerPattern, Wanted
from attnviz.models.capturing import attention_of, run_and_capture
from attnviz.transforms.keep import KeepEverything
from tests.architectures import ARCHITECTURES, Architecture

EVERY = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: a.name)
THEIRS = {"self": "attentions", "cross": "cross_attentions", "decoder": "decoder_attentions"}


def eager(architecture: Architecture) -> list[np.ndarray]:
    """What transformers itself returns, (h, n_q, n_k) for each layer that attends."""
    with torch.no_grad():
        output = architecture.model("eager")(**architecture.inputs(), output_attentions=True)
    return [w[0].numpy() for w in output[THEIRS[architecture.kind]] if w is not None]


def captured(
    architecture: Architecture,
    shape: Sequence[int],
    inputs: Mapping[str, torch.Tensor] | None = None,
) -> tuple[LayerPattern, ...]:
    model, inputs = architecture.model(), inputs or architecture.inputs()
    heads = attention_of(model, inputs, 2, architecture.kind).heads_per_layer
    keep = KeepEverything((shape[0], shape[1]))
    wanted = Wanted({layer: tuple(range(n)) for layer, n in enumerate(heads) if n})
    run_and_capture(model, inputs, wanted, keep, architecture.kind)
    return keep.layers()


@EVERY
def test_the_weights_are_the_models_own(architecture: Architecture) -> None:
    theirs = eager(architecture)
    ours = captured(architecture, theirs[-1].shape[1:])
    assert len(ours) == len(theirs)
    for layer, weights in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(layer.weights, weights, atol=1e-5)
        sums = layer.weights.sum(axis=2)
        assert np.allclose(sums, 1, atol=1e-5) != architecture.sinks


@EVERY
def test_the_output_is_what_it_is_without_a_capture(architecture: Architecture) -> None:
    model, inputs = architecture.model(), architecture.inputs()
    with torch.no_grad():
        plain = model(**inputs).last_hidden_state
        seen: list[torch.Tensor] = []
        hook = _last_layer(model).register_forward_hook(
            lambda _m, _i, out: seen.append(out[0] if isinstance(out, tuple) else out)
        )
        model(**inputs)
        found = attention_of(model, inputs, 2, architecture.kind)  # runs the whole body
        hook.remove()
        half = len(seen) // 2  # a layer that all share is heard more than once
        for during, before in zip(seen[half:], seen[:half], strict=True):
            torch.testing.assert_close(during, before, atol=0, rtol=0)
        torch.testing.assert_close(model(**inputs).last_hidden_state, plain, atol=0, rtol=0)
    assert found.causal == architecture.causal
    assert model._can_set_attn_implementation() != architecture.fallback


def _last_layer(model: torch.nn.Module) -> torch.nn.Module:
    """The last list of layers' last one."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m)]
    return lists[-1][-1]
