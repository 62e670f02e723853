"""The input of a model that reads only an image."""

from collections.abc import Mapping
from contextlib import suppress
from inspect import signature
from typing import Any

import torch

from attnviz.errors import ModelError
from attnviz.models.huggingface.attention import forward
from attnviz.models.huggingface.vision import typed
from attnviz.records.places import RawImage


def pixels_of(processor: Any, model: Any, raw: RawImage) -> dict[str, Any]:
    """The arguments of a forward pass over an image, without the padding behind its patches."""
    from PIL import Image

    made = dict(processor([Image.fromarray(raw.pixels)], return_tensors="pt"))
    made = {name: torch.as_tensor(value) for name, value in made.items() if name in TAKEN}
    if "spatial_shapes" in made:  # SigLIP 2: padding fills up a batch
        n = int(made["spatial_shapes"][0].prod())
        made |= {name: made[name][:, :n] for name in ("pixel_values", "pixel_attention_mask")}
        return made
    return with_size(model, made)


def with_size(model: Any, made: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with what the model has to know of an image of another size than is usual."""
    pixels, takes = made["pixel_values"], signature(model.forward).parameters
    more: dict[str, Any] = {}
    if "interpolate_pos_encoding" in takes and tuple(pixels.shape[-2:]) != usual_size(model):
        more["interpolate_pos_encoding"] = True
    if "noise" in takes:  # a masked autoencoder: no patch is masked, and all keep their order
        patches = pixels[0, 0].numel() // model.config.patch_size**2
        more["noise"] = torch.linspace(0, 1, patches, device=pixels.device)[None]
    return {**made, **more}


def usual_size(model: Any) -> tuple[int, int]:
    """The height and width of the images that the model was trained on."""
    size = model.config.image_size
    high, wide = (size, size) if isinstance(size, int) else size
    return high, wide


TAKEN = ("pixel_values", "pixel_attention_mask", "spatial_shapes")


def few_patches(model: Any) -> dict[str, Any]:
    """The arguments of a forward pass over a blank image: of four patches, where it takes them."""
    size, channels = model.config.patch_size, model.config.num_channels
    high, wide = (size, size) if isinstance(size, int) else size
    if "spatial_shapes" in signature(model.forward).parameters:
        made = {
            "pixel_values": torch.zeros((1, 4, high * wide * channels)),
            "pixel_attention_mask": torch.ones((1, 4), dtype=torch.int32),
            "spatial_shapes": torch.tensor([[2, 2]]),
        }
        return {name: value.to(model.device) for name, value in typed(made, model.dtype).items()}
    for sides in ((2 * high, 2 * wide), usual_size(model)):
        blank = torch.zeros((1, channels, *sides), dtype=model.dtype, device=model.device)
        arguments = with_size(model, {"pixel_values": blank})
        with suppress(ModelError), torch.inference_mode():
            forward(model.base_model, **arguments)
            break
    return arguments
