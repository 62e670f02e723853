"""Tiny seeded models that read an image beside a text, and what transformers gives of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import transformers
from PIL.Image import Image
from torch import Tensor
from transformers import AutoConfig

from tests.vision.folders import Settings, assembled, fill, processor, tokenizer_of

SIDE: Settings = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
TEXT: Settings = {
    "num_hidden_layers": 2,
    "vocab_size": 320,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "sep_token_id": 0,
}
BLIP: Settings = {
    "text_config": {**SIDE, **TEXT},
    "vision_config": {**SIDE, "num_hidden_layers": 3, "image_size": 112, "patch_size": 14},
    "image_text_hidden_size": 16,
}


@dataclass(frozen=True, eq=False)
class Beside:
    """An architecture: how a tiny model of it and its folder are made.

    `name`: the model type. `model`: the class. `classes`: its processor's and its image
    processor's. `reader`: the module that reads the text beside the image. `more`: what a forward
    pass wants beside text and image. `cell`: pixels of a sheet along one side of a patch.
    """

    name: str
    model: str
    classes: tuple[str, str] = ("BlipProcessor", "BlipImageProcessor")
    reader: str = "text_encoder"
    config: Settings = field(default_factory=lambda: BLIP)
    images: Settings = field(default_factory=lambda: {"size": {"height": 112, "width": 112}})
    more: Mapping[str, list[list[int]]] = field(default_factory=dict)
    cell: int = 14

    def make(self, path: Path) -> Path:
        """Write the folder of a model, as `save_pretrained` does, and return it."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            kind = getattr(transformers, self.model)
            model = kind(AutoConfig.for_model(self.name, **self.config))
            fill(model)
        model.save_pretrained(path)
        images = getattr(transformers, f"{self.classes[1]}Pil")(**self.images)
        assembled(self.classes[0], images, tokenizer_of({})).save_pretrained(path)
        written = path / "processor_config.json"
        settings = json.loads(written.read_text())
        settings["image_processor"]["image_processor_type"] = self.classes[1]
        written.write_text(json.dumps(settings))
        return path

    def eager(self, path: Path) -> Any:
        """The model as transformers loads it."""
        return getattr(transformers, self.model).from_pretrained(path).eval()

    def inputs(self, path: Path, text: str, image: Image) -> dict[str, Tensor]:
        """The arguments of a forward pass, of transformers' own processor."""
        made = processor(path)(images=image, text=text, return_tensors="pt")
        more = {name: torch.tensor(value) for name, value in self.more.items()}
        return {**made, **more}


MODELS = (
    Beside("blip", "BlipForConditionalGeneration", reader="text_decoder"),
    Beside("blip", "BlipForQuestionAnswering", more={"decoder_input_ids": [[0]]}),
    Beside("blip", "BlipForImageTextRetrieval"),
    *(
        Beside(
            name="vilt",
            model=model,
            classes=("ViltProcessor", "ViltImageProcessor"),
            reader="vilt",
            config={**SIDE, **TEXT, "image_size": 64, "patch_size": 16},
            images={"size": {"shortest_edge": 64}, "size_divisor": 16},
            cell=16,
        )
        for model in ("ViltForMaskedLM", "ViltForQuestionAnswering")
    ),
)


def in_order(weights: Tensor, count: int, **_: Any) -> Tensor:
    """In the place of `torch.multinomial`, by which ViLT draws an order of its patches."""
    assert len(weights) == count
    return torch.arange(count)


def read_by(model: Any, reader: str, inputs: Mapping[str, Tensor]) -> tuple[Any, Any]:
    """What the module that reads the text is given, and what it returns."""
    seen = []
    module = model.get_submodule(reader)
    handle = module.register_forward_hook(
        lambda _module, _args, given, made: seen.append((given, made)), with_kwargs=True
    )
    try:
        with torch.no_grad(), patch("torch.multinomial", in_order):
            model(**inputs, output_attentions=True)
    finally:
        handle.remove()
    (both,) = seen
    return both
