"""The logits that a model hands over, and those as if it stopped earlier."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from attnviz.models.catalog import Source, load
from attnviz.models.huggingface.layers import layers_of
from attnviz.records.predict import LogitRows
from tests.architectures import engine_of

IDS = list(range(40, 57))


def logits_of(model: Any, positions: list[int], *, lens: bool) -> dict[int | None, np.ndarray]:
    found: dict[int | None, list[np.ndarray]] = {}

    def keep(rows: LogitRows) -> None:
        found.setdefault(rows.layer, []).append(rows.logits.copy())

    model.predict(IDS, positions, keep, lens=lens)
    return {layer: np.concatenate(parts) for layer, parts in found.items()}


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_logits_are_those_of_the_whole_model(gpt2_copy: Path, engine: Any) -> None:
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_copy).eval()
    with torch.no_grad():
        expected = theirs(torch.tensor([IDS])).logits[0].numpy()
    model = load(Source(str(gpt2_copy), engine=engine))
    found = logits_of(model, [0, 3, 16], lens=False)
    assert list(found) == [None]
    np.testing.assert_allclose(found[None], expected[[0, 3, 16]], atol=1e-4)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_the_lens_reads_each_layers_stream_through_the_last_norm(
    gpt2_copy: Path, engine: Any
) -> None:
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_copy).eval()
    with torch.no_grad():
        streams = theirs(torch.tensor([IDS]), output_hidden_states=True).hidden_states
        expected = theirs.lm_head(theirs.transformer.ln_f(streams[1]))[0, [16]].numpy()
    found = logits_of(load(Source(str(gpt2_copy), engine=engine)), [16], lens=True)
    assert list(found) == [0, None]  # of two layers; the last is the whole model
    np.testing.assert_allclose(found[0], expected, atol=1e-4)
    assert np.abs(found[0] - found[None]).max() > 0.1


def test_the_lens_of_another_architecture_leaves_the_model_as_it_was() -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    seen: dict[int | None, np.ndarray] = {}
    with torch.no_grad():
        plain = model(ids)
        streams = model(ids, output_hidden_states=True).hidden_states
        expected = model.lm_head(model.model.norm(streams[2]))[0, [3]].numpy()
    hooks = [len(module._forward_hooks) for module in model.modules()]
    engine_of(model).predict(
        [5, 6, 7, 8], [3], lambda rows: seen.update({rows.layer: rows.logits}), lens=True
    )
    np.testing.assert_allclose(seen[1], expected, atol=1e-5)
    np.testing.assert_allclose(seen[None], plain.logits[0, [3]].numpy(), atol=1e-5)
    assert len(layers_of(model)) == 3
    assert [len(module._forward_hooks) for module in model.modules()] == hooks


def test_the_stream_of_layers_that_share_a_module_is_that_of_each_of_them() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "embedding_size": 8}
    config = AlbertConfig(vocab_size=50, num_hidden_layers=3, num_attention_heads=2, **sizes)
    model = AlbertForMaskedLM(config).eval()
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        streams = model(ids, output_hidden_states=True).hidden_states
        found = engine_of(model).vectors([5, 6, 7], 1)
    expected = torch.stack([stream[0, 1] for stream in streams]).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
