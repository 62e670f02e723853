"""The shapes of a model's tensors, by name, without its weights: from its sizes or its config."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from attnviz.errors import ModelError
from attnviz.models.folder.config import GPTConfig, transformers_config

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = Mapping[str, Shape]

# Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1, for gpt3.
GPT_SIZES: Mapping[str, GPTConfig] = {
    "gpt2": GPTConfig(50257, 1024, 768, 12, 12),
    "gpt2-medium": GPTConfig(50257, 1024, 1024, 24, 16),
    "gpt2-large": GPTConfig(50257, 1024, 1280, 36, 20),
    "gpt2-xl": GPTConfig(50257, 1024, 1600, 48, 25),
    "distilgpt2": GPTConfig(50257, 1024, 768, 6, 12),
    "gpt3": GPTConfig(50257, 2048, 12288, 96, 96),
}
UNPUBLISHED = ("gpt3",)
"""Models whose weights are not public; lessons count their parameters."""


def known_total(name: str) -> int:
    """The parameters of a GPT by name, all of them at once."""
    return sum(math.prod(shape) for shape in gpt2_shapes(GPT_SIZES[name]).values())


def gpt2_shapes(sizes: GPTConfig) -> Shapes:
    """Every tensor of a GPT-2 of these sizes, under GPT-2's names."""
    d, d_mlp = sizes.n_embd, sizes.d_mlp
    attention = {"ln_1": (d,), "attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d)}
    block = {**attention, "ln_2": (d,), "mlp.c_fc": (d, d_mlp), "mlp.c_proj": (d_mlp, d)}
    shapes: dict[str, Shape] = {"wte.weight": (sizes.vocab_size, d)}
    shapes["wpe.weight"] = (sizes.n_positions, d)
    for layer in range(sizes.n_layer):
        for name, shape in block.items():
            shapes[f"h.{layer}.{name}.weight"] = shape
            shapes[f"h.{layer}.{name}.bias"] = shape[-1:]
    return {**shapes, "ln_f.weight": (d,), "ln_f.bias": (d,)}


def built_shapes(folder: Path) -> Shapes:
    """The tensors that transformers builds from config.json, on the meta device.

    Raises:
        ModelError: transformers has no such architecture.
    """
    import torch
    import transformers

    config = transformers_config(folder)
    architecture = next(iter(config.architectures or ()), "")
    built = getattr(transformers, architecture, None)
    if built is None:
        raise ModelError(
            f"the config.json of this model names no architecture that transformers "
            f"{transformers.__version__} has",
            "use a model that names one",
        )
    with torch.device("meta"):
        model = built(config)
    return {name: tuple(p.shape) for name, p in model.named_parameters()}
