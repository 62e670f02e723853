"""A tiny seeded model of each architecture that reads an image alone, in a folder of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from PIL.Image import Image
from torch import nn
from transformers import AutoConfig

from tests.vision.folders import Settings, fill, tokenizer_of

SMALL: Settings = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}
SQUARE: Settings = {"size": {"height": 32, "width": 32}}
CROPPED: Settings = {
    "size": {"shortest_edge": 36},
    "crop_size": {"height": 32, "width": 32},
    "resample": 3,
}
SHRUNK: Settings = {
    "size": {"height": 36, "width": 36},
    "crop_size": {"height": 32, "width": 32},
    "do_center_crop": True,
}


@dataclass(frozen=True)
class Encoder:
    """An architecture: how a tiny model of it and its folder are made.

    `name`: the model type. `model`: the class, `processor`: that of its images. `own`: the names of
    its tokens that are no patches, in order; `behind`: those that stand behind the patches.
    """

    name: str
    model: str
    processor: str = "ViTImageProcessor"
    images: Settings = field(default_factory=lambda: SQUARE)
    more: Settings = field(default_factory=dict)
    own: tuple[str, ...] = ("[class]",)
    behind: tuple[str, ...] = ()

    @property
    def images_class(self) -> Any:
        """The image processor that works on pillow; DINOv3's needs torchvision."""
        known = getattr(transformers, f"{self.processor}Pil", None)
        return known or transformers.ViTImageProcessorPil

    def config(self) -> Any:
        """Its configuration."""
        return AutoConfig.for_model(self.name, **{**SMALL, **self.more})

    def make(self, path: Path, seed: int = 0) -> Path:
        """Write the folder of a model, as `save_pretrained` does, and return it."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = getattr(transformers, self.model)(self.config())
            fill(model)
        model.save_pretrained(path)
        settings = {**self.images_class(**self.images).to_dict()}
        settings["image_processor_type"] = self.processor
        (path / "preprocessor_config.json").write_text(json.dumps(settings, default=str))
        return path

    def eager(self, path: Path) -> Any:
        """The model as transformers loads it, with eager attention: the oracle."""
        kind = getattr(transformers, self.model)
        model = kind.from_pretrained(path, attn_implementation="eager").eval()
        if self.name == "vit_mae":  # without its masks
            model.vit.embeddings.config.mask_ratio = 0.0
        return model

    def inputs(self, image: Image) -> dict[str, Any]:
        """The arguments of a forward pass, of transformers' own processor."""
        made = dict(self.images_class(**self.images)([image], return_tensors="pt"))
        made.pop("pixel_mask", None)
        if self.name == "vit_mae":
            made["noise"] = torch.linspace(0, 1, 16)[None]
        if self.name == "yolos":
            made["interpolate_pos_encoding"] = True
        return made


def make_local(model: nn.Module) -> None:
    """Let every attention add nothing, so that each token stays by itself."""
    with torch.no_grad():
        for module in model.modules():
            if type(module).__name__.endswith("Attention"):
                *_, output = (m for m in module.modules() if isinstance(m, nn.Linear))
                output.weight.zero_()


def outputs(model: Any, inputs: Mapping[str, Any]) -> Any:
    """The output of a model's body."""
    body = model if model.base_model_prefix == "model" else model.base_model
    with torch.no_grad():
        return body(**inputs, output_attentions=True)


DISTILLED = ("[class]", "[distillation]")
BIAS: Settings = {"use_relative_position_bias": True, "use_shared_relative_position_bias": True}
REGISTERS = ("[class]", *(f"[register {n}]" for n in range(1, 5)))
DETECTIONS = tuple(f"[detection {n}]" for n in range(1, 4))
CLASSES = tuple(f"[class {n}]" for n in range(1, 9))
DECODER: Settings = {
    f"decoder_{name}": SMALL[name]
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
}
DPT: Settings = {
    "backbone_out_indices": [0, 0, 1, 1],
    "neck_hidden_sizes": [8, 8, 8, 8],
    "fusion_hidden_size": 8,
}
ENCODERS = (
    Encoder("vit", "ViTForImageClassification"),
    Encoder("deit", "DeiTForImageClassification", "DeiTImageProcessor", SHRUNK, own=DISTILLED),
    Encoder("beit", "BeitForImageClassification", "BeitImageProcessor", SHRUNK, BIAS),
    Encoder("data2vec-vision", "Data2VecVisionModel", "BeitImageProcessor", SHRUNK, BIAS),
    Encoder("dinov2", "Dinov2Model", "BitImageProcessor", CROPPED),
    Encoder(
        name="dinov2_with_registers",
        model="Dinov2WithRegistersForImageClassification",
        processor="BitImageProcessor",
        images=CROPPED,
        own=REGISTERS,
    ),
    Encoder(
        name="dinov3_vit",
        model="DINOv3ViTModel",
        processor="DINOv3ViTImageProcessorFast",
        more={"num_register_tokens": 4},
        own=REGISTERS,
    ),
    Encoder("clip_vision_model", "CLIPVisionModel", "CLIPImageProcessor", CROPPED),
    Encoder("metaclip_2_vision_model", "MetaClip2VisionModel", "CLIPImageProcessor", CROPPED),
    Encoder("siglip_vision_model", "SiglipVisionModel", "SiglipImageProcessor", own=()),
    Encoder(  # an image of any sides, with padding behind its patches
        name="siglip2_vision_model",
        model="Siglip2VisionModel",
        processor="Siglip2ImageProcessor",
        images={"patch_size": 8, "max_num_patches": 30},
        more={"num_patches": 16},
        own=(),
    ),
    Encoder("ijepa", "IJepaModel", own=()),
    Encoder("vit_mae", "ViTMAEForPreTraining", more=DECODER),
    Encoder("vit_msn", "ViTMSNForImageClassification"),
    Encoder(
        name="yolos",
        model="YolosForObjectDetection",
        processor="YolosImageProcessor",
        images={"size": {"shortest_edge": 32, "longest_edge": 64}},
        more={"image_size": [32, 48], "num_detection_tokens": 3},
        behind=DETECTIONS,
    ),
    Encoder("dpt", "DPTForDepthEstimation", "DPTImageProcessor", more=DPT),
    Encoder("mlcd_vision_model", "MLCDVisionModel", "CLIPImageProcessor", CROPPED),
    Encoder("aimv2_vision_model", "Aimv2VisionModel", "CLIPImageProcessor", CROPPED, own=()),
    Encoder("pixio", "PixioModel", own=CLASSES),
)


def encoder(name: str) -> Encoder:
    """The one of that name."""
    return next(each for each in ENCODERS if each.name == name)


TOWERS = {"clip": "CLIP", "metaclip_2": "MetaClip2", "siglip": "Siglip", "siglip2": "Siglip2"}
"""Models that read a text and an image apart from each other, by the names of their classes."""


def make_towers(name: str, path: Path) -> Path:
    """Write the folder of one, with three layers for a text and two for an image."""
    side = {name: value for name, value in SMALL.items() if "_size" not in name} | {
        "hidden_size": 32,
        "intermediate_size": 48,
    }
    words = {"vocab_size": 320, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    text = {**side, **words, "num_hidden_layers": 3, "max_position_embeddings": 64}
    vision = encoder(f"{name}_vision_model")
    config = AutoConfig.for_model(name, text_config=text, vision_config={**SMALL, **vision.more})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fill(model := getattr(transformers, f"{TOWERS[name]}Model")(config))
    vision.make(path)
    model.save_pretrained(path)
    tokenizer_of({}).save_pretrained(path)
    return path
