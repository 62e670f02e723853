"""A vision side whose image tokens depend on the pixels of their own patches and no others."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def make_local(model: nn.Module) -> None:
    """Let every attention of the vision side add nothing, so that each patch stays by itself.

    The weights alone change: the projection of each attention's output becomes zero. What remains
    passes by the residual connections, whichever attention function runs or is recorded.
    """
    towers = [m for name, m in model.named_modules() if is_vision(name)]
    if not towers:
        raise ValueError(f"{type(model).__name__} has no vision side")
    with torch.no_grad():
        for module in towers:
            if type(module).__name__.endswith("Attention"):
                *_, output = (m for m in module.modules() if isinstance(m, nn.Linear))
                output.weight.zero_()


def is_vision(name: str) -> bool:
    """Whether a module, by its name, belongs to the vision side."""
    return any(part in VISION for part in name.split("."))


VISION = {"vision_tower", "vision_model", "visual", "image_tower"}


def image_tokens(model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """What the language model takes of an image, in order of the sequence: (n, d).

    The embeddings in the place of image tokens; or else what its text has cross-attention to.
    """
    seen = []

    def see(_module: nn.Module, _args: Any, kwargs: Any) -> None:
        crossed = kwargs.get("cross_attention_states")  # (tiles, patches, d)
        where = inputs["input_ids"] == image_token_id(model.config)
        seen.append(kwargs["inputs_embeds"][where] if crossed is None else crossed.flatten(0, 1))

    handle = model.get_decoder().register_forward_pre_hook(see, with_kwargs=True)
    try:
        with torch.no_grad():
            model(**inputs)
    finally:
        handle.remove()
    (tokens,) = seen
    return tokens


def image_token_id(config: Any) -> int:
    """The token that an image is put in the place of."""
    name = "image_token_id" if hasattr(config, "image_token_id") else "image_token_index"
    return int(getattr(config, name))
