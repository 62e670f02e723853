"""A head's trace: the numbers of one head, against the captured pattern and plain float64."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnviz.commands.explain.sheet import Sheet
from attnviz.commands.explain.steps import render
from attnviz.console import Display
from attnviz.errors import ModelError, UsageError
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.models.engine import chance_cosine
from attnviz.models.folder.files import bundled_folder
from attnviz.models.huggingface.load import load_huggingface
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.lessons import other_row
from attnviz.models.scratch.native import load_native
from attnviz.records.heads import Head
from attnviz.records.trace import HeadTrace
from tests.architectures import GPT_SIZES, Architecture, Tiny, folders_of, named
from tests.dissections import dissected
from tests.factories import recorded_heads
from tests.traces import check_trace

TEXT = "a fluffy blue creature"
SMALL: dict[str, Any] = {
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
OPT = {**{k: v for k, v in SMALL.items() if k != "intermediate_size"}, "ffn_dim": 40}
MODELS: dict[str, Tiny] = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {**GPT_SIZES, "vocab_size": 257, "bos_token_id": 0}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", SMALL | {"num_key_value_heads": 2}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
    "neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL),
    "bert": ("BertConfig", "BertForMaskedLM", SMALL),
    "opt": ("OPTConfig", "OPTForCausalLM", {**OPT, "word_embed_proj_dim": 24}),
    "granite": (
        "GraniteConfig",
        "GraniteForCausalLM",
        SMALL | {"num_key_value_heads": 2, "residual_multiplier": 0.22},
    ),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertForMaskedLM",
        SMALL | {"cls_token_id": 1, "sep_token_id": 2, "pad_token_id": 0},
    ),
    # the embedding is narrower than the layers
    "electra": ("ElectraConfig", "ElectraForMaskedLM", SMALL | {"embedding_size": 12}),
    "albert": ("AlbertConfig", "AlbertForMaskedLM", SMALL | {"embedding_size": 12}),
    "opt-350m": (
        "OPTConfig",
        "OPTForCausalLM",
        {**OPT, "word_embed_proj_dim": 12, "do_layer_norm_before": False},
    ),
}
EXPERTS = {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}
SINKS: dict[str, Tiny] = {  # its rows sum to less than 1
    "gpt_oss": ("GptOssConfig", "GptOssForCausalLM", SMALL | EXPERTS)
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return folders_of(MODELS | SINKS, tmp_path_factory.mktemp("models"))


def traced(model: LoadedModel, head: Head, query: int) -> HeadTrace:
    """The trace of a head for one query, over TEXT."""
    return prepare(model, TEXT, TextOptions(bos=False)).trace(head, query)


def check(model: LoadedModel, head: Head) -> HeadTrace:
    """The trace agrees with the captured pattern, and its own numbers with each other."""
    found = traced(model, head, 3)
    heads = recorded_heads(model, HeadOptions(heads=str(head)))
    captured = prepare(model, TEXT, TextOptions(bos=False)).record(heads).weights(head)
    check_trace(found, captured)
    assert found.merge_error < 1e-5
    return found


def inputs_of(ids: list[int]) -> dict[str, Any]:
    return {"input_ids": torch.tensor([ids]), "use_cache": False}


def outputs_of(model: Any, paths: list[str], run: Callable[[], object]) -> list[torch.Tensor]:
    """What modules give in a run, each (n, d), by hooks that have nothing to do with attnviz."""
    found: dict[str, torch.Tensor] = {}

    def hook(path: str) -> Callable[..., None]:
        def keep(_: object, args: object, output: Any) -> None:
            made = output[0] if isinstance(output, tuple) else output
            found[path] = made.reshape(-1, made.size(-1))

        return keep

    handles = [model.get_submodule(p).register_forward_hook(hook(p)) for p in paths]
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    return [found[path] for path in paths]


def architecture(name: str, **settings: object) -> Architecture:
    """One of the tiny architectures, with other settings."""
    found = named(name)
    config = found.config()
    for key, value in settings.items():
        setattr(config, key, value)
    return Architecture(name, found.what, lambda: config, found.kind)


LLAMA = "layers.1.mlp"


@pytest.mark.parametrize(
    ("name", "settings", "attention", "mlp", "times", "wide"),
    [
        ("gpt2", {}, "h.1.attn.c_proj", "h.1.mlp", 1, 96),
        ("llama", {}, "layers.1.self_attn.o_proj", LLAMA, 1, 40),
        # it multiplies what is added
        ("granite", {"residual_multiplier": 0.22}, "layers.1.self_attn.o_proj", LLAMA, 0.22, 40),
        # both read the same vector
        ("cohere", {}, "layers.1.self_attn.o_proj", LLAMA, 1, 40),
        # each has a norm of its own behind it
        (
            "gemma2",
            {},
            "layers.1.post_attention_layernorm",
            "layers.1.post_feedforward_layernorm",
            1,
            40,
        ),
        # its MLP is two modules of the layer, and runs on (n, d)
        ("opt", {}, "decoder.layers.1.self_attn.out_proj", "decoder.layers.1.fc2", 1, 40),
        # a mixture of experts, beside which it gives scores
        ("gpt_oss", {}, "layers.1.self_attn.o_proj", LLAMA, 1, None),
        # its first projection is twice as wide, its last is another Wo
        ("modernbert", {}, "layers.1.attn.Wo", LLAMA, 1, 40),
        ("t5", {}, "block.1.layer.0.SelfAttention.o", "block.1.layer.1.DenseReluDense", 1, 40),
    ],
)
def test_attention_and_mlp_add_what_their_own_modules_give(
    name: str, settings: dict[str, float], attention: str, mlp: str, times: float, wide: int | None
) -> None:
    built = architecture(name, **settings)
    model = built.model().requires_grad_(False)
    model = model if built.kind == "self" else model.get_encoder()
    ids, query = [5, 9, 4, 33, 8, 21, 7], 4
    found = dissected(model, inputs_of(ids), "self", Head(1, 1), query)
    own = outputs_of(model, [attention, mlp], lambda: model(torch.tensor([ids])))
    torch.testing.assert_close(
        found.arrays["attention_added"], times * own[0][query], atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(found.arrays["mlp_out"], times * own[1][query], atol=1e-5, rtol=1e-5)
    assert found.kinds.residual == ("normed" if name == "gemma2" else "plain")
    assert found.kinds.factors == pytest.approx((times, times), abs=1e-4)
    assert found.kinds.mlp == wide


@pytest.mark.parametrize("name", ["bert", "distilbert", "bart", "marian", "albert"])
def test_where_norms_stand_over_the_sums_the_parts_are_not_told_apart(name: str) -> None:
    built = architecture(name)
    model = built.model().requires_grad_(False)
    model = model if built.kind == "self" else model.get_encoder()
    found = dissected(model, inputs_of([5, 9, 4, 33]), "self", Head(1, 1), 2)
    assert found.kinds.residual == "mixed"
    assert found.kinds.mlp == 40


@pytest.mark.parametrize("name", ["gpt_neo", "bloom"])
def test_an_architecture_that_hides_its_queries_is_refused(name: str) -> None:
    model = architecture(name).model("eager").requires_grad_(False)
    with pytest.raises(ModelError, match="keeps its queries, keys and values to itself"):
        dissected(model, inputs_of([5, 9, 4]), "self", Head(0, 0), 1)


@pytest.mark.parametrize("layer", [0, 1])
def test_of_a_layer_that_all_share_the_right_turn_is_traced(
    folder_of: Callable[[str], Path], layer: int
) -> None:
    model = load_huggingface(folder_of("albert"), "albert", None)
    found = traced(model, Head(layer, 1), 3)
    with torch.no_grad():
        ids = torch.tensor([[token.id for token in found.capture.query_tokens]])
        states = model.model(ids, output_hidden_states=True).hidden_states
    np.testing.assert_allclose(found.x_after, states[layer + 1][0, 3].numpy(), atol=1e-5)


@pytest.mark.parametrize("name", ["electra", "albert", "opt-350m"])
def test_a_page_says_that_narrow_embeddings_cannot_be_compared(
    folder_of: Callable[[str], Path], name: str
) -> None:
    found = traced(load_huggingface(folder_of(name), name, None), Head(0, 1), 3)
    assert found.nearest == ()
    assert found.embedding is None
    assert "cannot be compared with the tokens of the vocabulary" in written(found)


def written(trace: HeadTrace) -> str:
    """The sheet of a trace on one line, with single spaces."""
    lines = render(trace, Sheet(Display(200, unicode=True)), about="")
    return " ".join(" ".join(line.plain for line in lines).split())


def test_a_page_names_the_share_of_a_sink(folder_of: Callable[[str], Path]) -> None:
    found = traced(load_huggingface(folder_of("gpt_oss"), "gpt_oss", None), Head(1, 1), 3)
    total = float(found.pattern[3].sum())
    assert total < 0.99
    shown = written(found)
    assert f"Sum of the row: {total:.4f}. The other {1 - total:.4f} goes to a sink" in shown
    assert "sums to 1" not in shown
    assert "differs from this softmax" not in shown


def test_a_scaling_of_the_queries_counts_as_the_scaling_of_the_scores(
    folder_of: Callable[[str], Path],
) -> None:
    found = traced(load_huggingface(folder_of("opt"), "opt", None), Head(1, 1), 3)
    assert found.scale == pytest.approx(6**-0.5, rel=1e-5)
    assert (found.kinds.changed, found.q_plain, found.k_plain) == ("", None, None)
    shown = written(found)
    assert "scores = q·kᵀ / √6" in shown
    assert "rotary" not in shown
    assert other_row(found, "general").kind == "general"


def test_a_page_tells_what_is_added_with_its_factor(folder_of: Callable[[str], Path]) -> None:
    found = traced(load_huggingface(folder_of("granite"), "granite", None), Head(1, 1), 3)
    shown = written(found)
    for said in ("ΔE = 0.22·z·W_O", "x + 0.22·attention(x̂)", "x + 0.22·MLP(RMSNorm(x))"):
        assert said in shown
    length = float(np.linalg.norm(found.z[3] @ found.w_o.weight)) * 0.22
    assert f"Its norm is {length:.4f}" in shown


def test_a_page_says_where_the_parts_of_a_layer_cannot_be_told_apart(
    folder_of: Callable[[str], Path],
) -> None:
    shown = written(traced(load_huggingface(folder_of("bert"), "bert", None), Head(1, 1), 3))
    assert "whose parts cannot be separated" in shown
    assert "+ rest of layer" in shown


def test_a_trace_holds_the_last_vector_and_the_logits(folder_of: Callable[[str], Path]) -> None:
    model = load_huggingface(folder_of("llama"), "llama", None)
    arrays = traced(model, Head(0, 0), 3).arrays()
    output = model.model.lm_head.weight.numpy().astype(np.float64)
    assert arrays["logits"].shape == (257,)
    np.testing.assert_allclose(output @ arrays["final"], arrays["logits"], atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("head", [Head(0, 1), Head(1, 3)])
def test_a_trace_agrees_with_what_is_captured(
    folder_of: Callable[[str], Path], name: str, head: Head
) -> None:
    check(load_huggingface(folder_of(name), name, None), head)


@pytest.mark.parametrize("head", [Head(0, 1), Head(2, 3)])
def test_the_built_in_model_has_the_same_trace_on_both_engines(head: Head) -> None:
    native = check(load_native(bundled_folder("builtin"), "builtin"), head)
    hugging = check(load_huggingface(bundled_folder("builtin"), "builtin", None), head)
    for name, array in native.arrays().items():
        np.testing.assert_allclose(
            hugging.arrays()[name], array, atol=2e-5, rtol=1e-5, err_msg=name
        )
    assert [p.label for p in native.nearest] == [p.label for p in hugging.nearest]
    for ours, theirs in zip(native.next_tokens, hugging.next_tokens, strict=True):
        assert ours.label == theirs.label
        assert ours.score == pytest.approx(theirs.score, abs=1e-5)


def test_the_next_tokens_are_the_models_own(folder_of: Callable[[str], Path]) -> None:
    folder = folder_of("llama")
    found = traced(load_huggingface(folder, "llama", None), Head(0, 0), 3)
    ids = torch.tensor([[token.id for token in found.capture.query_tokens]])
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
    vocabulary -= vocabulary.mean(axis=0)
    added = found.added.astype(np.float64)
    cosines = vocabulary @ added / np.linalg.norm(vocabulary, axis=1) / np.linalg.norm(added)
    expected = np.sort(cosines)[::-1][:5]
    np.testing.assert_allclose([p.score for p in found.nearest], expected, atol=1e-5)


def best_cosines(vocabulary: np.ndarray, count: int) -> np.ndarray:
    """The highest cosine with a vector of the vocabulary, of each random direction."""
    units = vocabulary / np.linalg.norm(vocabulary, axis=1, keepdims=True)
    drawn = np.random.default_rng(7).normal(size=(count, vocabulary.shape[1]))
    found: np.ndarray = (drawn @ units.T).max(axis=1) / np.linalg.norm(drawn, axis=1)
    return found


def test_chance_is_what_the_nearest_token_reaches_for_19_of_20_random_directions() -> None:
    vocabulary = np.random.default_rng(1).normal(size=(9000, 40))  # more than one part of rows
    level = chance_cosine(torch.tensor(vocabulary, dtype=torch.float32))
    below = best_cosines(vocabulary - vocabulary.mean(axis=0), 1000) < level
    assert 0.92 < below.mean() < 0.98


def test_what_all_output_vectors_share_changes_neither_chance_nor_the_nearest() -> None:
    vocabulary = torch.randn(300, 16, generator=torch.Generator().manual_seed(0))
    assert chance_cosine(vocabulary + 5) == pytest.approx(chance_cosine(vocabulary), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "norm", "positions", "group", "changed"),
    [
        ("gpt2", "LayerNorm", "learned", 1, ""),
        ("llama", "RMSNorm", "rotary", 2, "turned by its position (rotary)"),
        ("qwen3", "RMSNorm", "rotary", 2, "normalised and turned by its position (rotary)"),
        ("bert", "", "learned", 1, ""),
        ("opt", "LayerNorm", "learned", 1, ""),
    ],
)
def test_a_trace_says_how_its_model_differs_from_the_plain_formula(
    folder_of: Callable[[str], Path], name: str, norm: str, positions: str, group: int, changed: str
) -> None:
    kinds = traced(load_huggingface(folder_of(name), name, None), Head(0, 2), 4).kinds
    assert (kinds.norm, kinds.positions, kinds.group, kinds.changed) == (
        norm,
        positions,
        group,
        changed,
    )
    assert kinds.mlp == (96 if name == "gpt2" else 40)


def test_a_layer_that_leaves_the_rotation_out_is_not_called_rotary() -> None:
    built = architecture("smollm3", no_rope_layers=[1, 0])
    model = built.model().requires_grad_(False)
    turned, plain = (
        dissected(model, inputs_of([5, 9, 4, 33]), "self", Head(layer, 1), 2) for layer in (0, 1)
    )
    assert (turned.kinds.positions, "q_plain" in turned.arrays) == ("rotary", True)
    assert (plain.kinds.positions, plain.kinds.changed) == ("none", "")
    assert not {"q_plain", "k_plain"} & set(plain.arrays)


@pytest.mark.parametrize(
    ("name", "residual", "causal"),
    [("gpt2", "plain", True), ("qwen3", "plain", True), ("bert", "mixed", False)],
)
def test_a_trace_says_where_the_norms_stand_and_who_is_seen(
    folder_of: Callable[[str], Path], name: str, residual: str, causal: bool
) -> None:
    kinds = traced(load_huggingface(folder_of(name), name, None), Head(1, 2), 4).kinds
    assert (kinds.residual, kinds.causal) == (residual, causal)


def test_general_similarity_is_refused_for_rotary_models(folder_of: Callable[[str], Path]) -> None:
    found = traced(load_huggingface(folder_of("llama"), "llama", None), Head(0, 0), 0)
    with pytest.raises(UsageError, match=r"turned by its position \(rotary\)"):
        other_row(found, "general")


def test_general_similarity_is_the_dot_product_without_biases(
    folder_of: Callable[[str], Path],
) -> None:
    found = traced(load_huggingface(folder_of("gpt2"), "gpt2", None), Head(1, 0), 3)
    x, query = found.normed.astype(np.float64), 3
    scores = (x[query] @ found.w_q.weight) @ (x @ found.w_k.weight).T
    np.testing.assert_allclose(other_row(found, "general").scores[:4], scores[:4], atol=1e-4)
