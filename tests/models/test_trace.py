"""A head's trace: the numbers of one head, against the captured pattern and plain float64."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnviz.data.heads import Head
from attnviz.data.trace import HeadTrace
from attnviz.errors import UsageError
from attnviz.models.folder import builtin_folder
from attnviz.models.huggingface import load_huggingface
from attnviz.models.loaded import LoadedModel
from attnviz.models.native import load_native
from attnviz.models.similarity import other_row
from attnviz.pipeline import HeadOptions, TextOptions, capture, heads_to_record
from attnviz.renderers.explain import merge_error
from tests.conftest import bytes_tokenizer

TEXT = "a fluffy blue creature"
SMALL: dict[str, Any] = {
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {
            "vocab_size": 257,
            "n_embd": 24,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "bos_token_id": 0,
        },
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", SMALL | {"num_key_value_heads": 2}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
    "neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL),
    "bert": ("BertConfig", "BertForMaskedLM", SMALL),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        {
            **{k: v for k, v in SMALL.items() if k != "intermediate_size"},
            "ffn_dim": 40,
            "word_embed_proj_dim": 24,
        },
    ),
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of tiny seeded models, over bytes, with weights large enough to matter."""

    def made(name: str) -> Path:
        config, model, settings = MODELS[name]
        folder = tmp_path_factory.getbasetemp() / f"trace-{name}"
        if not folder.exists():
            torch.manual_seed(0)
            built = getattr(transformers, model)(getattr(transformers, config)(**settings))
            with torch.no_grad():
                for parameter in built.parameters():
                    parameter.normal_(std=0.3)
            built.save_pretrained(folder)
            bytes_tokenizer().save(str(folder / "tokenizer.json"))
        return folder

    return made


def traced(model: LoadedModel, head: Head, query: int) -> HeadTrace:
    """The trace of a head for one query, over TEXT."""
    tokens = model.tokenizer.encode(TEXT, bos=False, special=False)
    return model.trace(TEXT, tokens, head, query)


def check(model: LoadedModel, head: Head) -> HeadTrace:
    """The trace agrees with the captured pattern, and its own numbers with each other."""
    found = traced(model, head, query := 3)
    heads = heads_to_record(model, HeadOptions(heads=str(head)))
    captured = capture(model, TEXT, heads, TextOptions(bos=False)).weights(head)
    np.testing.assert_allclose(found.pattern, captured, atol=1e-5)
    t = {name: array.astype(np.float64) for name, array in found.arrays().items()}
    for letter in "qkv":
        made = t["normed"] @ t[f"w_{letter}"] + t.get(f"b_{letter}", 0)
        plain = t.get(f"{letter}_plain", t[letter])
        np.testing.assert_allclose(plain, made, atol=1e-4)
    np.testing.assert_allclose(t["products"], t["q"] @ t["k"].T, atol=1e-4)
    scores = np.exp(t["scores"] - t["scores"].max(axis=1, keepdims=True))
    np.testing.assert_allclose(scores / scores.sum(axis=1, keepdims=True), captured, atol=1e-5)
    np.testing.assert_allclose(t["z"], captured @ t["v"], atol=1e-4)
    np.testing.assert_allclose(t["contributions"].sum(axis=0), t["added"], atol=1e-4)
    np.testing.assert_allclose(t["added"], t["z"][query] @ t["w_o"], atol=1e-4)
    assert merge_error(found) < 1e-5
    total = t["x"][query] + t["attention_out"] + t["mlp_out"]
    np.testing.assert_allclose(total, t["x_after"], atol=1e-5)
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("head", [Head(0, 1), Head(1, 3)])
def test_a_trace_agrees_with_what_is_captured(
    folder_of: Callable[[str], Path], name: str, head: Head
) -> None:
    check(load_huggingface(folder_of(name), name, None), head)


