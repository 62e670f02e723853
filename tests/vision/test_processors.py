"""Image processors of a stranger's folder: what is wrong with them is one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForImageTextToText, LlavaProcessor

import attnviz
from attnviz.draw.titles import model_notes, text_notes, written
from attnviz.errors import AttnvizError, InputError, ModelError, readable
from attnviz.kit.prepare import Prepared, TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.records.heads import Head
from attnviz.records.places import RawImage
from tests.conftest import slow
from tests.vision.zoo import species


def read(folder: Path, size: tuple[int, int] = (90, 60), text: str = "What?") -> Prepared:
    """A text with an image, read by the model of a folder."""
    pixels = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    options = TextOptions(given=(RawImage("a.png", pixels),))
    return prepare(load_model(Source(str(folder), quiet=True)), text, options)


def images(**settings: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda written: written["image_processor"].update(settings)


def whole(**settings: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda written: written.update(settings)


REFUSED = {
    "a giant size": (
        images(size={"shortest_edge": 10**9}),
        "has shortest_edge 1,000,000,000, but attnviz takes 33,554,432 at most",
    ),
    "a giant crop": (
        images(crop_size={"height": 10**5, "width": 10**5}),
        "has height 100,000, but attnviz takes 4,096 at most",
    ),
    "giant images": (
        images(size={"height": 2048, "width": 2048}, crop_size={"height": 2048, "width": 2048}),
        "of them of images, but the model takes at most 2,048",
    ),
    "a size of another type": (images(size="big"), "transformers makes no image processor of"),
    "a number for a class": (images(image_processor_type=7), "makes no image processor of"),
    "a class that is none": (images(image_processor_type="Evil"), "makes no image processor of"),
    "a list for settings": (whole(image_processor=[1]), "makes no image processor of"),
    "no size at all": (images(size={"shortest_edge": 0}), "does not take this image"),
    "a negative size": (images(size={"shortest_edge": -5}), "does not take this image"),
    "means that are no numbers": (images(image_mean="x"), "does not take this image"),
    "a resampling that is none": (images(resample=99), "does not take this image"),
    "the processor of sounds": (
        whole(processor_class="WhisperProcessor"),
        "attnviz knows no processor that puts images among the tokens of a text for 'llava'",
    ),
    "a model for a processor": (
        whole(processor_class="BertModel"),
        "attnviz knows no processor that puts images among the tokens of a text for 'llava'",
    ),
}


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return species("llava").make(tmp_path_factory.mktemp("llava") / "model")


def copied(folder: Path, to: Path) -> Path:
    """A folder whose settings of the processor may be changed."""
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


@pytest.mark.parametrize("case", REFUSED)
def test_settings_that_transformers_does_not_take_are_refused_in_a_sentence(
    llava: Path, tmp_path: Path, case: str
) -> None:
    (change, said), folder = REFUSED[case], copied(llava, tmp_path / "model")
    path = folder / "processor_config.json"
    settings = json.loads(path.read_text())
    change(settings)
    path.write_text(json.dumps(settings))
    with pytest.raises(AttnvizError, match=said) as refused:
        read(folder)
    assert "\n" not in str(refused.value)
    assert "attnviz-" not in str(refused.value)  # the folder that was written in between


@pytest.mark.parametrize("written", ["{", "[]", "[" * 100_000, None])
def test_a_file_of_settings_that_is_none_is_refused(
    llava: Path, tmp_path: Path, written: str | None
) -> None:
    path = copied(llava, tmp_path / "model") / "processor_config.json"
    path.unlink() if written is None else path.write_text(written)
    with pytest.raises(ModelError, match=r"processor_config\.json"):
        read(path.parent)


def test_code_that_settings_name_is_not_run(llava: Path, tmp_path: Path) -> None:
    folder = copied(llava, tmp_path / "model")
    path = folder / "processor_config.json"
    settings = json.loads(path.read_text())
    code = {"AutoProcessor": "evil.Evil", "AutoImageProcessor": "evil.Evil"}
    settings.update(auto_map=code)
    settings["image_processor"].update(auto_map=code)
    path.write_text(json.dumps(settings))
    (folder / "evil.py").write_text("raise SystemExit('it ran')")
    assert read(folder).ids == read(llava).ids


@pytest.mark.parametrize("size", [(1, 1), (3, 60), (1, 900), (900, 1), (30_000, 100)])
def test_images_of_extreme_sizes_are_refused(llava: Path, size: tuple[int, int]) -> None:
    with pytest.raises(
        InputError,
        match="at least 4 pixels along each side, the longer at most 200 times the shorter",
    ):
        read(llava, size)


@pytest.mark.parametrize("name", ["llava", "llava_next", "llava_onevision", "idefics3", "ovis2"])
@pytest.mark.parametrize("size", [(4, 4), slow((5, 60)), slow((9, 300))])
def test_small_and_narrow_images_are_read(name: str, size: tuple[int, int], tmp_path: Path) -> None:
    prepared = read(species(name).make(tmp_path / "model"), size)
    prepared.record([Head(1, 0)], queries=(len(prepared.ids) - 1,))


def test_tiles_of_too_few_pixels_to_measure_have_no_place(tmp_path: Path) -> None:
    prepared = read(species("idefics3").make(tmp_path / "model"), (8, 8))
    assert prepared.empty.images[0].views == ()
    assert sum(token.image == 0 for token in prepared.source) > 16
    assert not any(token.patch for token in prepared.source)


def test_an_image_that_transformers_cannot_run_is_told_so(tmp_path: Path) -> None:
    prepared = read(species("mistral3").make(tmp_path / "model"), (8, 8))
    with pytest.raises(ModelError, match=r"cannot run this mistral3 on this image.*larger image"):
        prepared.record([Head(0, 0)])


@pytest.mark.slow
def test_nothing_that_transformers_warns_of_is_printed(
    llava: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("video_llava", "qwen2_5_vl", "glm4v"):
        read(species(name).make(tmp_path / name))
        capfd.readouterr()
        read(tmp_path / name, (60, 4), text="Which colour?")
        assert capfd.readouterr() == ("", "")


def test_a_text_alone_is_told_that_the_model_reads_images_too(llava: Path) -> None:
    with_image = read(llava).empty
    alone = prepare(load_model(Source(str(llava), quiet=True)), "What?", TextOptions()).empty
    name = readable(str(llava))
    assert text_notes(alone) == (f"{name} reads images too; none was given",)
    assert text_notes(with_image) == ()


def test_cross_attention_to_an_image_has_the_text_as_its_queries(tmp_path: Path) -> None:
    source = Source(str(species("mllama").make(tmp_path / "model")), kind="cross", quiet=True)
    pixels = np.zeros((60, 90, 3), np.uint8)
    options = TextOptions(given=(RawImage("a.png", pixels),))
    capture = prepare(load_model(source), "<image> What?", options).empty
    assert written(capture) == "queries: “<|image|><|endoftext|> What?”"
    (note,) = model_notes(capture.model)
    assert note.startswith("layers 0, 2 of ")
    assert note.endswith(" have no attention of this kind")


def test_a_model_in_memory_reads_images_by_its_processor(llava: Path) -> None:
    model = AutoModelForImageTextToText.from_pretrained(llava).eval()
    processor = LlavaProcessor.from_pretrained(llava)
    pixels = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    capture = attnviz.load_model(model, processor).capture("What?", image=pixels)
    assert [token.id for token in capture.key_tokens] == read(llava).ids
    without = attnviz.load_model(model, processor.tokenizer)
    with pytest.raises(ModelError, match=r"give load_model the processor of a model in memory"):
        without.capture("What?", image=pixels)
