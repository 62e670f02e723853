"""Scores and norm-based attention, against the formulas on transformers' own numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM as Causal
from transformers import (
    BertConfig,
    BertModel,
    BloomConfig,
    Gemma2Config,
    GPT2LMHeadModel,
    LlamaConfig,
)

from attnviz.errors import AttnvizError, ModelError
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface.capture import run_and_capture
from attnviz.records.capture import PatternBlock, Wanted
from attnviz.records.heads import Head, every_head
from tests.architectures import engine_of

TEXT = "abc abd"
SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_norms_are_the_lengths_of_values_after_the_output_projection(
    gpt2_folder: Path, engine: Any
) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))
    ids = [token.id for token in prepare(model, TEXT, TextOptions()).source]
    found = model.value_norms(ids)
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder).eval().double()
    with torch.no_grad():
        streams = theirs(torch.tensor([ids]), output_hidden_states=True).hidden_states
        for layer, block in enumerate(theirs.transformer.h):
            joined = block.attn.c_attn(block.ln_1(streams[layer]))[0]  # (n, 3·d)
            values = joined[:, 42:].reshape(len(ids), 3, 7)
            for head in range(3):
                out = values[:, head] @ block.attn.c_proj.weight[7 * head : 7 * head + 7]
                np.testing.assert_allclose(found[layer, head], out.norm(dim=1), rtol=1e-4)


def test_norms_of_shared_values_go_through_each_heads_own_projection() -> None:
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, num_key_value_heads=2)
    model = Causal.from_config(config).eval()
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        found = engine_of(model).value_norms([5, 6, 7])
        layer = model.model.layers[0]
        x = layer.input_layernorm(model.model.embed_tokens(ids))[0]
        values = layer.self_attn.v_proj(x).view(3, 2, 6)
        w_o = layer.self_attn.o_proj.weight  # (d, h·d_v)
        for head in range(4):
            out = values[:, head // 2] @ w_o[:, 6 * head : 6 * head + 6].t()
            np.testing.assert_allclose(found[0, head], out.norm(dim=1), rtol=1e-4)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_the_softmax_of_the_scores_is_the_pattern(gpt2_folder: Path, engine: Any) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))
    prepared = prepare(model, TEXT, TextOptions())
    heads = every_head(model.identity.heads_per_layer)
    scores, patterns = prepared.record(heads, scores=True), prepared.record(heads)
    assert scores.signed
    assert not patterns.signed
    assert scores.weights(Head(0, 0)).min() < 0
    for head in heads:
        masked = np.where(patterns.allowed(), scores.weights(head).astype(np.float64), -np.inf)
        exact = np.exp(masked - masked.max(axis=1, keepdims=True))
        exact /= exact.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(patterns.weights(head), exact, atol=1e-5)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Causal.from_config(LlamaConfig(**SIZES, num_key_value_heads=2)),
        lambda: Causal.from_config(
            Gemma2Config(**SIZES, num_key_value_heads=2, head_dim=8, attn_logit_softcapping=0.5)
        ),
        lambda: BertModel(BertConfig(**SIZES)),
    ],
    ids=["shared keys", "soft cap", "both ways"],
)
def test_scores_of_other_architectures_lead_to_their_weights(build: Any) -> None:
    torch.manual_seed(0)
    model = build().eval()
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    kept: list[PatternBlock] = []
    wanted = Wanted({1: (0, 1, 2, 3)}, scores=True)
    run_and_capture(model, inputs, wanted, kept.append, "self")  # it compares them itself
    (block,) = kept
    assert block.weights.shape == (4, 4, 4)
    assert block.weights.min() < 0


def test_a_model_that_keeps_its_scores_to_itself_says_so() -> None:
    config = BloomConfig(vocab_size=61, hidden_size=24, n_layer=2, n_head=4)
    model = Causal.from_config(config, attn_implementation="eager").eval()
    inputs = {"input_ids": torch.tensor([[5, 6]])}
    with pytest.raises(ModelError, match="but not its scores"):
        run_and_capture(model, inputs, Wanted({0: (0,)}, scores=True), lambda _: None, "self")
    with pytest.raises(ModelError, match="keeps its queries"):
        engine_of(model).value_norms([5, 6])


def test_scores_that_do_not_lead_to_the_weights_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, num_key_value_heads=2)
    model = Causal.from_config(config, attn_implementation="eager").eval()
    import transformers.models.llama.modeling_llama as module

    plain = module.eager_attention_forward
    doubled = lambda m, q, *more, **named: plain(m, q * 9, *more, **named)  # noqa: E731
    monkeypatch.setattr(module, "eager_attention_forward", doubled)
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    with pytest.raises(AttnvizError, match="changes its scores"):
        run_and_capture(model, inputs, Wanted({0: (0,)}, scores=True), lambda _: None, "self")
