"""Each tiny vision-language model runs through transformers, and can be made local."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from tests.vision.local import image_tokens, make_local
from tests.vision.zoo import ZOO, Sighted, processor

SHAPES = {"wide": (150, 70), "tall": (70, 150), "tiny": (20, 24)}


@pytest.fixture(scope="module", params=ZOO, ids=lambda sighted: sighted.name)
def run(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sighted, Any, Any]:
    """An architecture, and a model and the processor of its folder."""
    folder: Path = request.param.make(tmp_path_factory.mktemp("zoo"))
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    return request.param, model, processor(folder)


def noise(shape: str, changed: bool = False) -> Image.Image:
    """An image of noise; `changed`, with a block of 8 × 8 pixels left of its centre inverted."""
    width, height = SHAPES[shape]
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    if changed:
        top, left = height // 2 - 8, width // 2 - 8
        pixels[top : top + 8, left : left + 8] ^= 255
    return Image.fromarray(pixels)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_block_of_pixels_reaches_some_image_tokens_and_not_all(run: Any, shape: str) -> None:
    sighted, model, process = run
    prompt = f"Look: {sighted.place} What?"
    before, after = (
        process(text=prompt, images=noise(shape, changed), return_tensors="pt")
        for changed in (False, True)
    )
    with torch.no_grad():
        assert model(**before).logits.isfinite().all()
    make_local(model)
    tokens = image_tokens(model, before)
    moved = (image_tokens(model, after) - tokens).abs().amax(dim=1) > 1e-5
    assert 0 < moved.sum() < len(moved)
