"""Models that read an image alone: their rows, and the pixels of their patches."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from PIL import Image
from transformers import ViTMAEForPreTraining, ViTModel

import attnviz
from attnviz.draw.headlines import about
from attnviz.errors import InputError, ModelError, UsageError
from attnviz.kit.prepare import Prepared, TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.records.heads import Head, every_head
from attnviz.records.places import RawImage
from tests.conftest import some
from tests.vision.encoders import (
    ENCODERS,
    TOWERS,
    Encoder,
    encoder,
    make_local,
    make_towers,
    outputs,
)
from tests.vision.test_image_patches import CASES, SHAPES, Places, check, noise


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
        return prepare(self.engine, "", TextOptions(given=(RawImage("a.png", pixels),)))

    def difference(self, pixels: NDArray[np.uint8]) -> float:
        """The largest difference of a weight to transformers' eager attention."""
        prepared = self.prepared(pixels)
        capture = prepared.record(every_head(self.engine.identity.heads_per_layer))
        rows = outputs(self.eager, self.sighted.inputs(Image.fromarray(pixels))).attentions
        n = len(prepared.source)  # SigLIP 2 fills up its rows
        pairs = zip(capture.layers, rows, strict=True)
        apart = (own.weights - theirs[0, :, :n, :n].numpy() for own, theirs in pairs)
        return max(float(np.abs(difference).max()) for difference in apart)

    def tokens(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """What becomes of each token (n, d) where no token attends to another."""
        made = outputs(self.local, self.sighted.inputs(Image.fromarray(pixels)))
        last = made.hidden_states[-1] if made.get("hidden_states") else made.last_hidden_state
        return np.asarray(last[0, : len(self.prepared(pixels).source)].numpy())

    def places(self, pixels: NDArray[np.uint8]) -> Places:
        """Where attnviz says that they are."""
        empty = self.prepared(pixels).empty
        return Places(empty.images[0].views, [token.patch for token in empty.key_tokens])


@pytest.fixture(scope="module", params=some(ENCODERS), ids=lambda made: made.name)
def made(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return loaded(request.param, tmp_path_factory.mktemp("encoder") / "model")


def loaded(own: Encoder, folder: Path) -> Made:
    """A tiny model of an architecture, made in a folder."""
    own.make(folder)
    make_local(local := own.eager(folder))
    return Made(own, load_model(Source(str(folder), quiet=True)), own.eager(folder), local)


def test_rows_are_those_of_transformers(made: Made) -> None:
    assert made.difference(noise(130, 90)) < 1e-5
    empty = made.prepared(noise(130, 90)).empty
    assert not empty.causal
    assert empty.query_tokens == empty.key_tokens


def test_tokens_that_are_no_patches_are_told_apart(made: Made) -> None:
    tokens = made.prepared(noise(130, 90)).empty.key_tokens
    labels = [token.label for token in tokens]
    first, behind = made.sighted.own, made.sighted.behind
    patches = labels[len(first) : len(labels) - len(behind)]
    assert tuple(labels) == (*first, *patches, *behind)
    assert all(label.startswith("@r") for label in patches)
    assert [token.patch is None for token in tokens] == [not t.startswith("@") for t in labels]


@pytest.mark.parametrize("shape", CASES)
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


def test_a_classifier_on_one_of_two_sides_is_told_to_save_that_side(tmp_path: Path) -> None:
    kind = "SiglipForImageClassification"
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "siglip", "architectures": [kind]})
    )
    with pytest.raises(ModelError, match=rf"does not read a {kind}.*vision_model.save_pretrained"):
        load_model(Source(str(tmp_path), quiet=True))


def test_they_take_one_image_and_no_text(tmp_path: Path) -> None:
    engine = loaded(encoder("vit"), tmp_path / "model").engine
    image = RawImage("a.png", noise(40, 40))
    for text, options, error in (
        ("a cat", TextOptions(), "reads only images, and no text"),
        ("a cat", TextOptions(given=(image,)), "only images, and no text; leave the text out"),
        (
            "b.png",
            TextOptions(given=(image,)),
            "reads one image at a time, not also 'b.png'",
        ),
        ("", TextOptions(), "reads only images, and no text"),
        ("", TextOptions(given=(image, image)), "reads one image at a time, but 2 are given"),
        ("", TextOptions(given=(image,), bos=True), "needs a text"),
        ("", TextOptions(given=(image,), special=True), "needs a text"),
        ("", TextOptions(given=(image,), truncate="left"), "cannot cut an image"),
        ("", TextOptions(given=(image,), target="a"), "is the output of an encoder-decoder"),
    ):
        with pytest.raises((InputError, UsageError)) as refused:
            prepare(engine, text, options)
        assert error in str(refused.value)


