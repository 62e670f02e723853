"""Every architecture's own attention, as its eager implementation returns it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attnviz.models.huggingface.capture import run_and_capture
from attnviz.records.capture import KeepEverything, Wanted
from tests.architectures import ARCHITECTURES, Architecture, N, named
from tests.exactness import captured, eager, exactness_of

EVERY = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: a.name)


@EVERY
def test_weights_are_the_models_own_and_its_output_is_untouched(architecture: Architecture) -> None:
    found = exactness_of(architecture)
    assert found.weights <= 1e-5
    assert found.output == 0
    assert (found.sums <= 1e-5) != architecture.sinks
    assert found.attention.causal == architecture.causal


@EVERY
def test_the_model_is_left_as_it_was_also_after_an_error(architecture: Architecture) -> None:
    model, inputs = architecture.model(), architecture.inputs()
    assert model._can_set_attn_implementation() != architecture.fallback
    before, functions = model.config._attn_implementation, dict(ALL_ATTENTION_FUNCTIONS)
    with torch.no_grad():
        plain = model(**inputs).last_hidden_state
        with pytest.raises(ZeroDivisionError):
            run_and_capture(model, inputs, Wanted({1: (0,)}), lambda _: 1 / 0, architecture.kind)
        torch.testing.assert_close(model(**inputs).last_hidden_state, plain, atol=0, rtol=0)
    assert model.config._attn_implementation == before
    assert dict(ALL_ATTENTION_FUNCTIONS) == functions
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_padding_is_seen_by_no_query(name: str) -> None:
    """The mask is the model's own: under another name than its own it would be missing."""
    architecture = named(name)
    mask = torch.ones_like(architecture.inputs()["input_ids"])
    mask[:, -3:] = 0
    padded = {**architecture.inputs(), "attention_mask": mask}
    theirs = eager(architecture, padded)
    _, ours, _ = captured(architecture, padded, theirs[0].shape[1:])
    for layer, weights in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(layer.weights[:, :-3], weights[:, :-3], atol=1e-5)
        assert not layer.weights[:, :-3, -3:].any()


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_one_layer_alone_does_not_see_the_future_under_sdpa(name: str) -> None:
    """SDPA is given no mask where it may build its own; eager attention then masks nothing."""
    architecture = named(name)
    model, inputs = architecture.model("sdpa"), architecture.inputs()
    theirs = eager(architecture, inputs)[1]
    keep = KeepEverything((theirs.shape[1], theirs.shape[2]))
    run_and_capture(model, inputs, Wanted({1: tuple(range(len(theirs)))}), keep, "self")
    (layer,) = keep.layers()
    np.testing.assert_allclose(layer.weights, theirs, atol=1e-5)
    assert not np.triu(layer.weights, 1).any()


def test_the_soft_cap_of_scores_is_in_the_weights() -> None:
    """SDPA knows no soft cap."""
    gemma2 = named("gemma2")
    gentle = replace(gemma2, config=lambda: _changed(gemma2, attn_logit_softcapping=1.0))
    ours = captured(gentle, gentle.inputs(), (N, N))[1]
    uncapped = captured(gemma2, gemma2.inputs(), (N, N))[1]
    for layer, capped, other in zip(ours, eager(gentle, gentle.inputs()), uncapped, strict=True):
        np.testing.assert_allclose(layer.weights, capped, atol=1e-5)
        assert np.abs(layer.weights - other.weights).max() > 0.01


def test_a_sink_takes_its_share_of_every_row() -> None:
    """SDPA drops sinks in silence: rows would sum to 1."""
    sinks = named("gpt_oss")
    for layer in captured(sinks, sinks.inputs(), (N, N))[1]:
        assert layer.weights.sum(axis=2).mean() < 0.9


def _changed(architecture: Architecture, **changes: float) -> Any:
    config = architecture.config()
    config.update(changes)
    return config


def test_a_hybrid_has_heads_where_it_attends_and_none_elsewhere() -> None:
    assert exactness_of(named("lfm2")).attention.heads_per_layer == (0, 4)


def test_a_layer_that_all_layers_share_counts_up() -> None:
    assert exactness_of(named("albert")).attention.heads_per_layer == (4, 4)
