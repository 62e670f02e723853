"""Models that read one image beside a text in which nothing stands for it (BLIP, ViLT).

A run shows whether it is the keys of cross-attention, or behind the text in one sequence.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from inspect import signature
from typing import Any, Literal

import torch
from torch import Tensor

from attnviz.errors import InputError, ModelError, UsageError, option
from attnviz.models.folder.processors import read_processor
from attnviz.models.huggingface.attention import forward, language_of, vision_of, watching
from attnviz.models.huggingface.image_patches import SheetGrid, sheet_grid
from attnviz.models.huggingface.image_prompts import check_plain, check_same
from attnviz.models.huggingface.layers import alone
from attnviz.models.huggingface.model import HuggingFaceModel
from attnviz.models.huggingface.pixels import usual_size
from attnviz.models.huggingface.vision import (
    IDLE,
    OF_TOKENS,
    ImageInputs,
    check_fits,
    one_image,
    processing,
    seeing,
    typed,
)
from attnviz.models.loaded import Ability, ReadInput
from attnviz.records.capture import Kind
from attnviz.records.places import MARK, RawImage, ReadAs, SeenImage, label_of
from attnviz.records.tokens import Ids, Token, numbered

_processor = lru_cache(2)(read_processor)


class ImageBeside(HuggingFaceModel):
    """The attention of a text beside an image, or to it, or within it."""

    def inputs(self, ids: Ids, target: Ids = ()) -> dict[str, Any]:
        """The arguments of its forward pass: the text and the image, whatever the ids."""
        given = getattr(self.model, "given_images", None)
        if given is None:
            raise UsageError(
                f"{self.identity.name} reads an image beside every text",
                f"give one with {option('image')}",
            )
        return super().inputs(given.ids)

    def see(self, text: str, pictures: Sequence[RawImage], how: ReadAs) -> ReadInput:
        raw = one_image(self.identity.name, pictures)
        if MARK in text:
            raise InputError(
                f"{self.identity.name} reads its image beside the text, which has no place for it",
                f"leave {MARK} out of the text",
            )
        plain = replace(self, model=getattr(self.model, "plain", self.model))
        if not how.special:
            check_plain(plain, text)
        around = self.tokenizer.bos if how.bos is None else how.bos
        tokens = self.tokenizer.encode(text, bos=around, special=how.special)
        check_fits(tokens, self.tokenizer.context)
        given, grid = plain._given(text, tokens, raw, around=around)
        image = SeenImage(raw, (grid.view,))
        given = replace(given, images=(image,), cells=(grid.patches,))
        view = replace(plain, model=seeing(plain.model, given))
        read = keys_read(view.model, view.inputs(()))
        joined = read.get("self", 0) > len(tokens)
        kind: Kind = "encoder" if self.kind == "encoder" else "cross"
        every = read["self"] - len(tokens) if joined else read.get(kind, 0)
        keys = view._of_image(every - len(grid.patches), grid, image, at=len(text) * joined)
        if joined:
            return ReadInput(view, text, numbered((*tokens, *keys)), (image,))
        rows = keys if self.kind == "encoder" else tokens
        return ReadInput(view, text, rows, (image,), keys=() if self.kind == "self" else keys)

    def _given(
        self, text: str, tokens: Sequence[Token], raw: RawImage, *, around: bool
    ) -> tuple[ImageInputs, SheetGrid]:
        """The processor's output for a text and an image, and the grid of the patches."""
        from PIL import Image

        assert self.tokenizer.folder is not None
        processor, model = _processor(self.tokenizer.folder), self.model
        with processing(model):
            picture = [Image.fromarray(raw.pixels)]
            made = processor(
                images=picture, text=[text], return_tensors="pt", add_special_tokens=around
            )
            grid = sheet_grid(processor, model, raw)
        check_same(self, tokens, tuple(made.pop("input_ids")[0].tolist()))
        ids = tuple(token.id for token in tokens)
        image = {name: made[name] for name in made if name not in (*IDLE, *OF_TOKENS)}
        beside = {**_ordered(model, typed(image, model.dtype), grid), **_begun(model)}
        return ImageInputs(text, text, (), ids, -1, beside, (), ()), grid

    def _of_image(
        self, before: int, grid: SheetGrid, image: SeenImage, *, at: int
    ) -> tuple[Token, ...]:
        """The tokens of the image, `before` them perhaps a class token; `at`: their characters."""
        if before not in (0, 1):
            raise ModelError(
                f"this {type(self.model).__name__} reads its text apart from its image",
                "use a model that reads them together, such as BlipForConditionalGeneration",
            )
        special = Token(0, 0, "", at, at, special=True)
        return numbered(
            replace(special, name=label_of(p, (image,)) if p else "[class]", image=0, patch=p)
            for p in (*[None] * before, *grid.patches)
        )

    def _refusal(self, ability: Ability | Literal["contributions"]) -> UsageError:
        if ability in ("value_norms", "contributions"):
            return super()._refusal(ability)
        return UsageError(
            f"attnviz only shows what {self.identity.name} attends to, as the model reads its "
            "image beside the text",
            "use a model with images among its tokens, such as LLaVA",
        )


@torch.inference_mode()
def keys_read(model: Any, inputs: dict[str, Any]) -> dict[Kind, int]:
    """The number of keys of each kind of a model's attention: of its text and of its image side."""
    vision = {*vision_of(model).modules()} - {*language_of(model).modules()}
    names = {module: name for name, module in model.named_modules()}
    found = dict[Kind, int]()

    def see(module: Any, keys: Tensor) -> None:
        kind: Kind = "encoder" if module in vision else alone(names[module])
        found.setdefault(kind, keys.size(-1))

    with watching(model, lambda call: see(call.module, call.k[0, :, 0]), see):
        forward(model.base_model, **inputs)
    return found


def blank_beside(model: Any) -> dict[str, Any]:
    """The arguments of a forward pass over a black image, beside those of a text."""
    sides = usual_size(vision_of(model))
    pixels = torch.zeros((1, 3, *sides), dtype=model.dtype, device=model.device)
    return {"pixel_values": pixels, **_begun(model)}


@torch.inference_mode()
def _ordered(model: Any, image: dict[str, Any], grid: SheetGrid) -> dict[str, Any]:
    """The model's input for an image; for ViLT, which shuffles patches, with these row by row."""
    embed = getattr(getattr(model.base_model, "embeddings", None), "visual_embed", None)
    if embed is None:
        return image
    pixels, mask = (image[name].to(model.device) for name in ("pixel_values", "pixel_mask"))
    with torch.random.fork_rng():
        embeds, mask, (at, _) = embed(pixels, mask, model.config.max_image_length)
    if at.size(1) != len(grid.patches):
        raise ModelError(
            f"the model reads {at.size(1)} of the image's {len(grid.patches)} patches, which it "
            "draws at random",
            "give an image of other proportions, or set max_image_length to -1 in its config.json",
        )
    order = (at[0, :, 0] * grid.view.columns + at[0, :, 1]).argsort()
    embeds = torch.cat([embeds[:, :1], embeds[:, 1:][:, order]], dim=1)
    return {"image_embeds": embeds, "pixel_mask": mask}


def _begun(model: Any) -> dict[str, Any]:
    """The beginning of the answer, of a model that has to be given one."""
    if "decoder_input_ids" not in signature(model.forward).parameters:
        return {}
    begun = torch.tensor([[model.decoder_start_token_id]], device=model.device)
    return {"decoder_input_ids": begun}