def test_an_image_of_few_pixels_is_refused(tmp_path: Path) -> None:
    engine = loaded(encoder("vit"), tmp_path / "model").engine
    with pytest.raises(InputError, match="at least 4 pixels"):
        prepare(engine, "", TextOptions(given=(RawImage("a.png", noise(3, 40)),)))


def test_weights_without_a_pooler_are_enough(tmp_path: Path) -> None:
    folder = encoder("vit").make(tmp_path / "model")
    plain = ViTModel.from_pretrained(folder, add_pooling_layer=False)
    plain.save_pretrained(folder)
    prepared = loaded_from(folder, noise(60, 50))
    assert len(prepared.source) == 17


def loaded_from(folder: Path, pixels: NDArray[np.uint8]) -> Prepared:
    """An image, as the model of a folder reads it."""
    engine = load_model(Source(str(folder), quiet=True))
    return prepare(engine, "", TextOptions(given=(RawImage("a.png", pixels),)))


@pytest.mark.parametrize("name", ["vit", "dinov3_vit"])
def test_a_model_in_memory_reads_images_by_its_image_processor(name: str, tmp_path: Path) -> None:
    folder = encoder(name).make(tmp_path / "model")
    model, pixels = encoder(name).eager(folder), noise(60, 50)
    before = dict(vars(model))
    given = attnviz.load_model(model, encoder(name).images_class(**encoder(name).images))
    rows = given.capture(image=pixels, heads="L1H2").pattern(1, 2)
    expected = loaded_from(folder, pixels).record([Head(1, 2)]).weights(Head(1, 2))
    assert np.abs(rows - expected).max() < 1e-6
    assert vars(model) == before
    with pytest.raises(ModelError, match="is not an image processor"):
        attnviz.load_model(model, "a processor")


def test_a_model_in_memory_that_masks_patches_is_refused(tmp_path: Path) -> None:
    mae = encoder("vit_mae")
    model = ViTMAEForPreTraining(mae.config()).eval()
    with pytest.raises(ModelError, match="masks some patches at random"):
        attnviz.load_model(model, mae.images_class(**mae.images))


def test_older_settings_name_a_feature_extractor(tmp_path: Path) -> None:
    folder = encoder("vit").make(tmp_path / "model")
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    del settings["image_processor_type"]
    path.write_text(json.dumps({**settings, "feature_extractor_type": "ViTFeatureExtractor"}))
    assert len(loaded_from(folder, noise(60, 50)).source) == 17


@pytest.mark.parametrize("deviation", [0, 1e-300, float("nan")])
def test_a_deviation_that_makes_no_numbers_is_refused(tmp_path: Path, deviation: float) -> None:
    folder = encoder("vit").make(tmp_path / "model")
    path = folder / "preprocessor_config.json"
    wrong = {**json.loads(path.read_text()), "image_std": [deviation] * 3}
    path.write_text(json.dumps(wrong))
    with pytest.raises(ModelError, match=r"preprocessor_config.json.* has image_std"):
        loaded_from(folder, noise(60, 50))


def test_settings_of_the_images_have_to_be_there(tmp_path: Path) -> None:
    folder = encoder("vit").make(tmp_path / "model")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match="there is no preprocessor_config"):
        loaded_from(folder, noise(60, 50))


