"""Models that read only an image: their input from it, and the meaning of each token.

Tokens other than patches are found by measuring: no pixel changes them on their way into the first
layer. Their names are those of the embeddings that the model adds to them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.attention import EnoughSeen
from attnviz.models.folder.processors import RESIZED, TORCHVISION, class_of_images, read_processor
from attnviz.models.folder.reading import reads_of
from attnviz.models.huggingface.attention import attention_modules, forward, hooked
from attnviz.models.huggingface.image_patches import Patches, sheet_grid
from attnviz.models.huggingface.model import SelfAttending
from attnviz.models.huggingface.pixels import pixels_of
from attnviz.models.huggingface.vision import one_image, processing, typed
from attnviz.models.loaded import ReadInput
from attnviz.records.capture import FloatArray
from attnviz.records.places import Patch, RawImage, ReadAs, SeenImage, label_of
from attnviz.records.tokens import Ids, Token, numbered


@dataclass(frozen=True, kw_only=True)
class ImageEncoder(SelfAttending):
    """A model whose queries and keys are the patches of one image, and tokens of its own.

    `given`: the arguments of its forward pass.
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def inputs(self, ids: Ids, target: Ids = ()) -> dict[str, Any]:
        """The arguments of its forward pass: the image, whatever the ids."""
        return {
            name: value.to(self.model.device) if isinstance(value, Tensor) else value
            for name, value in typed(self.given, self.model.dtype).items()
        }

    def see(self, text: str, pictures: Sequence[RawImage], how: ReadAs) -> ReadInput:
        raw = one_image(self.identity.name, pictures)
        assert self.tokenizer.folder is not None
        processor = read_processor(self.tokenizer.folder, alone=True)
        with processing(self.model):
            seeing = replace(self, given=pixels_of(processor.image_processor, self.model, raw))
            grid = sheet_grid(processor, self.model, raw)
        images = (SeenImage(raw, (grid.view,)),)
        return ReadInput(seeing, raw.name, _tokens(seeing, grid.patches, images), images)

    def classes(self) -> tuple[Sequence[str], FloatArray]:
        config = self.model.config
        several = config.problem_type == "multi_label_classification"
        if several or "ForImageClassification" not in type(self.model).__name__:
            raise self._refusal("classes")
        with torch.inference_mode():
            logits = forward(self.model, **self.inputs(())).logits[0].float().cpu().numpy()
        return [str(config.id2label.get(n, n)) for n in range(len(logits))], logits


def _tokens(model: ImageEncoder, grid: Patches, images: tuple[SeenImage, ...]) -> tuple[Token, ...]:
    """The tokens of an image: its patches, and those of the model's own, which have no place."""
    own = own_tokens(model)
    if len(own) - sum(own) != len(grid):
        raise ModelError(
            f"{model.identity.architecture} does not read the {len(grid)} patches of an image as "
            f"tokens, of which it has {len(own)}",
            "use another model, such as ViT or DINOv2",
        )
    names, patches = iter(names_of(model.model, sum(own))), iter(grid)
    special = Token(0, 0, "", 0, 0, special=True)

    def placed(patch: Patch) -> Token:
        return replace(special, name=label_of(patch, images), image=0, patch=patch)

    return numbered(
        replace(special, name=next(names)) if is_own else placed(next(patches))  # type: ignore
        for is_own in own
    )


def own_tokens(model: ImageEncoder) -> list[bool]:
    """The tokens of the first layer's input that are the model's own, which no pixel changes.

    They are found from a run on the image and one on noise.
    """
    read = list[Tensor]()

    def see(_module: nn.Module, args: Any, named: Any) -> None:
        read.append(args[0] if args else named["hidden_states"])
        raise EnoughSeen

    inputs, draw = model.inputs(()), torch.Generator().manual_seed(0)
    pixels = inputs["pixel_values"]
    noise = torch.randn(pixels.shape, generator=draw).to(pixels)
    first = attention_modules(model.model.base_model)[0]
    with hooked([first.register_forward_pre_hook(see, with_kwargs=True)]), torch.inference_mode():
        for each in (pixels, noise):
            with suppress(EnoughSeen):
                forward(model.model.base_model, **{**inputs, "pixel_values": each})
    return (read[0] == read[1]).all(dim=-1)[0].tolist()


NAMES = {
    "cls_token": "class",
    "class_embedding": "class",
    "distillation_token": "distillation",
    "register_tokens": "register",
    "detection_tokens": "detection",
}
"""The names of parameters that embed tokens other than patches, and the names to display."""


def names_of(model: Any, count: int) -> list[str]:
    """The names of `count` tokens of the model's own, in order: `[class]`, `[register 1]`."""
    names = list[str]()
    for name, parameter in model.base_model.named_parameters():
        before, _, own = name.rpartition(".")
        if own in NAMES and "embed" in before:
            several = parameter.numel() // parameter.size(-1)
            what = NAMES[own]
            alone = several == 1 and what != "register"
            numbers = [""] if alone else [f" {n}" for n in range(1, several + 1)]
            names += [f"[{what}{number}]" for number in numbers]
    return names if len(names) == count else [f"[special {n}]" for n in range(1, count + 1)]


# As a model is loaded.


def reader_of(model: Any, tokenizer: Any) -> Any:
    """The reader of a text, an image or a sound, for a model in memory; checked."""
    from transformers import (
        BaseImageProcessor,
        PreTrainedTokenizerBase,
        ProcessorMixin,
        SequenceFeatureExtractor,
    )

    if reads_of(model.config) == "image":
        reader = getattr(tokenizer, "image_processor", tokenizer)
        if not isinstance(reader, BaseImageProcessor):
            raise ModelError(
                f"a value of type {type(reader).__name__} is not an image processor of "
                "transformers",
                "give the one that AutoImageProcessor.from_pretrained loads for this model",
            )
        if getattr(model.config, "mask_ratio", 0):
            raise ModelError(
                f"this {type(model).__name__} masks some patches at random",
                "set its config.mask_ratio to 0, to see all of them",
            )
        return reader
    if reads_of(model.config) == "speech":
        reader = getattr(tokenizer, "feature_extractor", tokenizer)
        if not isinstance(reader, SequenceFeatureExtractor):
            raise ModelError(
                f"a value of type {type(reader).__name__} makes no features of a sound",
                "give the processor that AutoProcessor.from_pretrained loads for this model",
            )
        if not model.config.is_encoder_decoder:
            return reader
    text = getattr(tokenizer, "tokenizer", None) if isinstance(tokenizer, ProcessorMixin) else None
    if not isinstance(text or tokenizer, PreTrainedTokenizerBase):
        kind = f"a value of type {type(text or tokenizer).__name__}"
        raise ModelError(
            "no tokenizer was given" if tokenizer is None else f"{kind} is not a tokenizer",
            "give the one that AutoTokenizer.from_pretrained loads for this model",
        )
    return tokenizer


UNMASKED = "it reads all patches, where its training masked some"


def fitted(model: Any, folder: Path) -> tuple[Any, str]:
    """A model that reads one image, all of it; what is done in another way than by transformers."""
    told = list[str]()
    if "pixel_values" not in signature(model.base_model.forward).parameters:
        model = copy(model)  # with the same modules
        model.base_model_prefix = ""  # its own names a part that reads no pixels (DINOv3)
    if hasattr(model.config, "mask_ratio"):
        model.config.mask_ratio = model.base_model.embeddings.config.mask_ratio = 0.0
        told.append(UNMASKED)
    if class_of_images(folder) in TORCHVISION:
        told.append(RESIZED)
    return model, "; ".join(told)
