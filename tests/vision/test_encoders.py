"""Models that read an image alone: their rows, and the pixels of their patches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from attnviz.errors import InputError, ModelError, UsageError
from attnviz.kit.prepare import Prepared, TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.records.heads import every_head
from attnviz.records.images import RawImage
from tests.vision.encoders import ENCODERS, Encoder, encoder, make_local, outputs
from tests.vision.test_places import SHAPES, Places, check, noise


@dataclass(frozen=True)
class Made:
    """An architecture through attnviz, and through transformers with eager attention."""

    sighted: Encoder
    engine: Any
    eager: Any
    local: Any
    cell: int = 8

    def prepared(self, pixels: NDArray[np.uint8]) -> Prepared:
        """An image, as attnviz reads it."""
        return prepare(self.engine, "", TextOptions(images=(RawImage("a.png", pixels),)))

    def tokens(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """What becomes of each token (n, d) where no token attends to another."""
        made = outputs(self.local, self.sighted.inputs(Image.fromarray(pixels)))
        last = made.hidden_states[-1] if made.get("hidden_states") else made.last_hidden_state
        return np.asarray(last[0, : len(self.prepared(pixels).source)].numpy())

    def places(self, pixels: NDArray[np.uint8]) -> Places:
        """Where attnviz says that they are."""
        empty = self.prepared(pixels).empty
        return Places(empty.images[0].views, [token.patch for token in empty.key_tokens])


@pytest.fixture(scope="module", params=ENCODERS, ids=lambda made: made.name)
def made(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return loaded(request.param, tmp_path_factory.mktemp("encoder") / "model")


def loaded(own: Encoder, folder: Path) -> Made:
    """A tiny model of an architecture, made in a folder."""
    own.make(folder)
    make_local(local := own.eager(folder))
    return Made(own, load_model(Source(str(folder), quiet=True)), own.eager(folder), local)


def test_rows_are_those_of_transformers(made: Made) -> None:
    pixels = noise(130, 90)
    prepared = made.prepared(pixels)
    capture = prepared.record(every_head(made.engine.identity.heads_per_layer))
    rows = outputs(made.eager, made.sighted.inputs(Image.fromarray(pixels))).attentions
    n = len(prepared.source)
    assert len(capture.layers) == len(rows) == 2
    for layer, theirs in zip(capture.layers, rows, strict=True):
        assert np.abs(layer.weights - theirs[0, :, :n, :n].numpy()).max() < 1e-5
    assert not capture.causal
    assert capture.query_tokens == capture.key_tokens


def test_tokens_that_are_no_patches_are_told_apart(made: Made) -> None:
    tokens = made.prepared(noise(130, 90)).empty.key_tokens
    labels = [token.label for token in tokens]
    first, behind = made.sighted.own, made.sighted.behind
    patches = labels[len(first) : len(labels) - len(behind)]
    assert tuple(labels) == (*first, *patches, *behind)
    assert all(label.startswith("@r") for label in patches)
    assert [token.patch is None for token in tokens] == [not t.startswith("@") for t in labels]


@pytest.mark.parametrize("shape", SHAPES)
def test_patches_react_to_the_pixels_of_their_boxes_and_to_no_others(
    made: Made, shape: str
) -> None:
    pixels = noise(*SHAPES[shape])
    places = made.places(pixels)
    check(made, pixels, places)  # type: ignore[arg-type]
    if shape == "wide":
        with pytest.raises(AssertionError):
            check(made, pixels, places.shifted())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["swin", "vitdet"])
def test_models_that_attend_within_windows_are_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(f'{{"model_type": "{name}"}}')
    with pytest.raises(ModelError, match=f"{name} attends within parts of an image"):
        load_model(Source(str(tmp_path), quiet=True))


def test_they_take_one_image_and_no_text(tmp_path: Path) -> None:
    engine = loaded(encoder("vit"), tmp_path / "model").engine
    image = RawImage("a.png", noise(40, 40))
    for text, options, error in (
        ("a cat", TextOptions(), "reads images alone, and no text"),
        ("a cat", TextOptions(images=(image,)), "reads images alone, and no text"),
        ("", TextOptions(), "reads images alone, and no text"),
        ("", TextOptions(images=(image, image)), "reads one image at a time, and 2 are given"),
        ("", TextOptions(images=(image,), bos=True), "is about a text"),
        ("", TextOptions(images=(image,), special=True), "is about a text"),
        ("", TextOptions(images=(image,), truncate="left"), "cuts a text"),
        ("", TextOptions(images=(image,), target="a"), "is the output of an encoder-decoder"),
    ):
        with pytest.raises((InputError, UsageError), match=error):
            prepare(engine, text, options)


def test_an_image_of_few_pixels_is_refused(tmp_path: Path) -> None:
    engine = loaded(encoder("vit"), tmp_path / "model").engine
    with pytest.raises(InputError, match="at least 4 pixels"):
        prepare(engine, "", TextOptions(images=(RawImage("a.png", noise(3, 40)),)))
