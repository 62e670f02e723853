"""Implicit attention of Gated DeltaNet layers, beside the recurrence that they stand for."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn

import attnviz
from attnviz.errors import ModelError, UsageError
from attnviz.models.huggingface.implicit import Given, HeadScan, listening
from tests.conftest import bytes_tokenizer

TEXT = "The cat sat on the mat, and it slept; then it woke, yawned and left the house."
FUNCTION, KEY_HEADS, HEADS = "torch_chunk_gated_delta_rule", 2, 4
SIZES: dict[str, Any] = {"vocab_size": 257, "hidden_size": 32, "num_hidden_layers": 4}
SIZES |= {"intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}
LINEAR = {"linear_num_key_heads": KEY_HEADS, "linear_num_value_heads": HEADS}
LINEAR |= {"linear_key_head_dim": 8, "linear_value_head_dim": 16}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
EXPERTS |= {"shared_expert_intermediate_size": 16}
MODELS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "Qwen3Next": ("Qwen3NextConfig", {"head_dim": 8, **EXPERTS}),
    "Qwen3_5": ("Qwen3_5TextConfig", {"head_dim": 8}),
    "Qwen3_5Moe": ("Qwen3_5MoeTextConfig", {"head_dim": 8, **EXPERTS}),
    "OlmoHybrid": ("OlmoHybridConfig", {"pad_token_id": 0, "eos_token_id": 0}),
    "Qwen4Exp": (
        "Qwen4ExpTextConfig",
        {"head_dim": 8, **EXPERTS, "hc_lowrank": 8, "indexer_n_heads": 2, "indexer_kv_heads": 1}
        | {"indexer_head_dim": 8, "indexer_budget": 64, "indexer_compress_ratio": 2},
    ),
}
"""Models of each name: the name of its configuration, and its other sizes."""
TOKENIZER = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())


def built(name: str) -> Any:
    """A seeded model over bytes, whose heads forget fast or slowly, and write more or less."""
    torch.manual_seed(0)
    config, more = MODELS[name]
    config = getattr(transformers, config)(**SIZES, **LINEAR, **more)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    for parameter_name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.4)
        elif parameter_name.endswith(("A_log", "dt_bias")):
            nn.init.uniform_(parameter, -4, 1)
    return model


def implicit(model: Any) -> attnviz.Model:
    return attnviz.load_model(model, TOKENIZER, kind="implicit")


def ids(text: str = TEXT) -> Tensor:
    return torch.tensor([TOKENIZER(text)["input_ids"]])


@contextmanager
def called(model: Any) -> Iterator[list[tuple[tuple[Tensor, ...], dict[str, Any], Tensor]]]:
    """The arguments of each call of the function, and its result."""
    file, calls = sys.modules[type(model).__module__], list[Any]()
    function = getattr(file, FUNCTION)

    def keep(*args: Tensor, **more: Any) -> Any:
        result = function(*args, **more)
        calls.append((args, more, result[0]))
        return result

    setattr(file, FUNCTION, keep)
    yield calls
    setattr(file, FUNCTION, function)


def recurrence(args: tuple[Tensor, ...], more: Mapping[str, Any]) -> Tensor:
    """M (h, n, n) in float64: what the recurrence gives where the value of each token is its own.

    S_t = exp(g_t)·S_{t-1}; S_t += k_t ⊗ β_t·(v_t - k_t·S_t); y_t = (q_t / √N)·S_t.
    """
    query, key, _ = (each[0].double() for each in args)
    query, key = (
        (each / (each.norm(dim=-1, keepdim=True) ** 2 + 1e-6) ** 0.5).repeat_interleave(2, dim=1)
        for each in (query, key)
    )
    kept, beta = more["g"][0].double().exp(), more["beta"][0].double()
    n, values = len(query), torch.eye(len(query), dtype=torch.float64)
    m = torch.zeros(HEADS, n, n, dtype=torch.float64)
    for head in range(HEADS):
        state = torch.zeros(query.size(2), n, dtype=torch.float64)
        for t in range(n):
            k = key[t, head]
            state = state * kept[t, head]
            state = state + torch.outer(k, beta[t, head] * (values[t] - k @ state))
            m[head, t] = query[t, head] @ state * query.size(2) ** -0.5
    return m


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return built(request.param)


@pytest.mark.parametrize("text", [TEXT, "ab" * 70, "a"], ids=["a text", "repeated", "one token"])
def test_implicit_weights_are_those_of_the_recurrence(model: Any, text: str) -> None:
    loaded = implicit(model)
    layers = [number for number, heads in enumerate(loaded.heads_per_layer) if heads]
    assert layers == [0, 1, 2]  # the last one has full attention
    captured = attnviz.capture(text, loaded)
    with torch.inference_mode(), called(model) as calls:
        model(ids(text), use_cache=False)
    for layer, (args, more, y) in zip(layers, calls, strict=True):
        m = recurrence(args, more)
        mixed = torch.einsum("hts,shp->thp", m, args[2][0].double())
        np.testing.assert_allclose(y[0], mixed, atol=1e-5 * float(y.abs().max()))
        for head in range(HEADS):
            found, wanted = captured.pattern(layer, head), m[head].numpy()
            assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max(), (layer, head)


def test_listening_changes_nothing_that_the_model_computes(model: Any) -> None:
    file = sys.modules[type(model).__module__]
    before, calls = getattr(file, FUNCTION), list[Given]()
    alone = model(ids(), use_cache=False).logits
    with listening(model, lambda _module, given, _y: calls.append(given)):
        heard = model(ids(), use_cache=False).logits
    assert torch.equal(alone, heard)
    assert len(calls) == 3
    assert getattr(file, FUNCTION) is before


@pytest.mark.parametrize("factor", [1 + 1e-4, -1])
def test_a_layer_that_gives_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    file = sys.modules[transformers.Qwen3_5ForCausalLM.__module__]
    function, loaded = getattr(file, FUNCTION), implicit(built("Qwen3_5"))

    def broken(*args: Tensor, **more: Any) -> tuple[Tensor, None]:
        return function(*args, **more)[0] * factor, None

    monkeypatch.setattr(file, FUNCTION, broken)
    with pytest.raises(ModelError, match="layer 0 gives before its gate is not its implicit"):
        attnviz.capture(TEXT, loaded)


def test_weights_that_are_off_by_little_do_not_prove_themselves() -> None:
    calls, model = list[HeadScan](), built("Qwen3Next")

    def keep(_module: nn.Module, given: Given, y: Tensor) -> None:
        calls.append(HeadScan.of(given, y, [2]))

    with torch.inference_mode(), listening(model, keep):
        model(ids(), use_cache=False)
    scan, queries = calls[1], torch.arange(len(TEXT))
    scan.rows(queries)
    for changed in (
        replace(scan, c=scan.c * (1 + 1e-4)),
        replace(scan, w=scan.w * (1 + 1e-4)),
        replace(scan, decay=scan.decay * (1 + 1e-2)),
        replace(scan, w=scan.w * torch.eye(len(TEXT))),  # as if keys recalled nothing
    ):
        with pytest.raises(ValueError, match="is not y"):
            changed.rows(queries)


def test_half_precision_is_proven_as_well() -> None:
    half = attnviz.capture(TEXT, implicit(built("Qwen3_5").to(torch.bfloat16)))
    assert half.record.model.dtype == "bfloat16"


def test_a_run_says_what_it_needs_for_the_square_of_the_text() -> None:
    needs = implicit(built("Qwen3Next"))._loaded.working_bytes
    assert needs(4000, 4000) > 2 * HEADS * 4000**2 * 8


def test_other_functions_take_no_implicit_attention() -> None:
    with pytest.raises(UsageError, match="implicit attention is only shown and captured"):
        attnviz.heads(TEXT, implicit(built("Qwen3_5")))
