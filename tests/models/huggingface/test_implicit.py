"""Implicit attention of Mamba-2 layers, beside the recurrence that these layers stand for."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn.functional import conv1d, silu, softplus

import attnviz
from attnviz.errors import ModelError, UsageError
from attnviz.models.huggingface.implicit import Given, HeadScan, listening
from tests.conftest import bytes_tokenizer

TEXT = "The cat sat on the mat, and it slept."  # longer than four chunks
CHUNK, HEADS, WIDTH, STATE = 8, 8, 8, 16
SIZES = {"vocab_size": 257, "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 32}
ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2}
SSM: dict[str, Any] = {"mamba_n_heads": HEADS, "mamba_d_head": WIDTH, "mamba_d_state": STATE}
SSM |= {"mamba_chunk_size": CHUNK, "mamba_n_groups": 2, "mamba_expand": 2}
ZAMBA: dict[str, Any] = {"n_mamba_heads": HEADS, "mamba_d_state": STATE, "chunk_size": CHUNK}
ZAMBA |= {"mamba_ngroups": 1, "mamba_expand": 2, "num_mem_blocks": 1, "use_mem_rope": False}
NEMOTRON = {"mamba_num_heads": HEADS, "mamba_head_dim": WIDTH, "ssm_state_size": STATE}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Mamba2": (
        "",
        {
            **{"num_heads": HEADS, "head_dim": WIDTH, "state_size": STATE, "n_groups": 4},
            **{"expand": 2, "chunk_size": CHUNK, "time_step_limit": (0.05, 0.4)},
        },
    ),
    "Bamba": ("02", {**ATTENTION, **SSM, "attn_layer_indices": [1]}),
    "GraniteMoeHybrid": (
        "02",
        {
            **{**ATTENTION, **SSM, "layer_types": ["mamba", "attention", "mamba"]},
            **{"num_local_experts": 0, "shared_intermediate_size": 32},
        },
    ),
    "Zamba2": ("", {**ATTENTION, **ZAMBA, "layers_block_type": ["mamba", "hybrid", "mamba"]}),
    "NemotronH": (
        "02",
        {
            **{**ATTENTION, **NEMOTRON, "head_dim": 8, "n_groups": 2, "chunk_size": CHUNK},
            **{"expand": 2, "hybrid_override_pattern": "M*M"},
        },
    ),
    "FalconH1": ("", {**ATTENTION, **SSM, "mamba_d_ssm": HEADS * WIDTH}),
}
"""Models of each name: the numbers of the layers with Mamba-2 (empty: all), and its sizes."""
SCAN = "mamba2_chunk_scan"
TOKENIZER = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())


def built(name: str) -> Any:
    """A seeded model over bytes, whose layers decay fast in some heads and slowly in others."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **MODELS[name][1]})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    for parameter_name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.4)
        elif parameter_name.endswith(("A_log", "dt_bias")):
            nn.init.uniform_(parameter, -4, 1)
        elif parameter_name.endswith(".D"):
            nn.init.normal_(parameter)
    return model


def implicit(model: Any) -> attnviz.Model:
    return attnviz.load_model(model, TOKENIZER, kind="implicit")


def layers_of(name: str) -> list[int]:
    return [int(number) for number in MODELS[name][0] or "012"]


def mixers(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "A_log")]


def ids() -> Tensor:
    return torch.tensor([TOKENIZER(TEXT)["input_ids"]])


