"""Parameter counts: the numbers of transformers' own models, from names and shapes alone."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from attnviz.errors import ModelError
from attnviz.models.catalog import Source, parameters_of
from attnviz.models.folder.params import (
    GPT_SIZES,
    ParameterCount,
    config_count,
    known_count,
    known_total,
)

SMALL: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {"vocab_size": 50, "n_embd": 24, "n_layer": 3}),
    "gpt2 untied": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"vocab_size": 50, "n_embd": 24, "n_layer": 3, "tie_word_embeddings": False},
    ),
    "llama, grouped": ("LlamaConfig", "LlamaForCausalLM", SMALL | {"num_key_value_heads": 2}),
    "llama, tied": ("LlamaConfig", "LlamaForCausalLM", SMALL | {"tie_word_embeddings": True}),
    "qwen3, wide heads": (
        "Qwen3Config",
        "Qwen3ForCausalLM",
        SMALL | {"num_key_value_heads": 2, "head_dim": 16},
    ),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        SMALL | {"num_key_value_heads": 2, "num_local_experts": 3},
    ),
    "neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL),
    "bert": ("BertConfig", "BertForMaskedLM", SMALL),
    "starcoder": (
        "GPTBigCodeConfig",
        "GPTBigCodeForCausalLM",
        {"vocab_size": 50, "n_embd": 24, "n_layer": 3, "n_head": 4},
    ),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {"vocab_size": 50, "d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 2, "num_heads": 4},
    ),
    "bart": (
        "BartConfig",
        "BartForConditionalGeneration",
        {
            "vocab_size": 50,
            "d_model": 24,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 40,
            "decoder_ffn_dim": 40,
        },
    ),
}


def built(name: str) -> Any:
    config, model, settings = MODELS[name]
    torch.manual_seed(0)
    return getattr(transformers, model)(getattr(transformers, config)(**settings))


def by_name(counted: ParameterCount) -> dict[str, tuple[int, int]]:
    """Each projection's parameters in one copy, and the number of copies."""
    return {m.name: (m.each, m.copies) for m in counted.projections}


@pytest.mark.parametrize("name", MODELS)
def test_a_folders_total_is_the_number_of_its_models_parameters(name: str, tmp_path: Path) -> None:
    model = built(name)
    model.save_pretrained(tmp_path)
    expected = sum(p.numel() for p in model.parameters())
    assert parameters_of(Source(str(tmp_path))).total == expected
    assert config_count("the same", tmp_path).total == expected


@pytest.mark.parametrize("name", GPT_SIZES)
def test_a_known_gpts_total_is_that_of_transformers_from_the_same_sizes(name: str) -> None:
    sizes = GPT_SIZES[name]
    config = transformers.GPT2Config(
        vocab_size=sizes.vocab_size,
        n_positions=sizes.n_positions,
        n_embd=sizes.n_embd,
        n_layer=sizes.n_layer,
        n_head=sizes.n_head,
    )
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(config)
    expected = sum(p.numel() for p in model.parameters())
    assert known_count(name).total == known_total(name) == expected


def test_grouped_queries_have_fewer_key_and_value_matrices(tmp_path: Path) -> None:
    built("llama, grouped").save_pretrained(tmp_path)
    counted = parameters_of(Source(str(tmp_path)))
    assert by_name(counted) == {
        "W_Q": (24 * 6, 3 * 4),
        "W_K": (24 * 6, 3 * 2),
        "W_V": (24 * 6, 3 * 2),
        "W_O": (24 * 6, 3 * 4),
    }


def test_one_key_and_value_head_for_all_is_found_in_a_joined_projection(tmp_path: Path) -> None:
    built("starcoder").save_pretrained(tmp_path)
    assert by_name(parameters_of(Source(str(tmp_path))))["W_K"] == (24 * 6, 3)


def test_mask_buffers_of_an_old_file_are_listed_apart(gpt2_folder: Path, tmp_path: Path) -> None:
    tensors = load_file(gpt2_folder / "model.safetensors")
    expected = sum(t.numel() for t in tensors.values())
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8)
    tensors["transformer.h.1.attn.bias"] = torch.ones(1, 1, 8, 8)
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((gpt2_folder / "config.json").read_bytes())
    counted = parameters_of(Source(str(tmp_path)))
    assert counted.total == expected
    assert {apart.source: apart.count for apart in counted.apart} == {
        "transformer.h.*.attn.bias": 128,
        "transformer.h.*.attn.masked_bias": 1,
        "lm_head.weight": tensors["lm_head.weight"].numel(),
    }


def test_an_architecture_that_transformers_lacks_is_said(tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "architectures": ["NoSuchModel"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="names no architecture that transformers"):
        config_count("strange", tmp_path)


@pytest.mark.parametrize(
    ("name", "copies"),
    [
        (
            "bart",
            {
                "model.shared.weight": [
                    "model.encoder.embed_tokens.weight",
                    "model.decoder.embed_tokens.weight",
                    "lm_head.weight",
                ]
            },
        ),
        (
            "bert",
            {
                "bert.embeddings.word_embeddings.weight": ["cls.predictions.decoder.weight"],
                "cls.predictions.bias": ["cls.predictions.decoder.bias"],
            },
        ),
    ],
)
def test_tied_tensors_that_an_old_file_holds_again_count_once(
    name: str, copies: dict[str, list[str]], tmp_path: Path
) -> None:
    model = built(name)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    for source, again in copies.items():
        for copy in again:
            tensors[copy] = tensors[source].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    expected = sum(p.numel() for p in model.parameters())
    assert parameters_of(Source(str(tmp_path))).total == expected
