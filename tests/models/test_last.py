"""The last position of a run: direct effects of every key through every head, in one pass."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from attnviz.errors import ModelError
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.models.huggingface.last import last_read

SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 61,
    "head_dim": 6,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
OF_GPT2 = {"n_embd": 24, "n_layer": 3, "n_head": 4, "vocab_size": 61, "n_positions": 32}
OF_OPT = {**SIZES, "ffn_dim": 40, "word_embed_proj_dim": 24}
PLAIN: list[tuple[str, dict[str, Any]]] = [
    ("gpt2", OF_GPT2),
    ("llama", SIZES),
    ("gemma3_text", {**SIZES, "sliding_window": 4}),  # a norm behind its attention
    ("olmo2", SIZES),  # another
    ("granite", {**SIZES, "residual_multiplier": 0.3, "logits_scaling": 4.0}),
    ("gpt_neox", SIZES),  # its attention and MLP read the same
    ("opt", OF_OPT),
    ("qwen3", SIZES),
    ("cohere", {**SIZES, "logit_scale": 0.5}),
]
IDS = torch.tensor([[3, 14, 1, 5, 9, 2, 6, 5, 31]])
HEADS = [4, 4, 4]


def model_of(kind: str, sizes: dict[str, Any]) -> Any:
    """The model with every parameter random, biases and the weights of norms, too."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes)).eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def read(model: Any, ids: torch.Tensor = IDS) -> Any:
    return last_read(model, {"input_ids": ids, "use_cache": False}, HEADS, None)


@pytest.mark.parametrize(("kind", "sizes"), PLAIN, ids=[kind for kind, _ in PLAIN])
def test_its_parts_are_those_of_a_run_that_is_held_fixed(kind: str, sizes: dict[str, Any]) -> None:
    model = model_of(kind, sizes)
    found, whole = read(model), freeze_transformers(model, IDS, HEADS)
    output = whole.output
    assert output is not None
    with torch.no_grad():
        logits = model(IDS).logits[0, -1]
    torch.testing.assert_close(found.logits, logits, atol=1e-5, rtol=1e-4)
    rows = output.weight[[7, 40]] - output.weight[[3, 3]]
    ours, theirs = found.shares(rows), whole.of_logits(IDS.size(1) - 1, rows).shares
    assert ours.parts == theirs.parts
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-4)
    np.testing.assert_allclose(ours.total, theirs.total, atol=1e-4)
    assert ours.error < 1e-5


def test_an_effect_is_weight_times_value_through_the_held_norm() -> None:
    """By plain hooks on Gemma 3, whose attention has a norm behind it."""
    model, seen = model_of(*PLAIN[2]).double(), dict[Any, Any]()
    for i, layer in enumerate(model.model.layers):
        layer.self_attn.v_proj.register_forward_hook(
            lambda _m, _a, out, i=i: seen.update({("v", i): out[0]})
        )
        layer.post_attention_layernorm.register_forward_hook(
            lambda _m, args, out, i=i: seen.update({("scale", i): out[0, -1] / args[0][0, -1]})
        )
    model.model.norm.register_forward_hook(
        lambda _m, args, out: seen.update(last=out[0, -1] / args[0][0, -1])
    )
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(IDS, output_attentions=True)
    weight = model.lm_head.weight.detach()
    direction = (weight[7] - weight.mean(dim=0)) * seen["last"]
    found = read(model_of(*PLAIN[2]))
    for i, effects in found.effects(found.direction([7])):
        values = seen["v", i].view(-1, 2, 6).repeat_interleave(2, dim=1)  # (n, heads, d_v)
        w_o = model.model.layers[i].self_attn.o_proj.weight.detach().T.view(4, 6, 24)
        written = torch.einsum("nhv,hvd->hnd", values, w_o) * seen["scale", i]
        expected = out.attentions[i][0, :, -1] * (written @ direction)
        torch.testing.assert_close(effects[0].double(), expected, atol=1e-4, rtol=1e-4)
        lengths = torch.einsum("nhv,hvd->hnd", values, w_o).norm(dim=-1)
        np.testing.assert_allclose(found.lengths[i], lengths, rtol=1e-5)


def test_a_model_is_planned_once_and_anew_where_a_projection_was_replaced() -> None:
    model = model_of(*PLAIN[1])
    before = read(model).logits
    layer = model.model.layers[1].self_attn
    layer.o_proj = torch.nn.Linear(24, 24, bias=True)
    after = read(model)
    assert not torch.allclose(before, after.logits)
    assert after.shares(after.output.weight[[7]]).error < 1e-5


def test_a_hook_on_a_module_changes_the_effects_and_its_end_changes_them_back() -> None:
    model = model_of(*PLAIN[1])

    def of_layer_1() -> float:
        found = read(model)
        return float(dict(found.effects(found.direction([7])))[1].abs().max())

    before = of_layer_1()
    hook = model.model.layers[1].self_attn.register_forward_hook(
        lambda _m, _args, out: (torch.zeros_like(out[0]), *out[1:])
    )
    assert of_layer_1() == 0
    hook.remove()
    assert of_layer_1() == before


def test_a_hook_that_adds_to_a_projection_is_part_of_its_bias() -> None:
    model = model_of(*PLAIN[1])
    model.model.layers[1].self_attn.o_proj.register_forward_hook(lambda _m, _args, out: out + 1)
    found = read(model)
    assert found.shares(found.output.weight[[7]]).error < 1e-5


def test_it_is_the_same_in_float64_and_in_inference_mode() -> None:
    single, double = (read(model_of(*PLAIN[1]).to(t)) for t in (torch.float32, torch.float64))
    model = model_of(*PLAIN[1])
    with torch.inference_mode():
        inside = read(model)
        kept = {i: np.ones((4, 9), np.bool_) for i in range(3)}
        brought = inside.brought([7, 40], kept)
    np.testing.assert_allclose(brought, single.brought([7, 40], kept), atol=1e-6)
    np.testing.assert_allclose(brought, double.brought([7, 40], kept), atol=1e-4)
    squares = sum(
        np.maximum(effects.detach().numpy(), 0) ** 2
        for _, effects in single.effects(single.direction([7, 40]))
    )
    np.testing.assert_allclose(brought, np.sqrt(np.sum(squares, axis=1)), atol=1e-5)
    for layer, effects in single.effects(single.direction([40])):
        np.testing.assert_allclose(single.at_key(40, 5)[layer], effects[0, :, 5].detach())


def test_what_cannot_be_followed_is_refused() -> None:
    capped = model_of("gemma2", {**SIZES, "final_logit_softcapping": 3.0})
    with pytest.raises(ModelError, match="not a sum over its parts"):
        read(capped)
    with pytest.raises(ModelError, match="do not add up"):
        read(model_of(*PLAIN[1]).to(torch.bfloat16))
    behind = model_of("opt", {**OF_OPT, "do_layer_norm_before": False})  # norms in the stream
    with pytest.raises(ModelError, match="in its own way"):
        read(behind)


def test_one_token_brings_itself_alone() -> None:
    found = read(model_of(*PLAIN[0]), IDS[:, :1])
    for _, effects in found.effects(found.direction([7])):
        assert effects.shape == (1, 4, 1)
