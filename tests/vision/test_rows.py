"""Rows of attention over images and text are those that transformers computes eagerly."""

from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import AutoModelForImageTextToText

from attnviz.errors import UsageError
from attnviz.kit.prepare import Prepared, TextOptions, load_model, prepare, verify
from attnviz.models.catalog import Source
from attnviz.models.verifying import in_float64
from attnviz.records.capture import KeepEverything, Kind, Wanted
from attnviz.records.heads import every_head
from attnviz.records.places import RawImage
from tests.conftest import slow
from tests.vision.zoo import ZOO, Sighted, older, processed, processor, species

LARGE = {"glm4v", "gemma4"}
"""Those whose scores here are so large that float32 rounds weights by more than 1e-5."""
LOOKING_AHEAD = {"paligemma", "gemma3"}
"""Those whose images, or whose prompt, attend to what stands behind."""


@dataclass(frozen=True)
class Both:
    """A model through attnviz, and through transformers with eager attention."""

    sighted: Sighted
    folder: Path
    engine: Any
    eager: Any
    process: Any

    def prepared(self, text: str, *pixels: NDArray[np.uint8]) -> Prepared:
        """A text with images, as attnviz reads it."""
        images = tuple(RawImage(f"{n}.png", each) for n, each in enumerate(pixels))
        return prepare(self.engine, text, TextOptions(special=True, given=images))

    def inputs(self, text: str, *pixels: NDArray[np.uint8]) -> dict[str, Any]:
        """The same as transformers reads it."""
        return processed(self.process, text, *map(Image.fromarray, pixels))

    def difference(self, text: str, *pixels: NDArray[np.uint8]) -> float:
        """The largest difference of a weight between the two."""
        prepared = self.prepared(text, *pixels)
        heads_per_layer = prepared.model.identity.heads_per_layer
        capture = prepared.record(every_head(heads_per_layer))
        with torch.no_grad():
            rows = self.eager(**self.inputs(text, *pixels), output_attentions=True).attentions
        own = [layer.layer for layer in capture.layers]
        every = own if len(rows) == len(own) else range(len(rows))
        theirs = dict(zip(every, rows, strict=True))
        apart = (each.weights - theirs[each.layer][0].numpy() for each in capture.layers)
        return max(float(np.abs(difference).max()) for difference in apart)


def loaded(sighted: Sighted, folder: Path, kind: Kind | None = None) -> Both:
    """A tiny model of an architecture, made in a folder."""
    sighted.make(folder)
    eager = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager")
    engine = load_model(Source(str(folder), kind=kind, quiet=True))
    return Both(sighted, folder, engine, eager.eval(), processor(folder))


@pytest.fixture(scope="module", params=ZOO, ids=lambda sighted: sighted.name)
def both(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return loaded(request.param, tmp_path_factory.mktemp("rows") / "model")


def noise(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def check_rows(both: Both, text: str, *pixels: NDArray[np.uint8]) -> None:
    """See that ids and rows of a text with images are transformers' own."""
    prepared = both.prepared(text, *pixels)
    assert prepared.ids == both.inputs(text, *pixels)["input_ids"][0].tolist()
    assert both.difference(text, *pixels) < (3e-5 if both.sighted.name in LARGE else 1e-5)
    if both.engine.kind == "self":
        assert prepared.empty.causal is (both.sighted.name not in LOOKING_AHEAD)


@pytest.mark.parametrize("images", [1, 2])
def test_rows_of_cross_attention_to_images_are_those_of_transformers(
    images: int, tmp_path: Path
) -> None:
    both = loaded(species("mllama"), tmp_path / "model", "cross")
    pixels = [noise(150, 70), noise(40, 90)][:images]
    text = f"{' and '.join(images * [both.sighted.place])}?"
    check_rows(both, text, *pixels)
    empty = both.prepared(text, *pixels).empty
    assert len(empty.key_tokens) == images * 4 * (1 + 8 * 8)
    names = [token.label for token in empty.key_tokens]
    assert [name.split("#")[0] for name in names[::65][:4]] == 2 * ["[class]"] + 2 * ["[padding]"]
    assert names[1] == ("@t1r0c0" if images == 1 else "@1:t1r0c0")
    read = TextOptions(special=True, given=(RawImage("a.png", pixels[0]),))
    assert verify(both.engine, None, f"{both.sighted.place} What?", read).exact
    with pytest.raises(UsageError, match="is its attention to images"):
        prepare(both.engine, "What?", TextOptions())


@pytest.mark.parametrize("size", [pytest.param((150, 70), id="wide"), slow((40, 90), id="tall")])
def test_rows_are_those_of_transformers(both: Both, size: tuple[int, int]) -> None:
    check_rows(both, f"Look: {both.sighted.place} What?", noise(*size))


def test_rows_of_two_images_in_one_text_are_those_of_transformers(both: Both) -> None:
    place = both.sighted.place
    check_rows(both, f"Is {place} as {place}?", noise(150, 70), noise(60, 60, seed=1))


@pytest.mark.slow
def test_a_folder_as_it_was_before_transformers_5_reads_the_same(
    both: Both, tmp_path: Path
) -> None:
    text, folder = f"{both.sighted.place} What?", older(copytree(both.folder, tmp_path / "model"))
    images = (RawImage("a.png", noise(150, 70)),)
    options = TextOptions(special=True, given=images)
    prepared = prepare(load_model(Source(str(folder), quiet=True)), text, options)
    assert prepared.source == both.prepared(text, images[0].pixels).source


def test_capture_changes_neither_the_output_nor_the_attention_function(both: Both) -> None:
    prepared = both.prepared(f"{both.sighted.place} What?", noise(90, 60))
    model, ids = prepared.model, prepared.ids
    assert both.engine.model.config._attn_implementation == "sdpa"
    without = model.output(ids)
    heads = {n: tuple(range(h)) for n, h in enumerate(model.identity.heads_per_layer) if h}
    captured = model.output(ids, (), Wanted(heads), KeepEverything(prepared.shape))
    assert torch.equal(without, captured)
    assert both.engine.model.config._attn_implementation == "sdpa"


def test_what_the_model_answers_is_what_transformers_computes(both: Both) -> None:
    text, pixels = f"{both.sighted.place} What?", noise(90, 60)
    prepared = both.prepared(text, pixels)
    with torch.no_grad():
        expected = both.eager(**both.inputs(text, pixels)).logits
        ids = torch.tensor([prepared.ids])
        assert torch.allclose(prepared.model.model(input_ids=ids).logits, expected, atol=1e-3)


def test_verifying_with_images_finds_the_capture_exact(both: Both) -> None:
    options = TextOptions(special=True, given=(RawImage("a.png", noise(90, 60)),))
    verified = verify(both.engine, None, f"{both.sighted.place} What?", options)
    assert verified.exact
    assert verified.output == 0


def test_a_copy_in_float64_sees_the_same_images(both: Both) -> None:
    prepared = both.prepared(f"{both.sighted.place} What?", noise(90, 60))
    exact, own = (
        in_float64(prepared.model).output(prepared.ids),
        prepared.model.output(prepared.ids),
    )
    assert exact.dtype is torch.float64
    assert torch.allclose(exact.float(), own, atol=1e-3)
