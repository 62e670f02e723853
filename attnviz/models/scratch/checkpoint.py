"""A model folder in Hugging Face's GPT-2 layout, read into and written from `gpt.GPT`.

The folder holds `config.json`, `model.safetensors` and `tokenizer.json`, and may hold
`card.json`. GPT-2 keeps W_Q, W_K and W_V side by side in one matrix (`c_attn`); here
they are apart, as the formulas have them.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnviz.models.folder.config import GPTConfig, check_computable, gpt2_config
from attnviz.models.folder.files import CONFIG, TOKENIZER, WEIGHTS
from attnviz.models.scratch.gpt import GPT
from attnviz.models.weights import check_finite, check_parameters, check_shapes, read_weights

PREFIX = "transformer."


class _Undrawn(TorchFunctionMode):
    """Draws no random numbers, which on the meta device would import PyTorch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.init.normal_:
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def load_checkpoint(folder: Path) -> GPT:
    """Load a folder's model, ready to run (no gradients, evaluation mode)."""
    config = gpt2_config(folder)
    check_computable(config, folder)
    check_parameters(config.sizes.parameters, folder)
    with torch.device("meta"), _Undrawn():  # no memory for weights that are replaced at once
        model = GPT(config.sizes)
    state = from_gpt2(read_weights(folder))
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    check_shapes(expected, state, folder)
    # the tensors stay the file's own, mapped: pages that are not used are never read
    model.load_state_dict({name: state[name].float() for name in expected}, assign=True)
    check_finite(dict(model.named_parameters()), folder)
    return model.eval().requires_grad_(False)


def save_checkpoint(folder: Path, model: GPT, tokenizer: Tokenizer) -> None:
    """Write the folder; transformers' `GPT2LMHeadModel.from_pretrained` can read it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = _written_config(model.config, tokenizer)
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(to_gpt2(model.state_dict()), folder / WEIGHTS, metadata={"format": "pt"})
    tokenizer.save(str(folder / TOKENIZER))


def _written_config(config: GPTConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """The config.json of a GPT-2; BOS and EOS are the tokenizer's `<|endoftext|>`."""
    end = tokenizer.token_to_id("<|endoftext|>")
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        **{field.name: getattr(config, field.name) for field in fields(GPTConfig)},
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": True,
        "bos_token_id": end,
        "eos_token_id": end,
        "dtype": "float32",
    }


def to_gpt2(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This model's tensors under GPT-2's names: W_Q, W_K, W_V joined side by side."""
    joined = {}
    for name, tensor in state.items():
        if ".attn.w_q." in name:
            parts = [state[name.replace(".w_q.", f".w_{letter}.")] for letter in "qkv"]
            joined[PREFIX + name.replace(".w_q.", ".c_attn.")] = torch.cat(parts, dim=-1)
        elif ".attn.w_k." not in name and ".attn.w_v." not in name:
            joined[PREFIX + name.replace(".attn.w_o.", ".attn.c_proj.")] = tensor.contiguous()
    return joined


def from_gpt2(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """GPT-2's tensors under this model's names: `c_attn` split into W_Q, W_K, W_V."""
    apart = {}
    for name, tensor in state.items():
        bare = name.removeprefix(PREFIX)
        if ".attn.c_attn." in bare:
            for letter, part in zip("qkv", tensor.chunk(3, dim=-1), strict=True):
                apart[bare.replace(".c_attn.", f".w_{letter}.")] = part
        elif bare != "lm_head.weight":  # tied to wte
            apart[bare.replace(".attn.c_proj.", ".attn.w_o.")] = tensor
    return apart