def recurrence(mixer: Any, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """M (h, n, n), x and y (n, h, p) in float64, by h_t = exp(A·Δ_t)·h_{t-1} + Δ_t·B_t·x_t.

    `projected` (n, …): what the layer's projection of its input gives. M[t, s] is C_t times what a
    state of 1 that enters at s has become at t.
    """
    inner, groups = HEADS * WIDTH, mixer.n_groups
    _, mixed, dt = projected.double().split([inner, inner + 2 * groups * STATE, HEADS], dim=1)
    weight, bias = mixer.conv1d.weight.double(), mixer.conv1d.bias
    channels = mixed.T[None]
    padded = nn.functional.pad(channels, (weight.size(2) - 1, 0))
    mixed = silu(conv1d(padded, weight, bias.double(), groups=channels.size(1)))[0].T
    x, b, c = mixed.split([inner, groups * STATE, groups * STATE], dim=1)
    n = len(x)
    x = x.reshape(n, HEADS, WIDTH)
    b, c = (
        each.reshape(n, groups, STATE).repeat_interleave(HEADS // groups, dim=1) for each in (b, c)
    )
    step = softplus(dt + mixer.dt_bias.double()).clamp(*mixer.time_step_limit)  # (n, h)
    decay = torch.exp(-mixer.A_log.double().exp() * step)
    state = torch.zeros(HEADS, WIDTH, STATE, dtype=torch.float64)
    entered = torch.zeros(HEADS, n, STATE, dtype=torch.float64)
    m, y = torch.zeros(HEADS, n, n, dtype=torch.float64), torch.zeros_like(x)
    for t in range(n):
        driven = step[t, :, None] * b[t]  # (h, N)
        state = decay[t, :, None, None] * state + driven[:, None] * x[t, :, :, None]
        y[t] = (state * c[t, :, None]).sum(dim=-1) + mixer.D.double()[:, None] * x[t]
        entered *= decay[t, :, None, None]
        entered[:, t] = driven
        m[:, t] = (entered * c[t, :, None]).sum(dim=-1)
    return m, x, y


@pytest.fixture(scope="module", params=MODELS)
def run(request: pytest.FixtureRequest) -> tuple[str, Any]:
    return request.param, built(request.param)


@torch.inference_mode()
def by_hand(model: Any) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """For each Mamba-2 layer what `recurrence` gives, and what its norm was given, (n, h, p)."""
    projected, normed = list[Tensor](), list[Tensor]()
    hooks = []
    for mixer in mixers(model):
        scale = getattr(mixer, "mup_vector", 1.0)
        hooks += [
            mixer.in_proj.register_forward_hook(
                lambda _m, _a, output, scale=scale: projected.append((output * scale)[0])
            )
        ]
        if hasattr(mixer, "norm"):
            hooks += [
                mixer.norm.register_forward_pre_hook(
                    lambda _m, args: normed.append(args[0][0].double())
                )
            ]
    model(ids(), use_cache=False)
    for hook in hooks:
        hook.remove()
    found = [recurrence(*each) for each in zip(mixers(model), projected, strict=True)]
    given = normed or [y.flatten(1) for *_, y in found]  # FalconH1 has no norm there
    return [(m, x, y, own.reshape(y.shape)) for (m, x, y), own in zip(found, given, strict=True)]


def test_implicit_weights_are_those_of_the_recurrence(run: tuple[str, Any]) -> None:
    name, model = run
    loaded = implicit(model)
    assert [n for n, heads in enumerate(loaded.heads_per_layer) if heads] == layers_of(name)
    captured = attnviz.capture(TEXT, loaded)
    assert len(captured.heads) == HEADS * len(layers_of(name))
    for layer, (m, x, y, given) in zip(layers_of(name), by_hand(model), strict=True):
        d = (y - torch.einsum("hts,shp->thp", m, x)).numpy()
        np.testing.assert_allclose(given, y, atol=1e-5 * float(y.abs().max()))
        for head in range(HEADS):
            found, wanted = captured.pattern(layer, head), m[head].numpy()
            assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max(), (layer, head)
            again = found @ x[:, head].numpy() + d[:, head]
            np.testing.assert_allclose(again, given[:, head], atol=1e-5 * float(y.abs().max()))
    assert any((captured.pattern(head.layer, head.head) < 0).any() for head in captured.heads)


def test_listening_changes_nothing_that_the_model_computes(run: tuple[str, Any]) -> None:
    name, model = run
    files = {sys.modules[type(mixer).__module__] for mixer in mixers(model)}
    before = [getattr(file, SCAN) for file in files]
    alone = model(ids(), use_cache=False).logits
    calls = list[Given]()
    with listening(model, lambda _module, given, _y: calls.append(given)):
        heard = model(ids(), use_cache=False).logits
    assert torch.equal(alone, heard)
    assert len(calls) == len(layers_of(name))
    assert [getattr(file, SCAN) for file in files] == before


Break = Callable[[Tensor], Tensor]


@pytest.mark.parametrize(
    "broken",
    [
        lambda y: y * (1 + 1e-4),  # of all heads
        lambda y: torch.where(torch.arange(8)[:, None] == 3, -y, y),  # of one head
        lambda y: torch.cat([y[:, :-1], y[:, -2:-1]], dim=1),  # of one token
    ],
    ids=["a factor", "a head", "a token"],
)
def test_a_layer_that_gives_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, broken: Break
) -> None:
    file = sys.modules[transformers.Mamba2ForCausalLM.__module__]
    scan = getattr(file, SCAN)
    loaded = implicit(built("Mamba2"))
    monkeypatch.setattr(file, SCAN, lambda *args, **more: broken(scan(*args, **more)))
    with pytest.raises(ModelError, match="layer 0 gives before its gate is not its implicit"):
        attnviz.capture(TEXT, loaded)


def test_weights_that_are_off_by_little_do_not_prove_themselves() -> None:
    calls, model = list[HeadScan](), built("Mamba2")

    def keep(_module: nn.Module, given: Given, y: Tensor) -> None:
        calls.append(HeadScan.of(given, y, [2]))

    with torch.inference_mode(), listening(model, keep):
        model(ids(), use_cache=False)
    scan, queries = calls[1], torch.arange(len(TEXT))
    scan.rows(queries)
    for changed in (
        replace(scan, b=scan.b * (1 + 1e-4)),
        replace(scan, w=scan.w + 1e-4),
        replace(scan, decay=scan.decay * (1 + 1e-3)),
        replace(scan, skip=scan.skip * (1 + 1e-4)),
    ):
        with pytest.raises(ValueError, match="is not y"):
            changed.rows(queries)


def test_a_run_of_some_rows_has_those_of_the_whole_run() -> None:
    loaded = implicit(built("Bamba"))
    whole = attnviz.capture(TEXT, loaded, heads="L2H5").pattern(2, 5)
    shown = attnviz.show(TEXT, loaded, heads="L2H5", query=["-1", "3"]).to_columns()
    for query, key, value in zip(
        *(shown[name].tolist() for name in ("query", "key", "implicit_weight")), strict=True
    ):
        assert value == whole[query, key]
    assert set(shown["query"].tolist()) == {3, len(TEXT) - 1}


def test_layers_behind_the_last_one_asked_for_do_not_run() -> None:
    model = built("Mamba2")
    loaded, ran = implicit(model), list[int]()
    for number, mixer in enumerate(mixers(model)):
        mixer.register_forward_pre_hook(lambda *_, number=number: ran.append(number))
    attnviz.capture(TEXT, loaded, heads="L1H0")
    assert ran == [0, 1]


def test_a_single_token_and_half_precision_are_proven_as_well() -> None:
    model = built("Mamba2")
    assert attnviz.capture("a", implicit(model)).pattern(0, 0).shape == (1, 1)
    half = attnviz.capture(TEXT, implicit(model.to(torch.bfloat16)))
    assert half.record.model.dtype == "bfloat16"


def test_a_model_without_mamba_2_layers_is_refused() -> None:
    sizes = {**SIZES, "state_size": 4, "pad_token_id": 0}
    mamba = transformers.MambaForCausalLM(transformers.MambaConfig(**sizes)).eval()
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SIZES, **ATTENTION}))
    for model in (mamba, llama.eval()):
        with pytest.raises(UsageError, match="is for models with Mamba-2 or Gated DeltaNet layers"):
            implicit(model)


def test_no_measure_names_heads_of_implicit_attention() -> None:
    with pytest.raises(UsageError, match="as the probe is of weights, not of implicit weights"):
        attnviz.capture(TEXT, implicit(built("Mamba2")), heads="top1:first")


def test_a_pure_mamba_2_says_how_it_is_shown() -> None:
    with pytest.raises(ModelError, match=r"show it with kind=.implicit."):
        attnviz.load_model(built("Mamba2"), TOKENIZER)


def test_a_run_needs_no_square_of_the_text() -> None:
    needs = implicit(built("Mamba2"))._loaded.working_bytes
    assert needs(16000, 16000) < 20 * needs(1000, 1000)
