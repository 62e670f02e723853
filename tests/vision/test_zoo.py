"""Each tiny vision-language model runs through transformers, and can be made local."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from tests.conftest import slow, some
from tests.vision.local import image_tokens, make_local
from tests.vision.zoo import ZOO, Sighted, older, processed, processor, species

SHAPES = {  # width and height, and where a block lies that no architecture crops
    "wide": (150, 70, 60, 20),
    "tall": (70, 150, 20, 60),
    "tiny": (30, 36, 4, 5),
}


@dataclass(frozen=True)
class Loaded:
    """A model and the processor of one folder, and the same model made local."""

    sighted: Sighted
    folder: Path
    model: Any
    local: Any
    process: Any

    def inputs(self, image: Image.Image) -> Mapping[str, Any]:
        """What the model takes of one image within a text."""
        return processed(self.process, self.text, image)

    @property
    def text(self) -> str:
        """A text with a place for an image."""
        return f"Look: {self.sighted.place} What?"


@pytest.fixture(scope="module", params=some(ZOO), ids=lambda sighted: sighted.name)
def loaded(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """An architecture, loaded from a folder of its own."""
    folder = request.param.make(tmp_path_factory.mktemp("zoo") / "model")
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    make_local(local := deepcopy(model))
    return Loaded(request.param, folder, model, local, processor(folder))


def noise(shape: str, changed: bool = False) -> Image.Image:
    """An image of noise; `changed`, with a block of 8 × 8 pixels inverted."""
    width, height, left, top = SHAPES[shape]
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    if changed:
        pixels[top : top + 8, left : left + 8] ^= 255
    return Image.fromarray(pixels)


@pytest.mark.parametrize("shape", ["wide", slow("tall"), slow("tiny")])
def test_a_block_of_pixels_reaches_few_image_tokens_of_a_local_model(
    loaded: Loaded, shape: str
) -> None:
    inputs = [loaded.inputs(noise(shape, changed)) for changed in (False, True)]
    reached = {}
    for name, model in (("as it is", loaded.model), ("local", loaded.local)):
        before, after = (image_tokens(model, given) for given in inputs)
        reached[name] = float(((before - after).abs().amax(dim=1) > 1e-5).float().mean())
    assert 0 < reached["local"] < min(0.5, reached["as it is"])


def test_a_model_answers_an_image_and_answers_another_image_otherwise(loaded: Loaded) -> None:
    with torch.no_grad():
        wide, tall = (
            loaded.model(**loaded.inputs(noise(shape))).logits[0, -1] for shape in ("wide", "tall")
        )
    assert wide.isfinite().all()
    assert not torch.allclose(wide, tall, atol=1e-3)


def test_a_folder_is_small_and_names_the_published_classes(loaded: Loaded) -> None:
    assert sum(file.stat().st_size for file in loaded.folder.iterdir()) < 2_000_000
    written = json.loads((loaded.folder / "processor_config.json").read_text())
    assert "video_processor" not in written
    assert written["processor_class"] == loaded.sighted.classes[0]
    assert not written["image_processor"]["image_processor_type"].endswith("Pil")


def test_a_folder_as_it_was_before_transformers_5_says_the_same(
    loaded: Loaded, tmp_path: Path
) -> None:
    folder = older(copytree(loaded.folder, tmp_path / "model"))
    after, image = processor(folder), noise("wide")
    before = loaded.inputs(image)
    for name, value in processed(after, loaded.text, image).items():
        assert torch.equal(value, before[name])
    chat = [{"role": "user", "content": [{"type": "image"}]}]
    assert loaded.sighted.place in after.apply_chat_template(chat)


def test_a_seed_decides_every_weight(tmp_path: Path) -> None:
    one, same, other = (
        (species("llava_next").make(tmp_path / name, seed) / "model.safetensors").read_bytes()
        for name, seed in (("one", 0), ("same", 0), ("other", 1))
    )
    assert one == same != other
