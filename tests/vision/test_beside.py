"""Models that read an image beside a text, in which nothing stands for it."""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from attnviz.errors import ExitStatus, ModelError
from attnviz.kit.prepare import Prepared, TextOptions, load_model, prepare, verify
from attnviz.models.catalog import Source
from attnviz.models.huggingface.load import wrap_huggingface
from attnviz.models.loaded import LoadedModel
from attnviz.models.verifying import in_float64
from attnviz.records.capture import Kind
from attnviz.records.heads import every_head
from attnviz.records.places import RawImage
from tests.conftest import Run, slow
from tests.vision.beside import MODELS, Beside, read_by
from tests.vision.folders import processor
from tests.vision.local import make_local
from tests.vision.test_image_patches import SHAPES, Places, check, noise

TEXT = "What is it?"
BLIP, VILT = MODELS[:3], MODELS[3:]
EVERY = pytest.mark.parametrize("made", MODELS, ids=lambda made: made.model)
OF_BLIP = pytest.mark.parametrize("made", BLIP, ids=lambda made: made.model)


@cache
def folder_of(made: Beside) -> Path:
    return made.make(Path(mkdtemp(prefix="beside-")) / "model")


@cache
def engine_of(made: Beside, kind: Kind | None = None) -> LoadedModel:
    return load_model(Source(str(folder_of(made)), kind=kind, quiet=True))


def prepared(made: Beside, pixels: NDArray[np.uint8], kind: Kind | None = None) -> Prepared:
    images = (RawImage("a.png", pixels),)
    return prepare(engine_of(made, kind), TEXT, TextOptions(given=images))


def rows(made: Beside, pixels: NDArray[np.uint8], kind: Kind | None = None) -> list[Any]:
    """The weights of each layer through attnviz."""
    ready = prepared(made, pixels, kind)
    capture = ready.record(every_head(ready.model.identity.heads_per_layer))
    return [layer.weights for layer in capture.layers]


def difference(made: Beside, pixels: NDArray[np.uint8], kind: Kind | None = None) -> float:
    """The largest difference of a weight from transformers' own."""
    _, output = read(made, pixels)
    own, expected = rows(made, pixels, kind), output[f"{kind}_attentions" if kind else "attentions"]
    apart = (one - other[0].numpy() for one, other in zip(own, expected, strict=True))
    return max(float(np.abs(each).max()) for each in apart)


def read(made: Beside, pixels: NDArray[np.uint8]) -> tuple[Any, Any]:
    """What transformers' reader of the text is given and returns."""
    inputs = made.inputs(folder_of(made), TEXT, Image.fromarray(pixels))
    return read_by(made.eager(folder_of(made)), made.reader, inputs)


@OF_BLIP
def test_rows_of_the_text_and_to_the_image_are_those_of_transformers(made: Beside) -> None:
    pixels = noise(150, 70)
    assert difference(made, pixels) < 1e-5
    assert difference(made, pixels, "cross") < 1e-5
    assert prepared(made, pixels).empty.causal is (made.reader == "text_decoder")


@pytest.mark.parametrize("made", VILT, ids=lambda made: made.model)
def test_rows_of_one_sequence_of_text_and_patches_are_those_of_transformers(made: Beside) -> None:
    for size in ((150, 70), (40, 90)):
        assert difference(made, noise(*size)) < 1e-5
    empty = prepared(made, noise(150, 70)).empty
    assert [token.label for token in empty.query_tokens[10:13]] == ["?", "[class]", "@r0c0"]
    assert not empty.causal
    options = TextOptions(given=(RawImage("a.png", noise(90, 60)),))
    assert verify(engine_of(made), None, TEXT, options).exact


def test_patches_that_a_model_leaves_out_at_random_are_refused() -> None:
    few = replace(VILT[0], config={**VILT[0].config, "max_image_length": 7})
    with pytest.raises(ModelError, match="reads 7 of the image's 18 patches"):
        prepared(few, noise(150, 70))


@OF_BLIP
def test_rows_within_the_image_are_those_of_transformers(made: Beside) -> None:
    pixels, within = noise(150, 70), list[Any]()
    model = made.eager(folder_of(made))
    for layer in model.vision_model.encoder.layers:
        layer.self_attn.register_forward_hook(lambda *hooked: within.append(hooked[-1][1]))
    with torch.no_grad():
        model(**made.inputs(folder_of(made), TEXT, Image.fromarray(pixels)))
    for one, other in zip(rows(made, pixels, "encoder"), within, strict=True):
        assert np.abs(one - other[0].numpy()).max() < 1e-5


