"""Folders of tiny seeded vision-language models as published ones are, and their own processors.

torchvision is not needed: the image processors work on PIL images, and the part of a processor that
reads videos or sounds is left out.
"""

import json
import sys
import warnings
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import transformers
from PIL.Image import Image
from torch import nn
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoModelForImageTextToText,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)
from transformers.processing_utils import ProcessorMixin
from transformers.utils import PushToHubMixin

Settings = Mapping[str, Any]

CHAT = """{% for message in messages %}{{ message.role }}: {% if message.content is string %}\
{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}\
PLACE{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}\n{% endfor %}\
{% if add_generation_prompt %}assistant: {% endif %}"""


@dataclass(frozen=True)
class Sighted:
    """A vision-language architecture: how a tiny model of it and its folder are made.

    `name`: the model type, or with what follows a plus, one of its vision towers. `classes`:
    its processor's and its image processor's. `place`: what stands for one image in a prompt.
    `tokens`: its special tokens by their role. `config`: a value that is one of those tokens stands
    for its id. `images`: the settings of the image processor, and `processor`: of the processor.
    """

    name: str
    classes: tuple[str, str]
    place: str
    tokens: Mapping[str, str]
    config: Settings
    images: Settings
    processor: Settings = field(default_factory=dict)

    def make(self, path: Path, seed: int = 0) -> Path:
        """Write the folder of a model, as `save_pretrained` does, and return it."""
        tokenizer = tokenizer_of(self.tokens)
        ids = {token: tokenizer.convert_tokens_to_ids(token) for token in self.tokens.values()}
        settings = deepcopy(self.config)  # transformers writes into what it is given
        config = {key: with_ids(value, ids) for key, value in settings.items()}
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = AutoModelForImageTextToText.from_config(
                AutoConfig.for_model(self.name.split("+")[0], **config)
            )
            fill(model)
        model.save_pretrained(path)
        pil = f"{self.classes[1]}Pil"
        kind = pil if hasattr(transformers, pil) else self.classes[1]  # which needs no torchvision
        images = getattr(transformers, kind)(**self.images)
        chat = CHAT.replace("PLACE", self.place)
        process = assembled(
            self.classes[0], images, tokenizer, chat_template=chat, **self.processor
        )
        process.save_pretrained(path)
        written = path / "processor_config.json"
        settings = json.loads(written.read_text())
        settings["image_processor"]["image_processor_type"] = self.classes[1]
        written.write_text(json.dumps(without(settings, ABSENT), indent=2))
        return path


def processor(folder: Path) -> Any:
    """transformers' own processor of a folder: called with text and PIL images, the oracle."""
    settings, _ = ProcessorMixin.get_processor_dict(folder)  # with its chat template
    return assembled(
        settings["processor_class"],
        AutoImageProcessor.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
        **without(settings, {"processor_class", "image_processor"}),
    )


def processed(process: Any, text: str, *images: Image) -> dict[str, torch.Tensor]:
    """Everything that a model takes of a text and its images, of transformers' own processor."""
    with warnings.catch_warnings():  # PaliGemma's makes an array of a tensor in an old way
        warnings.filterwarnings("ignore", "__array__ impl", DeprecationWarning)
        return dict(process(text=text, images=list(images), return_tensors="pt"))


def older(folder: Path) -> Path:
    """Let a folder be as it was published before transformers 5, which most folders are."""
    written, template = folder / "processor_config.json", folder / "chat_template.jinja"
    settings = json.loads(written.read_text())
    images = settings.pop("image_processor")
    written.write_text(json.dumps(settings))
    (folder / "preprocessor_config.json").write_text(json.dumps(images))
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": template.read_text()}))
    template.unlink()
    return folder


ABSENT = {"video_processor", "feature_extractor"}
"""The parts of a processor that read videos, which needs torchvision, or sounds."""


class Absent(PushToHubMixin):
    """Stands where a part of a processor is left out."""

    _auto_class = num_frames = fps = None

    def to_dict(self) -> Settings:
        """No settings."""
        return {}


def assembled(name: str, images: Any, tokenizer: Any, **settings: Any) -> Any:
    """A processor of the class of that name, without those parts."""
    kind = processor_class(name)

    def check(self: Any, part: str, value: Any) -> None:
        if part not in ABSENT:
            kind.check_argument_for_proper_class(self, part, value)

    parts = {"image_processor": images, "tokenizer": tokenizer, **dict.fromkeys(ABSENT, Absent())}
    tolerant = type(name, (kind,), {"check_argument_for_proper_class": check})
    return tolerant(**{part: parts[part] for part in kind.get_attributes()}, **settings)


@cache
def processor_class(name: str) -> Any:
    """One of transformers' classes, of two of which it says that they need another package.

    They need it for a function that the file beside it has too, and for the reading of videos.
    """
    if name == "PixtralProcessor":
        package = "transformers.models.pixtral"
        instead = import_module(f"{package}.image_processing_pil_pixtral")
        with patch.dict(sys.modules, {f"{package}.image_processing_pixtral": instead}):
            return import_module(f"{package}.processing_pixtral").PixtralProcessor
    kind = getattr(transformers, name)
    if name == "SmolVLMProcessor":
        sys.modules[kind.__module__].num2words = str
    return kind


def without(settings: Settings, names: set[str]) -> dict[str, Any]:
    """All settings but those."""
    return {name: value for name, value in settings.items() if name not in names}


def with_ids(value: Any, ids: Mapping[str, int]) -> Any:
    """A value of a configuration, or each in a list, with the id of a token in its place."""
    if isinstance(value, list):
        return [with_ids(each, ids) for each in value]
    return ids.get(value, value) if isinstance(value, str) else value


def tokenizer_of(tokens: Mapping[str, str]) -> PreTrainedTokenizerFast:
    """Every byte a token, and these special ones by their role (`image_token`)."""
    # late: a script to be timed is not to wait for pytest
    from attnviz.models.tokenizer import END
    from tests.conftest import bytes_tokenizer

    return PreTrainedTokenizerFast(
        tokenizer_object=bytes_tokenizer(),
        bos_token=END,
        eos_token=END,
        pad_token=END,
        extra_special_tokens=dict(tokens),
    )


def fill(model: nn.Module) -> None:
    """Random weights, large enough to matter; none of those that begin as zero stays so.

    A new Gemma 3 multiplies each image by zero, and a new Llama 3.2 Vision its cross-attention.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 or not (name.endswith("bias") or parameter.any()):
                nn.init.normal_(parameter, std=0.3)
