"""A head ablated is one whose rows of the output projection are zero: this file's oracle."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    FalconConfig,
    Gemma2Config,
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    OPTConfig,
)

from attnviz.data.ablate import Ablated, AblatedRun, Replacement
from attnviz.data.head import Head
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface.ablate import ablate_transformers
from attnviz.models.huggingface.layers import parts_of
from attnviz.models.loaded import predicting

IDS = [5, 6, 7, 8, 9, 5, 6]
HEADS = 4
LLAMA = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
}
GPT = {"vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": HEADS}
CONFIGS: dict[str, Any] = {
    "gpt2": GPT2Config(**GPT, bos_token_id=1, eos_token_id=2),
    "llama, shared keys": LlamaConfig(**LLAMA, num_key_value_heads=2),
    "gpt-neox, joined projections": GPTNeoXConfig(**LLAMA),
    "gemma 2, a wide head": Gemma2Config(**LLAMA, num_key_value_heads=2, head_dim=8),
    "opt": OPTConfig(**LLAMA, ffn_dim=40, word_embed_proj_dim=24),
    "gpt-j, which cannot switch": GPTJConfig(**GPT, rotary_dim=4),
    "falcon, which cannot switch": FalconConfig(**LLAMA, new_decoder_architecture=False),
    "bloom, which cannot switch": BloomConfig(
        vocab_size=61, hidden_size=24, n_layer=2, n_head=HEADS
    ),
    "gpt-neo, which cannot switch": GPTNeoConfig(
        vocab_size=61,
        hidden_size=24,
        num_layers=2,
        num_heads=HEADS,
        attention_types=[[["global", "local"], 1]],
    ),
}


def model_of(config: Any) -> Any:
    torch.manual_seed(0)
    config.tie_word_embeddings = False
    made = AutoModelForCausalLM.from_config(config)
    model = made if made._can_set_attn_implementation() else _eager(config)
    return model.eval().requires_grad_(False)


def _eager(config: Any) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager")


def without(model: Any, heads: Ablated) -> Any:
    """A copy whose output projections take nothing from these heads."""
    changed = copy.deepcopy(model)
    for layer, parts in parts_of(changed, {head.layer for head in heads}).items():
        module = parts.output
        weight: Any = module.weight
        rows = weight if type(module).__name__ == "Conv1D" else weight.t()  # (h·d_v, d)
        width = rows.size(0) // HEADS
        for head in heads:
            if head.layer == layer:
                rows[head.head * width : (head.head + 1) * width] = 0
    return changed


def runs(
    model: Any, ablations: list[Ablated], replacement: Replacement = "zero"
) -> dict[int, AblatedRun]:
    found: dict[int, AblatedRun] = {}

    def keep(run: AblatedRun) -> None:
        found[run.index] = run

    ids = torch.tensor([IDS])
    with torch.inference_mode():
        ablate_transformers(model, ids, (HEADS, HEADS), ablations, replacement, keep, whole=True)
    return found


def logits_of(model: Any) -> Tensor:
    with torch.inference_mode():
        found: Tensor = model(torch.tensor([IDS])).logits[0]
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_an_ablated_head_is_one_that_the_output_projection_ignores(name: str) -> None:
    model = model_of(CONFIGS[name])
    ablations: list[Ablated] = [
        (),
        (Head(0, 1),),
        (Head(1, 0),),
        (Head(0, 0), Head(0, 3), Head(1, 2)),
    ]
    found = runs(model, ablations)
    assert sorted(found) == [0, 1, 2, 3]
    for index, heads in enumerate(ablations):
        logits = logits_of(without(model, heads))
        np.testing.assert_allclose(found[index].last, logits[-1], atol=1e-5)
        logs = logits[:-1].log_softmax(-1)[range(len(IDS) - 1), IDS[1:]]
        np.testing.assert_allclose(found[index].followed, logs, atol=1e-5)
    changes = [np.abs(found[i].last - found[0].last).max() for i in (1, 2, 3)]
    assert min(changes) > 1e-4  # the oracle is no tautology: each ablation changes something


def test_nothing_stays_behind_in_the_model() -> None:
    model = model_of(CONFIGS["llama, shared keys"])
    before = logits_of(model)
    runs(model, [(Head(0, 0),), (Head(1, 1),)])
    assert torch.equal(logits_of(model), before)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_the_mean_is_a_constant_that_the_layer_adds() -> None:
    model = model_of(CONFIGS["gpt2"])
    given: list[Tensor] = []
    projection: nn.Module = model.transformer.h[0].attn.c_proj
    handle = projection.register_forward_pre_hook(lambda _m, args: given.append(args[0][0]))
    logits_of(model)
    handle.remove()
    width = 24 // HEADS
    mine = slice(width, 2 * width)
    mean = given[0][:, mine].mean(dim=0)  # (d_v)
    changed = without(model, (Head(0, 1),))
    changed.transformer.h[0].attn.c_proj.bias += mean @ projection.weight[mine]
    found = runs(model, [(Head(0, 1),)], "mean")[0]
    np.testing.assert_allclose(found.last, logits_of(changed)[-1], atol=1e-5)


def test_both_engines_ablate_alike(gpt2_folder: Path) -> None:
    ours, theirs = (load(Source(str(gpt2_folder), engine=e)) for e in ("native", "transformers"))
    ablations: list[Ablated] = [(), (Head(0, 2),), (Head(1, 0),), (Head(0, 0), Head(1, 1))]
    for replacement in ("zero", "mean"):
        found: list[dict[int, AblatedRun]] = [{}, {}]
        for model, kept in zip((ours, theirs), found, strict=True):
            predicting(model).ablate(
                IDS,
                ablations,
                replacement,
                lambda run, k=kept: k.update({run.index: run}),
                whole=True,
            )
        for index in range(4):
            a, b = found[0][index], found[1][index]
            np.testing.assert_allclose(a.followed, b.followed, atol=2e-5)
            np.testing.assert_allclose(a.last, b.last, atol=1e-4)


def test_the_native_model_without_a_head_is_the_one_with_zero_rows(gpt2_folder: Path) -> None:
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder).eval().requires_grad_(False)
    theirs.transformer.h[1].attn.c_proj.weight[7:14] = 0  # three heads of seven
    expected = logits_of(theirs)
    found: dict[int, AblatedRun] = {}
    model = predicting(load(Source(str(gpt2_folder), engine="native")))
    model.ablate(IDS, [(Head(1, 1),)], "zero", lambda r: found.update({0: r}), whole=True)
    np.testing.assert_allclose(found[0].last, expected[-1], atol=1e-4)


def test_a_batch_of_many_ablations_is_as_each_alone(gpt2_folder: Path) -> None:
    model = predicting(load(Source(str(gpt2_folder), engine="native")))
    ablations: list[Ablated] = [(Head(layer, head),) for layer in (0, 1) for head in range(3)]
    together: dict[int, AblatedRun] = {}
    model.ablate(IDS, ablations, "zero", lambda r: together.update({r.index: r}), whole=True)
    for index, heads in enumerate(ablations):
        alone: dict[int, AblatedRun] = {}
        model.ablate(IDS, [heads], "zero", lambda r, a=alone: a.update({0: r}), whole=True)
        np.testing.assert_allclose(together[index].followed, alone[0].followed, atol=2e-5)
