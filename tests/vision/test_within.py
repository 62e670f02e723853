"""`--kind encoder` of a vision-language model: attention between the patches of an image."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from attnviz.errors import AttnvizError, InputError, UsageError
from attnviz.kit.prepare import TextOptions, prepare, verify
from attnviz.records.heads import every_head
from attnviz.records.places import RawImage
from tests.conftest import slow, some
from tests.vision.test_image_patches import Local, Places, check, noise
from tests.vision.test_rows import Both, loaded
from tests.vision.zoo import ZOO, processed, species

REFUSED = ["qwen2_5_vl", "gemma4", "mllama"]
"""With windows, with padding, and with all tiles in a row."""
SHOWN = [sighted for sighted in ZOO if sighted.name not in REFUSED]
WIDE = (260, 90)


@pytest.fixture(scope="module", params=SHOWN, ids=lambda sighted: sighted.name)
def both(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return loaded(request.param, tmp_path_factory.mktemp("within") / "model", "encoder")


def attentions(model: Any) -> list[nn.Module]:
    """The modules that attend to patches, in order."""
    vision = model.get_encoder(modality="image").modules()
    named = [module for module in vision if type(module).__name__.endswith("Attention")]
    return [m for m in named if not any(part in named for part in list(m.modules())[1:])]


def rows_of(model: Any, inputs: Mapping[str, Tensor]) -> list[Tensor]:
    """The weights of eager attention to patches in each layer (sheets, h, n, n)."""
    within, rows = attentions(model), list[Tensor]()
    file = sys.modules[type(within[0]).__module__]
    eager = file.eager_attention_forward

    def keep(module: nn.Module, *args: Any, **named: Any) -> Any:
        output, weights = eager(module, *args, **named)
        if module in within:
            rows.append(weights)
        return output, weights

    with patch.object(file, "eager_attention_forward", keep), torch.no_grad():
        model(**inputs)
    return rows


def test_rows_within_an_image_are_those_of_transformers(both: Both) -> None:
    text, pixels = f"Look: {both.sighted.place} What?", noise(*WIDE)
    prepared = both.prepared(text, pixels)
    capture = prepared.record(every_head(prepared.model.identity.heads_per_layer))
    sheet = prepared.model.model.given_images.sheet
    expected = rows_of(both.eager, both.inputs(text, pixels))
    for layer, rows in zip(capture.layers, expected, strict=True):
        assert np.abs(layer.weights - rows[sheet].numpy()).max() < 1e-5
    assert not capture.causal
    assert capture.query_tokens == capture.key_tokens


@dataclass(frozen=True)
class Within(Local):
    """What the first layer of a vision side reads, and where attnviz says that it is."""

    @property
    def cell(self) -> int:
        size = self.local.config.vision_config.patch_size
        return size if isinstance(size, int) else size[0]

    def tokens(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        read = list[Tensor]()

        def see(_module: nn.Module, args: Any, named: Any) -> None:
            read.append(args[0] if args else named["hidden_states"])

        inputs = processed(self.process, self.text, Image.fromarray(pixels))
        handle = attentions(self.local)[0].register_forward_pre_hook(see, with_kwargs=True)
        with torch.no_grad():
            self.local(**inputs)
        handle.remove()
        sheets = read[0].reshape(-1, *read[0].shape[-2:])
        number = self.seen(pixels).model.model.given_images.sheet
        return np.asarray(sheets[number].numpy())

    def places(self, pixels: NDArray[np.uint8]) -> Places:
        empty = self.seen(pixels).empty
        return Places(empty.images[0].views, [token.patch for token in empty.key_tokens])

    def seen(self, pixels: NDArray[np.uint8]) -> Any:
        """An image, as attnviz reads it."""
        images = (RawImage("a.png", pixels),)
        return prepare(self.engine, self.text, TextOptions(special=True, given=images))


@pytest.mark.parametrize("both", some(SHOWN), ids=lambda sighted: sighted.name, indirect=True)
@pytest.mark.parametrize("size", [slow(WIDE, id="wide"), pytest.param((70, 150), id="tall")])
def test_patches_react_to_the_pixels_of_their_boxes_and_to_no_others(
    both: Both, size: tuple[int, int]
) -> None:
    within = Within(both.sighted, both.folder, both.engine, both.eager)
    pixels = noise(*size)
    check(within, pixels, within.places(pixels))
    with pytest.raises(AssertionError):
        check(within, pixels, within.places(pixels).shifted())


@pytest.mark.parametrize("name", REFUSED)
def test_other_vision_sides_are_refused(name: str, tmp_path: Path) -> None:
    both = loaded(species(name), tmp_path / "model", "encoder")
    with pytest.raises(AttnvizError, match="does not attend to the patches of one image at once"):
        both.prepared(f"{both.sighted.place} What?", noise(*WIDE))


def test_it_takes_one_image_and_is_not_verified(tmp_path: Path) -> None:
    both = loaded(species("llava"), tmp_path / "model", "encoder")
    with pytest.raises(UsageError, match="is its attention within images"):
        prepare(both.engine, "What?", TextOptions())
    with pytest.raises(InputError, match="shows the patches of one image, but 2 are given"):
        both.prepared("<image> <image>", noise(*WIDE), noise(*WIDE))
    options = TextOptions(special=True, given=(RawImage("a.png", noise(*WIDE)),))
    with pytest.raises(UsageError, match="not those within an image"):
        verify(both.engine, None, "What?", options)