@pytest.mark.parametrize("head", [Head(0, 1), Head(2, 3)])
def test_the_built_in_model_has_the_same_trace_on_both_engines(head: Head) -> None:
    native = check(load_native(builtin_folder(), "builtin"), head)
    hugging = check(load_huggingface(builtin_folder(), "builtin", None), head)
    for name, array in native.arrays().items():
        np.testing.assert_allclose(hugging.arrays()[name], array, atol=2e-5, err_msg=name)
    assert [p.label for p in native.nearest] == [p.label for p in hugging.nearest]
    for ours, theirs in zip(native.next_tokens, hugging.next_tokens, strict=True):
        assert ours.label == theirs.label
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)


def test_the_next_tokens_are_the_models_own(folder_of: Callable[[str], Path]) -> None:
    folder = folder_of("llama")
    found = traced(load_huggingface(folder, "llama", None), Head(0, 0), 3)
    ids = torch.tensor([[token.id for token in found.tokens]])
    with torch.no_grad():
        logits = transformers.LlamaForCausalLM.from_pretrained(folder).eval()(ids).logits[0, -1]
    top = torch.softmax(logits, -1).topk(5)
    scores = [p.score for p in found.next_tokens]
    np.testing.assert_allclose(scores, top.values.numpy(), atol=1e-6)


def test_the_nearest_tokens_have_the_largest_cosines(folder_of: Callable[[str], Path]) -> None:
    folder = folder_of("gpt2")
    found = traced(load_huggingface(folder, "gpt2", None), Head(1, 0), 5)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder)
    vocabulary = model.lm_head.weight.detach().numpy().astype(np.float64)
    added = found.added.astype(np.float64)
    cosines = vocabulary @ added / np.linalg.norm(vocabulary, axis=1) / np.linalg.norm(added)
    expected = np.sort(cosines)[::-1][:5]
    np.testing.assert_allclose([p.score for p in found.nearest], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "norm", "positions", "group", "turned"),
    [
        ("gpt2", "LayerNorm", "learned", 1, False),
        ("llama", "RMSNorm", "rotary", 2, True),
        ("qwen3", "RMSNorm", "rotary", 2, True),
        ("bert", "", "learned", 1, False),
    ],
)
def test_a_trace_says_how_its_model_differs_from_the_plain_formula(
    folder_of: Callable[[str], Path],
    name: str,
    norm: str,
    positions: str,
    group: int,
    turned: bool,
) -> None:
    kinds = traced(load_huggingface(folder_of(name), name, None), Head(0, 2), 4).kinds
    assert (kinds.norm, kinds.positions, kinds.group, kinds.turned) == (
        norm,
        positions,
        group,
        turned,
    )
    assert kinds.mlp == (96 if name == "gpt2" else 40)


@pytest.mark.parametrize(
    ("name", "pre_norm", "causal"),
    [("gpt2", True, True), ("qwen3", True, True), ("bert", False, False)],
)
def test_a_trace_says_where_the_norms_stand_and_who_is_seen(
    folder_of: Callable[[str], Path], name: str, pre_norm: bool, causal: bool
) -> None:
    kinds = traced(load_huggingface(folder_of(name), name, None), Head(1, 2), 4).kinds
    assert (kinds.pre_norm, kinds.causal) == (pre_norm, causal)


def test_general_similarity_is_refused_for_rotary_models(
    folder_of: Callable[[str], Path],
) -> None:
    found = traced(load_huggingface(folder_of("llama"), "llama", None), Head(0, 0), 0)
    with pytest.raises(UsageError, match="rotary positions"):
        other_row(found, "general")


def test_general_similarity_is_the_dot_product_without_biases(
    folder_of: Callable[[str], Path],
) -> None:
    found = traced(load_huggingface(folder_of("gpt2"), "gpt2", None), Head(1, 0), 3)
    x, query = found.normed.astype(np.float64), 3
    scores = (x[query] @ found.w_q.weight) @ (x @ found.w_k.weight).T
    np.testing.assert_allclose(other_row(found, "general").scores[:4], scores[:4], atol=1e-4)