@pytest.mark.parametrize("name", TOWERS)
def test_a_text_runs_the_side_of_texts_and_an_image_that_of_images(
    name: str, tmp_path: Path
) -> None:
    folder, pixels = make_towers(name, tmp_path / "model"), noise(130, 90)
    kind = getattr(transformers, f"{TOWERS[name]}Model")
    eager = kind.from_pretrained(folder, attn_implementation="eager").eval()
    model = attnviz.load_model(folder)
    seen = model.capture(image=pixels).record
    inputs = encoder(f"{name}_vision_model").inputs(Image.fromarray(pixels))
    with torch.no_grad():
        pairs = [(seen, eager.vision_model(**inputs, output_attentions=True).attentions, 2)]
        if name != "siglip2":  # whose tokenizer transformers puts together of a vocabulary
            read = model.capture("a cat").record
            ids = torch.tensor([[token.id for token in read.query_tokens]])
            text = eager.text_model(input_ids=ids, output_attentions=True).attentions
            pairs.append((read, text, 3))
    for own, theirs, layers in pairs:
        assert len(own.layers) == len(theirs) == layers
        for layer, rows in zip(own.layers, theirs, strict=True):
            n = len(own.key_tokens)
            assert np.abs(layer.weights - rows[0, :, :n, :n].numpy()).max() < 1e-5
    with pytest.raises(UsageError, match="reads a text or an image, each by itself"):
        model.heads("a cat", image=pixels)
    assert len(model.heads(image=pixels).rows) == 8


HEADED = [each for each in ENCODERS if each.model.endswith("ForImageClassification")]


@pytest.mark.parametrize("own", HEADED, ids=lambda own: own.name)
def test_the_classes_of_an_image_have_the_probabilities_of_transformers(
    own: Encoder, tmp_path: Path
) -> None:
    folder, image = own.make(tmp_path / "model"), Image.fromarray(noise(40, 40))
    settings, hostile = folder / "config.json", "\x1b[31mred\n</script>"
    labels = {"id2label": {"0": hostile, "1": "b"}, "label2id": {hostile: 0, "b": 1}}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | labels))
    image.save(tmp_path / "a.png")
    found = attnviz.predict(str(tmp_path / "a.png"), model=str(folder))
    with torch.no_grad():
        theirs = own.eager(folder)(**own.inputs(image)).logits[0].softmax(dim=0)
    ours = {row["id"]: row["probability"] for row in found.rows}
    assert ours == pytest.approx(dict(enumerate(theirs.tolist())), abs=1e-6)
    assert {row["id"]: row["exact"] for row in found.rows} == {0: hostile, 1: "b"}
    assert "\x1b" not in str(found)


def test_a_model_without_classes_of_images_predicts_none(tmp_path: Path) -> None:
    engine = loaded(encoder("dinov2"), tmp_path / "model").engine
    with pytest.raises(UsageError, match="has no classes of images to choose among"):
        engine.classes()


def chosen(*rows: dict[str, float]) -> str:
    """The first line of a picture of 6 × 6 patches; the class token's rows of heads by patch."""
    labels = ["[CLS]", "[register 1]", *(f"{n // 6},{n % 6}" for n in range(36))]
    weights = np.tile(np.full(38, 1 / 38, np.float32), (1, len(rows), 38, 1))
    for head, row in enumerate(rows):
        weights[0, head, 0] = [row.get(label, 0.0) for label in labels]
    tokens = ["[CLS]", "[register 1]", *["<image>"] * 36]
    image = np.zeros((60, 60, 3), np.uint8)
    capture = attnviz.from_attention(weights, tokens, image=image, grid=(6, 6))
    return about(attnviz.show(capture).record)


def test_few_places_are_claimed_only_of_a_row_in_which_one_stands_out() -> None:
    even = {f"{n // 6},{n % 6}": 1 / 36 for n in range(36)}
    assert chosen(even, even).startswith("L0H0 (chosen automatically)")
    for times, claimed in ((2.5, False), (4.0, True)):  # the mean is over all 38 keys
        rest = (1 - times / 38) / 35
        row = dict.fromkeys(even, rest) | {"2,2": times / 38}
        assert ("to few places" in chosen(row, row)) == claimed


def test_the_head_with_most_weight_in_one_region_off_sinks_is_chosen() -> None:
    region = dict.fromkeys(("1,1", "1,2", "2,1", "2,2"), 0.2) | {"5,5": 0.2}
    apart = dict.fromkeys(("0,0", "0,5", "3,3", "5,0"), 0.25)
    sink, register = {"5,5": 1.0}, {"[register 1]": 0.9, "3,3": 0.1}
    first = chosen(apart, sink, sink, register, region, sink)
    assert first.startswith("L0H4 (chosen automatically: its class token attends to few places")


def test_the_bundled_encoder_shows_a_head_that_its_card_names() -> None:
    shown = attnviz.show(image="docs/images/patterned.png", model="shapes-vit")
    assert str(shown.record.choice.heads[0]) in ("L1H1", "L2H2")
