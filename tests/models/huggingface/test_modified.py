"""A model that was changed in memory gives the numbers of what it does, not of its base weights.

The oracle is a plain model whose weights do the same.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import peft
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import LlamaAttention
from transformers.pytorch_utils import Conv1D

import attnviz
from attnviz.errors import ModelError
from attnviz.models.frozen.qk_ov import copying, weights_of
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.records.heads import Head
from tests.architectures import engine_of
from tests.dissections import dissected

IDS = torch.tensor([[5, 6, 7, 9, 3]])
INPUTS = {"input_ids": IDS, "use_cache": False}
HEADS = (4, 4)
# peft calls what transformers is about to rename
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj"]


def llama() -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    return AutoModelForCausalLM.from_config(LlamaConfig(**sizes, **heads)).eval()


def gpt2() -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 64}
    ends = {"bos_token_id": 1, "eos_token_id": 2}
    return AutoModelForCausalLM.from_config(GPT2Config(**sizes, **ends)).eval()


def numbers(model: Any) -> dict[str, Tensor]:
    """What is made of a model's weights: value norms, a head's steps, sums and circuits."""
    with torch.inference_mode():
        found = {"norms": torch.from_numpy(engine_of(model).value_norms(IDS[0].tolist()))}
        head = dissected(model, INPUTS, "self", Head(1, 2), 3)
    found |= {"w_o": head.w_o, "unembedding": head.unembedding, **head.arrays}
    found |= {name: weight for name, (weight, _) in head.weights.items()}
    run = freeze_transformers(model, IDS, HEADS)
    for layer, frozen in enumerate(run.layers):
        assert frozen.attention is not None
        found[f"attended {layer}"] = frozen.attention.attended
        found[f"w_o {layer}"] = frozen.attention.w_o
    assert run.output is not None
    one = freeze_transformers(model, IDS[:, :1], HEADS)
    copied = copying(one, weights_of(one))
    found |= {"output": run.output.weight, "logits": run.output.reads(run.streams[-1][None])}
    found["copying"] = torch.tensor([each.eigenvalues for each in copied])
    return {name: tensor.detach() for name, tensor in found.items()}


def check_same(model: Any, oracle: Any) -> None:
    found, expected = numbers(model), numbers(oracle)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, rtol=2e-4, atol=2e-4, err_msg=name)


def trained(model: Any) -> Any:
    """Adapters begin without an effect; here they have one."""
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "base_layer" not in name and parameter.requires_grad:
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def adapted(base: Any, *configs: Any) -> Any:
    first, *more = configs
    model = peft.get_peft_model(base, first)
    for i, config in enumerate(more):
        model.add_adapter(f"more{i}", config)
    if more:
        model.base_model.set_adapter(["default", *(f"more{i}" for i in range(len(more)))])
    return trained(model)


ADAPTERS = {
    "lora": (llama, peft.LoraConfig(target_modules=LLAMA, r=3, lora_alpha=9)),
    "dora": (llama, peft.LoraConfig(target_modules=LLAMA, r=3, use_dora=True)),
    "ia3": (llama, peft.IA3Config(target_modules=LLAMA, feedforward_modules=[])),
    "two": (llama, *(peft.LoraConfig(target_modules=[n], r=2) for n in ("o_proj", "v_proj"))),
    "conv1d": (gpt2, peft.LoraConfig(target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)),
    "every": (llama, peft.LoraConfig(target_modules="all-linear", r=3)),
    "ends": (llama, peft.LoraConfig(target_modules=["embed_tokens", "lm_head"], r=3)),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_counts_as_if_it_were_merged(name: str) -> None:
    base, *configs = ADAPTERS[name]
    model = adapted(base(), *configs)
    check_same(model.get_base_model(), copy.deepcopy(model).merge_and_unload().eval())


def test_an_adapter_that_is_merged_or_disabled_counts_as_it_is() -> None:
    model = adapted(llama(), *ADAPTERS["lora"][1:])
    with model.disable_adapter():
        check_same(model.get_base_model(), llama())
    merged = copy.deepcopy(model).merge_and_unload().eval()
    model.base_model.merge_adapter()
    check_same(model.get_base_model(), merged)


# ---- other modules, hooks and functions: each changes a projection, and its oracle's weight ----


def scaled_by_a_hook(module: nn.Module) -> float:
    module.register_forward_hook(lambda _module, _args, output: 3 * output)
    return 3


def scaled_before(module: nn.Module) -> float:
    module.register_forward_pre_hook(lambda _module, args: (3 * args[0],))
    return 3


def scaled_by_its_forward(module: nn.Module) -> float:
    inner = module.forward
    module.forward = lambda x: 3 * inner(x)  # type: ignore[method-assign]
    return 3


class Tripled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 3 * weight


def parametrized(module: nn.Module) -> float:
    parametrize.register_parametrization(module, "weight", Tripled())
    return 3


def weight_normed(module: nn.Module) -> float:
    parametrizations.weight_norm(module)
    parameters = module.parametrizations.weight  # type: ignore[union-attr]
    parameters.original0.data.mul_(3)  # type: ignore[union-attr, operator]
    return 3


CHANGES = (scaled_by_a_hook, scaled_before, scaled_by_its_forward, parametrized, weight_normed)
PLACES = ("q_proj", "v_proj", "o_proj", "c_proj", "lm_head")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_projection_that_was_changed_is_asked(
    change: Callable[[nn.Module], float], place: str
) -> None:
    model, oracle = (gpt2(), gpt2()) if place == "c_proj" else (llama(), llama())
    change(projection(model, place))
    plain = projection(oracle, place)
    for parameter in plain.parameters():
        # what comes before it does not change the bias; here biases are 0
        parameter.data.mul_(3)
    check_same(model, oracle)


def projection(model: Any, place: str) -> Any:
    if place == "lm_head":
        return model.lm_head
    if place == "c_proj":
        return model.transformer.h[1].attn.c_proj
    return getattr(model.model.layers[1].self_attn, place)


class Packed(nn.Module):
    """As quantised layers are: no weight of its own name and type."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.scale = linear.weight.abs().max() / 127
        self.register_buffer("packed", (linear.weight / self.scale).round().to(torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.packed.float() * self.scale).T


@pytest.mark.parametrize("place", ["q_proj", "v_proj", "o_proj"])
@pytest.mark.parametrize("wrap", ["sequential", "packed"])
def test_a_projection_within_another_module_is_asked(wrap: str, place: str) -> None:
    model, oracle = llama(), llama()
    was, plain = projection(model, place), projection(oracle, place)
    if wrap == "packed":
        made: nn.Module = Packed(was)
        plain.weight.data = made.packed.float() * made.scale  # type: ignore[union-attr, operator]
    else:
        made = nn.Sequential(was, nn.Linear(was.out_features, was.out_features, bias=False))
        plain.weight.data = made[1].weight.data @ plain.weight.data
    setattr(model.model.layers[1].self_attn, place, made)
    check_same(model, oracle)


def test_a_projection_that_is_not_linear_is_refused_by_name() -> None:
    model = llama()
    model.model.layers[1].self_attn.o_proj.register_forward_hook(lambda *all_: all_[2].tanh())
    for ask in (
        lambda: engine_of(model).value_norms(IDS[0].tolist()),
        lambda: dissected(model, INPUTS, "self", Head(1, 2), 3),
        lambda: freeze_transformers(model, IDS, HEADS),
    ):
        with pytest.raises(ModelError, match="Linear is a projection that is not linear"):
            ask()


def test_a_hook_that_changes_some_tokens_alone_is_refused_by_name() -> None:
    def steer(_module: Any, _args: Any, output: Tensor) -> Tensor:
        added = torch.zeros_like(output)
        if output.size(1) == IDS.size(1):  # as a hook that steers one text
            added[:, 2] = 1
        return output + added

    model = llama()
    model.model.layers[1].self_attn.o_proj.register_forward_hook(steer)
    for ask in (
        lambda: engine_of(model).value_norms(IDS[0].tolist()),
        lambda: dissected(model, INPUTS, "self", Head(1, 2), 3),
        lambda: freeze_transformers(model, IDS, HEADS),
    ):
        with pytest.raises(ModelError, match="changes its heads' outputs"):
            ask()


def test_a_model_has_its_hooks_and_functions_afterwards() -> None:
    model = llama()
    mlp, norm = model.model.layers[0].mlp, model.model.layers[0].input_layernorm
    own, hook = mlp.forward, lambda _module, _args, output: 2 * output
    mlp.forward = lambda x: 2 * own(x)
    patched = mlp.forward
    norm.register_forward_hook(hook)
    before = model(IDS).logits
    freeze_transformers(model, IDS, HEADS)
    assert mlp.forward is patched
    assert list(norm._forward_hooks.values()) == [hook]
    assert torch.equal(model(IDS).logits, before)


def test_conv1d_is_read_the_other_way_round() -> None:
    assert isinstance(gpt2().transformer.h[0].attn.c_proj, Conv1D)
    check_same(gpt2(), gpt2())


# ---- attention of a user's own, and prompts outside of the model ----


def load(model: Any) -> attnviz.Model:
    made = Tokenizer(models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return attnviz.load_model(model, PreTrainedTokenizerFast(tokenizer_object=made))


class Silent(LlamaAttention):
    def forward(self, hidden_states: Tensor, **_: Any) -> Any:
        return self.o_proj(self.v_proj(hidden_states).repeat(1, 1, 2)), None


class Elsewhere(nn.Module):
    def __init__(self, *_: Any) -> None:
        super().__init__()
        self.mixed = nn.Linear(24, 24)

    def forward(self, hidden_states: Tensor, **_: Any) -> Any:
        return self.mixed(hidden_states), None


class Nothing(nn.Module):
    def __init__(self, *_: Any) -> None:
        super().__init__()

    def forward(self, hidden_states: Tensor, **_: Any) -> Any:
        return torch.zeros_like(hidden_states), None


class Same(LlamaAttention):
    """As in transformers, but of another file."""


@pytest.mark.parametrize("kind", [Silent, Elsewhere])
def test_attention_that_cannot_be_recorded_is_refused_by_name(kind: Any) -> None:
    model = llama()
    model.model.layers[1].self_attn = kind(model.config, 1)
    with pytest.raises(ModelError, match=f"the attention of layer 1, of the class {kind.__name__}"):
        load(model.eval())


def test_a_layer_whose_attention_was_taken_out_is_noted() -> None:
    model = llama()
    model.model.layers[1].self_attn = Nothing()
    found = load(model.eval()).capture("w3 w4 w5")
    assert found.notes == ("layer 1 of LlamaForCausalLM has no attention",)


def test_a_subclass_in_another_file_is_recorded_as_its_base_is() -> None:
    model = llama()
    same = Same(model.config, 1)
    same.load_state_dict(model.model.layers[1].self_attn.state_dict())
    expected = load(model).capture("w3 w4 w5").pattern(1, 2)
    model.model.layers[1].self_attn = same.eval()
    np.testing.assert_array_equal(load(model).capture("w3 w4 w5").pattern(1, 2), expected)


SOFT = {
    "prefix": peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "prompt": peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "invoked": peft.LoraConfig(
        target_modules=LLAMA, task_type="CAUSAL_LM", alora_invocation_tokens=[7, 9]
    ),
}


@pytest.mark.filterwarnings("ignore:.past_key_values. is deprecated")
@pytest.mark.parametrize("name", SOFT)
def test_what_peft_adds_outside_of_the_model_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="stands outside of it"):
        load(adapted(llama(), SOFT[name]))
