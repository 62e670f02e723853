"""Image tokens react to the pixels that attnviz says they stand for, and to no others.

The oracle is the model: its vision side is made local, and a block of the original image changed.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from transformers import Gemma3Processor

from attnviz.kit.prepare import TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.models.loaded import LoadedModel
from attnviz.records.capture import Kind
from attnviz.records.places import Box, ImageView, Patch, RawImage
from tests.conftest import slow, some
from tests.vision.local import image_token_id, image_tokens, make_local
from tests.vision.zoo import ZOO, Sighted, processed, processor, species

SHAPES = {"wide": (260, 90), "tall": (70, 150), "square": (131, 128), "tiny": (30, 36)}
CASES = ["wide", slow("tiny"), slow("tall"), slow("square")]
BLOCKS = 4

CELLS = {  # pixels of a sheet along one side of what becomes an image token; of others 14
    **dict.fromkeys(["llava+pixtral", "deepseek_vl", "janus"], 16),
    **dict.fromkeys(["qwen2_vl", "qwen2_5_vl", "internvl", "idefics3", "gemma3"], 28),
    **dict.fromkeys(["mistral3", "aya_vision", "glm4v", "ovis2"], 28),
    **dict.fromkeys(["qwen3_vl", "qwen3_5"], 32),
    "gemma4": 48,
    "smolvlm": 64,
}
REACH = {  # pixels, of those before or behind it, that each resizing reaches: bicubic ones 2
    "gemma3": 1,
    "mllama": 1,
    "idefics3": 9,  # three times by Lanczos
    "smolvlm": 9,
}
UNPLACED = set[str]()
"""Those whose image tokens have no known place."""

Block = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels."""


