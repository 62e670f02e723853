"""Tiny seeded vision-language models in folders as published ones are, and their own processors.

Patches, merges, tiles and pooling have the proportions of the published models; everything else
is small. torchvision is not needed: the image processors work on PIL images, and the part of a
processor that reads video is left out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoModelForImageTextToText, PreTrainedTokenizerFast

from attnviz.models.tokenizer import END
from tests.conftest import bytes_tokenizer

Settings = Mapping[str, Any]

CHAT = """{% for message in messages %}{{ message.role }}: {% if message.content is string %}\
{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}\
PLACE{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}\
{% if add_generation_prompt %}assistant: {% endif %}"""
LAYERS: Settings = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
HEADS: Settings = {"num_attention_heads": 4, "num_key_value_heads": 2}
ENDS: Settings = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
TEXT: Settings = {**LAYERS, **HEADS, **ENDS, "vocab_size": 320}
"""Those of a language model, which has more tokens than any tokenizer here."""
VISION: Settings = {**LAYERS, "num_attention_heads": 4}


@dataclass(frozen=True)
class Sighted:
    """A vision-language architecture: how a tiny model of it and its folder are made.

    `name`: the model type, or with what follows a plus, one of its vision towers. `place`: what
    stands for one image in a prompt. `tokens`: its special tokens by their role. `config`: a value
    that is one of those tokens stands for its id. `images`: the settings of the image processor,
    and `processor`: of the processor.
    """

    name: str
    place: str
    tokens: Mapping[str, str]
    config: Settings
    processor_class: str
    image_processor_class: str
    images: Settings
    processor: Settings = field(default_factory=dict)

    def make(self, path: Path, seed: int = 0) -> Path:
        """Write the folder of a model, as `save_pretrained` does, and return it."""
        tokenizer = tokenizer_of(self.tokens)
        ids = {token: tokenizer.convert_tokens_to_ids(token) for token in self.tokens.values()}
        config = {key: ids.get(str(value), value) for key, value in self.config.items()}
        model = AutoModelForImageTextToText.from_config(
            AutoConfig.for_model(self.name.split("+")[0], **config)
        )
        fill(model, seed)
        model.save_pretrained(path)
        images = getattr(transformers, f"{self.image_processor_class}Pil")(**self.images)
        chat = CHAT.replace("PLACE", self.place)
        kind = without_video(self.processor_class)
        kind(images, tokenizer, chat_template=chat, **self.processor).save_pretrained(path)
        written = path / "processor_config.json"
        settings = json.loads(written.read_text())
        settings["image_processor"]["image_processor_type"] = self.image_processor_class
        written.write_text(json.dumps(settings, indent=2))
        return path


def processor(folder: Path) -> Any:
    """transformers' own processor of a folder: called with text and PIL images, the oracle."""
    settings = json.loads((folder / "processor_config.json").read_text())
    return without_video(settings["processor_class"]).from_pretrained(folder)


def without_video(name: str) -> Any:
    """A processor class by the same name that reads no video, which would need torchvision."""
    kind = getattr(transformers, name)
    parts = classmethod(lambda _: ["image_processor", "tokenizer"])
    return type(name, (kind,), {"get_attributes": parts})


def tokenizer_of(tokens: Mapping[str, str]) -> PreTrainedTokenizerFast:
    """Every byte a token, and these special ones by their role (`image_token`)."""
    return PreTrainedTokenizerFast(
        tokenizer_object=bytes_tokenizer(),
        bos_token=END,
        eos_token=END,
        pad_token=END,
        extra_special_tokens=dict(tokens),
    )


def fill(model: nn.Module, seed: int) -> None:
    """Random weights, large enough to matter; none of those that begin as zero stays so.

    A new Gemma 3 multiplies each image by zero, and a new Llama 3.2 Vision its cross-attention.
    """
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 or not (name.endswith("bias") or parameter.any()):
                nn.init.normal_(parameter, std=0.3)


QWEN_TOKENS = {
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
}
QWEN_IDS = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}
QWEN_PLACE = "<|vision_start|><|image_pad|><|vision_end|>"
QWEN_TEXT = {**TEXT, "rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1]}}

ZOO = (
    Sighted(
        name="llava",
        place="<image>",
        tokens={"image_token": "<image>"},
        config={
            "image_token_index": "<image>",
            "text_config": {**TEXT, "model_type": "llama"},
            "vision_config": {
                **VISION,
                "model_type": "clip_vision_model",
                "image_size": 112,
                "patch_size": 14,
            },
        },
        processor_class="LlavaProcessor",
        image_processor_class="CLIPImageProcessor",
        images={"size": {"shortest_edge": 112}, "crop_size": {"height": 112, "width": 112}},
        processor={
            "patch_size": 14,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
    ),
    Sighted(  # merges 2 × 2, and attends within windows of 4 × 4 merged patches
        name="qwen2_5_vl",
        place=QWEN_PLACE,
        tokens=QWEN_TOKENS,
        config={
            **QWEN_IDS,
            "text_config": QWEN_TEXT,
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_heads": 4,
                "out_hidden_size": 32,
                "fullatt_block_indexes": [1],
            },
        },
        processor_class="Qwen2_5_VLProcessor",
        image_processor_class="Qwen2VLImageProcessor",
        images={"size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 64}},
    ),
    Sighted(  # 8 × 8 patches, 4 × 4 tokens; crops (pan and scan) are an option of each call
        name="gemma3",
        place="<start_of_image>",
        tokens={
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>",
        },
        config={
            "boi_token_index": "<start_of_image>",
            "eoi_token_index": "<end_of_image>",
            "image_token_index": "<image_soft_token>",
            "mm_tokens_per_image": 16,
            "text_config": {**TEXT, "head_dim": 8, "query_pre_attn_scalar": 8},
            "vision_config": {
                **VISION,
                "image_size": 112,
                "patch_size": 14,
                "vision_use_head": False,
            },
        },
        processor_class="Gemma3Processor",
        image_processor_class="Gemma3ImageProcessor",
        images={"size": {"height": 112, "width": 112}},
        processor={"image_seq_length": 16},
    ),
)


def species(name: str) -> Sighted:
    """The architecture of a name."""
    return next(sighted for sighted in ZOO if sighted.name == name)