@dataclass(frozen=True)
class Local:
    """As `test_image_patches.Local`, of a model that reads an image beside a text."""

    made: Beside
    local: Any

    @property
    def sighted(self) -> Any:
        """Of its name, the reach of its kernel."""
        return self.made

    @property
    def cell(self) -> int:
        return self.made.cell

    def tokens(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        inputs = self.made.inputs(folder_of(self.made), TEXT, Image.fromarray(pixels))
        if self.made in VILT:
            _, (joined, _) = read_by(self.local, "vilt.embeddings", inputs)
            return np.asarray(joined[0, len(TEXT) :].numpy())
        given, _ = read_by(self.local, self.made.reader, inputs)
        return np.asarray(given["encoder_hidden_states"][0].numpy())


def local_of(made: Beside, pixels: NDArray[np.uint8]) -> tuple[Any, Places]:
    """A local model, and where attnviz says that the tokens of its image are."""
    model = deepcopy(made.eager(folder_of(made)))
    if made in BLIP:  # what ViLT reads of an image has been through no layer
        make_local(model)
    empty = prepared(made, pixels, "cross" if made in BLIP else None).empty
    tokens = empty.key_tokens[0 if made in BLIP else len(TEXT) :]
    assert [token.label for token in tokens[:2]] == ["[class]", "@r0c0"]
    return Local(made, model), Places(empty.images[0].views, [token.patch for token in tokens])


@pytest.mark.parametrize("shape", ["wide", slow("tall"), slow("square"), slow("tiny")])
@pytest.mark.parametrize("made", [BLIP[0], VILT[0]], ids=lambda made: made.name)
def test_patches_react_to_the_pixels_of_their_boxes_and_to_no_others(
    made: Beside, shape: str
) -> None:
    pixels = noise(*SHAPES[shape])
    local, places = local_of(made, pixels)
    check(local, pixels, places)
    with pytest.raises(AssertionError):
        check(local, pixels, places.shifted())


@OF_BLIP
def test_verifying_finds_the_capture_exact(made: Beside) -> None:
    options = TextOptions(given=(RawImage("a.png", noise(90, 60)),))
    for kind in (None, "cross"):
        verified = verify(engine_of(made, kind), None, TEXT, options)
        assert verified.exact
        assert verified.output == 0


@EVERY
def test_a_copy_in_float64_sees_the_same_image(made: Beside) -> None:
    ready = prepared(made, noise(90, 60))
    exact = in_float64(ready.model).output(ready.ids)
    assert exact.dtype is torch.float64
    assert torch.allclose(exact.float(), ready.model.output(ready.ids), atol=1e-3)


@EVERY
def test_a_text_without_its_image_is_refused(made: Beside, run: Run) -> None:
    ended = run("show", TEXT, "-m", str(folder_of(made)))
    assert ended.status is ExitStatus.USAGE
    assert "reads an image beside every text; give one with --image" in ended.err


@EVERY
@pytest.mark.parametrize("command", ["generate", "predict", "why"])
def test_what_needs_more_than_attention_is_refused(
    made: Beside, command: str, run: Run, tmp_path: Path
) -> None:
    Image.fromarray(noise(60, 60)).save(tmp_path / "a.png")
    image = ("--image", str(tmp_path / "a.png"))
    ended = run(command, TEXT, *image, "-m", str(folder_of(made)))
    assert ended.status is ExitStatus.USAGE
    assert "as the model reads its image beside the text" in ended.err


def test_an_image_has_no_place_in_the_text_and_there_is_one(run: Run, tmp_path: Path) -> None:
    Image.fromarray(noise(60, 60)).save(tmp_path / "a.png")
    image, model = ("--image", str(tmp_path / "a.png")), ("-m", str(folder_of(MODELS[0])))
    assert "leave <image> out of the text" in run("show", "<image> What?", *image, *model).err
    assert "reads one image at a time, but 2 are" in run("show", TEXT, *image, *image, *model).err


def test_a_model_whose_text_does_not_meet_the_image_is_refused() -> None:
    apart = Beside("blip", "BlipModel", reader="text_model")
    with pytest.raises(ModelError, match="reads its text apart from its image"):
        prepared(apart, noise(60, 60))


def test_a_model_in_memory_is_read_as_its_folder() -> None:
    made, pixels = BLIP[0], noise(60, 60)
    folder = folder_of(made)
    engine = wrap_huggingface(made.eager(folder), processor(folder), "cross")
    ready = prepare(engine, TEXT, TextOptions(given=(RawImage("a.png", pixels),)))
    own = ready.record(every_head(engine.identity.heads_per_layer)).layers[0].weights
    assert np.abs(own - rows(made, pixels, "cross")[0]).max() < 1e-6