@dataclass(frozen=True)
class Local:
    """A model whose vision side is local, and its folder."""

    sighted: Sighted
    folder: Path
    engine: LoadedModel
    local: Any

    @cached_property
    def process(self) -> Any:
        """transformers' own processor."""
        return processor(self.folder)

    @property
    def cell(self) -> int:
        """The pixels of a sheet along one side of a token."""
        return CELLS.get(self.sighted.name, 14)

    @property
    def text(self) -> str:
        """A text with an image."""
        return f"Look: {self.sighted.place} What?"

    def tokens(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The image tokens (n, d) of an image."""
        inputs = processed(self.process, self.text, Image.fromarray(pixels))
        return np.asarray(image_tokens(self.local, inputs).numpy())

    def places(self, pixels: NDArray[np.uint8]) -> "Places":
        """Where attnviz says that they are."""
        images = (RawImage("a.png", pixels),)
        prepared = prepare(self.engine, self.text, TextOptions(special=True, given=images))
        if self.engine.kind == "cross":
            keys = prepared.empty.key_tokens
            return Places(prepared.empty.images[0].views, [token.patch for token in keys])
        own = image_token_id(self.local.config)
        assert all(token.id == own for token in prepared.source if token.patch)
        patches = [token.patch for token in prepared.source if token.id == own]
        return Places(prepared.empty.images[0].views, patches)


@dataclass(frozen=True)
class Places:
    """The views of an image, and the patch of each of its tokens."""

    views: Sequence[ImageView]
    patches: Sequence[Patch | None]

    def box(self, patch: Patch) -> Box:
        """The pixels of a patch."""
        return self.views[patch.view].box(patch.row, patch.column)

    def shifted(self, by: int = 1) -> "Places":
        """The same with all windows some patches further to the right."""

        def right(view: ImageView) -> ImageView:
            x0, y0, x1, y1 = view.window
            patches = by * (x1 - x0) / view.columns
            return replace(view, window=(x0 + patches, y0, x1 + patches, y1))

        return replace(self, views=[right(view) for view in self.views])


@pytest.fixture(scope="module", params=some(ZOO), ids=lambda sighted: sighted.name)
def local(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Local:
    return made_local(request.param, tmp_path_factory.mktemp("places") / "model")


def made_local(sighted: Sighted, folder: Path) -> Local:
    """An architecture, whose vision side is made local."""
    kind: Kind | None = "cross" if sighted.name == "mllama" else None
    engine: Any = load_model(Source(str(sighted.make(folder)), kind=kind, quiet=True))
    make_local(own := deepcopy(engine.model))
    return Local(sighted, folder, engine, own)


def blocks(width: int, height: int) -> Iterator[Block]:
    """Blocks of an image: some small, some of a third of its sides, drawn by a seed."""
    draw = np.random.default_rng(width)
    for number in range(BLOCKS):
        w, h = (5, 6) if number % 2 else (width // 3, height // 3)
        left, top = int(draw.integers(0, width - w + 1)), int(draw.integers(0, height - h + 1))
        yield left, top, left + w, top + h


@pytest.mark.parametrize("shape", CASES)
def test_tokens_react_to_the_pixels_of_their_boxes_and_to_no_others(
    local: Local, shape: str
) -> None:
    pixels = noise(*SHAPES[shape])
    places = local.places(pixels)
    if local.sighted.name in UNPLACED:
        assert places.views == ()
        return
    check(local, pixels, places)


@pytest.mark.parametrize("name", ["llava", "qwen2_5_vl", "llava_next", "idefics3"])
def test_boxes_that_are_one_patch_off_are_found_out(name: str, tmp_path: Path) -> None:
    local, pixels = made_local(species(name), tmp_path / "model"), noise(*SHAPES["wide"])
    with pytest.raises(AssertionError):
        check(local, pixels, local.places(pixels).shifted())


def test_tokens_of_many_tiles_that_are_made_fewer_react_to_their_boxes(tmp_path: Path) -> None:
    local, pixels = made_local(species("llava_onevision"), tmp_path / "model"), noise(500, 400)
    places = local.places(pixels)
    assert len(places.patches) < 64 * (1 + 5 * 4)  # of five by four tiles
    check(local, pixels, places, mixed=True)
    with pytest.raises(AssertionError):
        check(local, pixels, places.shifted(by=2), mixed=True)


def test_crops_of_pan_and_scan_are_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crops = {"do_pan_and_scan": True, "pan_and_scan_min_crop_size": 32}
    for name, value in crops.items():
        monkeypatch.setitem(Gemma3Processor.images_kwargs, name, value)
    local, pixels = made_local(species("gemma3"), tmp_path / "model"), noise(260, 90)
    places = local.places(pixels)
    assert [view.name for view in places.views] == ["overview", "tile", "tile", "tile"]
    check(local, pixels, places)


def check(local: Local, pixels: NDArray[np.uint8], places: Places, *, mixed: bool = False) -> None:
    """See that tokens react to blocks of an image as their places say.

    `mixed`: each is made of those patches of a finer grid that are nearest to it.
    """
    name = local.sighted.name
    before, reach = local.tokens(pixels), REACH.get(name, 2)
    assert len(before) == len(places.patches)
    placed = np.array([patch is not None for patch in places.patches])
    boxes = np.array([places.box(patch) for patch in places.patches if patch])  # (m, 4)
    views = np.array([patch.view for patch in places.patches if patch])
    sides = (boxes[:, 2:] - boxes[:, :2]) / local.cell
    wider = reach * np.maximum(1, sides)  # (m, 2) pixels of the image that the kernels reach
    least = np.maximum(1, sides)
    if mixed:
        wider, least = wider + boxes[:, 2:] - boxes[:, :2], 0.99 * (boxes[:, 2:] - boxes[:, :2])
    reacted = 0
    for block in blocks(pixels.shape[1], pixels.shape[0]):
        changed = np.abs(local.tokens(inverted(pixels, block)) - before).max(axis=1) > 1e-5
        assert not changed[~placed].any(), "what has no place reacts"
        changed = changed[placed]
        near = overlaps(boxes, block, -wider)
        assert not (changed & ~near).any(), f"tokens far from {block} react"
        within = overlaps(boxes, block, least)
        assert changed[within].all(), f"tokens within {block} do not react"
        for view in np.unique(views[changed]):
            check_middle(boxes[changed & (views == view)], block, places.views[view].window)
        reacted += int(changed.sum())
    assert reacted


def overlaps(boxes: NDArray[Any], block: Block, by: NDArray[Any]) -> NDArray[np.bool_]:
    """Which boxes share more than `by` (m, 2) pixels with a block along both sides."""
    low, high = np.maximum(boxes[:, :2], block[:2]), np.minimum(boxes[:, 2:], block[2:])
    return np.asarray((high - low > by).all(axis=1))


def check_middle(boxes: NDArray[Any], block: Block, window: Box) -> None:
    """See that the middle of boxes is within a patch of that of a block that a view shows."""
    low, high = np.array(block[:2]), np.array(block[2:])
    if (low < window[:2]).any() or (high > window[2:]).any():
        return
    patch = boxes[0, 2:] - boxes[0, :2]
    middle = (boxes[:, :2].min(axis=0) + boxes[:, 2:].max(axis=0)) / 2
    assert (np.abs(middle - (low + high) / 2) <= patch).all(), "the middle is elsewhere"


def noise(width: int, height: int) -> NDArray[np.uint8]:
    """An image (height, width, 3) of noise."""
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def inverted(pixels: NDArray[np.uint8], block: Block) -> NDArray[np.uint8]:
    """An image with a block inverted."""
    (x0, y0, x1, y1), after = block, pixels.copy()
    after[y0:y1, x0:x1] ^= 255
    return after
