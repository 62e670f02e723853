"""A model folder in Hugging Face's GPT-2 layout, read into and written from `gpt.GPT`.

The folder holds `config.json`, `model.safetensors` and `tokenizer.json`, and may hold
`card.json`. GPT-2 keeps W_Q, W_K and W_V side by side in one matrix (`c_attn`); here
they are apart, as the formulas have them.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnviz.models.attention import Hook, attached
from attnviz.models.folder.config import GPTConfig, check_computable, gpt2_config
from attnviz.models.folder.files import CONFIG, TOKENIZER, WEIGHTS
from attnviz.models.folder.weights import check_finite, check_parameters, check_shapes, read_weights
from attnviz.models.sampling import Handover, chosen, rows_at_a_time
from attnviz.models.scratch.gpt import GPT
from attnviz.records.capture import Consumer, Wanted
from attnviz.records.prompt import GoOn, Sampling

PREFIX = "transformer."


class _Undrawn(TorchFunctionMode):
    """Draws no random numbers, which on the meta device would import PyTorch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.init.normal_:
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def load_checkpoint(folder: Path) -> GPT:
    """Load a folder's model, ready to run (no gradients, evaluation mode).

    Raises:
        ModelError: a file is missing or damaged, gpt.py does not compute this configuration,
            or weights have other shapes than the configuration says or are not finite.
    """
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


# The from-scratch model goes on with a text; each token is read once, thanks to a cache.
#
# The cache stands at the hook points of keys and values: what arrives there is kept, and all that
# was kept so far is passed on. Letters in the shape comments as in `attention.py`.


def generate_native(
    model: GPT,
    ids: Tensor,
    sampling: Sampling,
    ends: Collection[int],
    wanted: Wanted,
    consume: Consumer,
    go_on: GoOn,
) -> None:
    """Write tokens until one of `ends`, which is not handed over, or as long as `go_on` says so.

    Args:
        model: in evaluation mode.
        ids: the prompt (1, n).
        sampling: how tokens are chosen.
        ends: the ids that end a text.
        wanted: which heads; their rows are those of the positions that predict a new token.
        consume: is given the rows of a new token, numbered from 0, before `go_on` is told of it.
        go_on: see `GoOn`.
    """
    n, sizes = ids.size(1), model.config
    rows: dict[int, Tensor] = {}
    hooks = {f"h.{layer}.attn.pattern": last_row(rows, layer) for layer in wanted.heads}
    for layer in range(sizes.n_layer):
        for name in ("k", "v"):
            hooks[f"h.{layer}.attn.{name}"] = _cache(n + sampling.most)
    handover = Handover(wanted, consume)
    with torch.inference_mode(), torch.random.fork_rng(), attached(model, hooks):
        torch.manual_seed(sampling.seed)
        stream = model.hidden(ids, rows=rows_at_a_time(n, sizes.n_head))  # (1, n, d)
        for step in range(sampling.most):
            id_ = chosen(model.logits(model.ln_f(stream[0, -1])), sampling)
            if id_ in ends:
                return
            for layer in wanted.heads:
                handover.take(layer, torch.tensor([step]), rows[layer])
            if not go_on(id_) or step + 1 == sampling.most:
                return
            everything = torch.ones(1, n + step + 1, dtype=torch.bool, device=ids.device)
            position = torch.tensor([n + step], device=ids.device)
            stream = model.hidden(ids.new_tensor([[id_]]), mask=everything, positions=position)


def last_row(rows: dict[int, Tensor], layer: int) -> Hook:
    """Keeps the last row (h, 1, n_k) of a pattern (1, h, n_q, n_k), or of its last block."""

    def keep(pattern: Tensor) -> None:
        rows[layer] = pattern[0, :, -1:].clone()  # not the whole block

    return keep


def _cache(most: int) -> Hook:
    """Passes on all keys, or values, that arrived so far; `most`: how many there will be."""
    kept, filled = torch.empty(0), 0

    def grow(new: Tensor) -> Tensor:  # (1, h, n, d_k)
        nonlocal kept, filled
        if not filled:
            kept = new.new_empty(*new.shape[:2], most, new.size(3))
        kept[:, :, filled : filled + new.size(2)] = new
        filled += new.size(2)
        return kept[:, :, :filled]  # (1, h, filled, d_k)

    return grow
