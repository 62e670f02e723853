"""`attnviz compare` of images, and of two models that read an image alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.commands.compare.run import on_one_grid, overlaps
from attnviz.errors import ExitStatus, UsageError
from attnviz.kit.prepare import TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.records.capture import Capture
from attnviz.records.heads import Head, every_head
from attnviz.records.places import RawImage
from tests.conftest import Run, loaded_once
from tests.vision.encoders import encoder

FINE = {"size": {"height": 48, "width": 48}}


@pytest.fixture(scope="module")
def coarse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(loaded_once(encoder("vit").make(tmp_path_factory.mktemp("models") / "coarse")))


@pytest.fixture(scope="module")
def fine(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = replace(encoder("vit"), images=FINE, more={"image_size": 48})
    return str(loaded_once(made.make(tmp_path_factory.mktemp("models") / "fine", seed=1)))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    at, draw = tmp_path_factory.mktemp("images"), np.random.default_rng(1)
    for name in ("a.png", "b.png"):
        Image.fromarray(draw.integers(0, 255, (40, 48, 3), np.uint8)).save(at / name)
    return [str(at / name) for name in ("a.png", "b.png")]


def captured(folder: str) -> Capture:
    """A run on noise, with all patterns."""
    pixels = np.random.default_rng(0).integers(0, 255, (48, 96, 3), np.uint8)
    model = load_model(Source(folder, quiet=True))
    prepared = prepare(model, "", TextOptions(given=(RawImage("a.png", pixels),)))
    return prepared.record(every_head(model.identity.heads_per_layer))


def test_two_images_differ_by_head_and_by_patch(coarse: str, images: list[str]) -> None:
    model = attnviz.load_model(coarse)
    rows = attnviz.compare(*images, model=model).rows
    first, second = (attnviz.capture(image, model).record for image in images)
    for row in rows:
        head = Head(row["layer"], row["head"])
        change = (second.weights(head) - first.weights(head)).mean(axis=0)
        labels = [token.label for token in first.key_tokens]
        assert row["gain_token"] == labels[int(change.argmax())]
        assert row["gain"] == pytest.approx(change.max(), abs=1e-6)
        assert row["loss_token"] == labels[int(change.argmin())]
        assert row["loss"] == pytest.approx(change.min(), abs=1e-6)
    assert len(rows) == 8
    assert rows[0]["difference"] > rows[-1]["difference"] > 0


def test_a_query_and_the_same_image_twice(run: Run, coarse: str, images: list[str]) -> None:
    of_class = run("compare", *images, "-m", coarse, "--query", "cls").out
    assert "2 images" in of_class
    assert "[class]" in of_class
    same = run("compare", images[0], images[0], "-m", coarse).out
    assert same.startswith("the images are identical")
    beside = run("compare", *images, "-m", coarse, "--head", "L0H1").out
    assert "image 2" in beside
    assert "text" not in beside


@pytest.mark.parametrize(("query", "row"), [(None, "[class]"), ("@.1,.1", "@r0c0")])
def test_a_picture_has_both_images_side_by_side(
    coarse: str, images: list[str], query: str | None, row: str
) -> None:
    compared = attnviz.compare(*images, model=coarse, query=query, heads="L1H2")
    figure, head = compared.figure(), Head(1, 2)
    panels = [axes for axes in figure.axes if axes.get_images()]
    assert len({round(axes.get_position().y0, 3) for axes in panels}) == 1
    patterns = [captured.weights(head) for captured in compared.captures]
    at = 0 if query is None else 1
    for n, (axes, pattern) in enumerate(zip(panels, patterns, strict=True), start=1):
        said = " ".join(text.get_text().replace("\n", " ") for text in axes.texts)
        assert f"image {n}, {row}: {pattern[at, 1:].sum():.2f} on the image" in said
    most = max(pattern[at, 1:].max() for pattern in patterns)
    assert any(axes.get_ylim() == pytest.approx((0, most)) for axes in figure.axes)


def test_a_coarser_grid_is_spread_over_the_finer_one(coarse: str, fine: str) -> None:
    a, b = captured(coarse), captured(fine)
    ours, theirs = on_one_grid(a, b)
    assert len(ours.key_tokens) == 36  # 6 × 6, of 4 × 4 and of 6 × 6
    assert ours.key_tokens == theirs.key_tokens
    for head in (Head(0, 1), Head(1, 2)):
        own = b.weights(head)[1:, 1:]  # without [class]
        exact = own / own.sum(axis=1, keepdims=True)
        assert theirs.weights(head) == pytest.approx(exact, abs=1e-3)
        spread = ours.weights(head)
        assert spread.sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert spread == pytest.approx(by_pixels(a.weights(head)[1:, 1:]), abs=2e-3)


def by_pixels(pattern: np.ndarray) -> np.ndarray:
    """A pattern of 4 × 4 patches over 6 × 6, by pixels of a square of 12 × 12."""
    y, x = np.divmod(np.arange(144), 12)
    of_coarse, of_fine = (y // 3) * 4 + x // 3, (y // 2) * 6 + x // 2
    pixels = pattern[np.ix_(of_coarse, of_coarse)] / 9
    one = np.eye(36)[of_fine]  # (144, 36)
    rows = one.T @ pixels @ one / 4
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def test_two_models_on_one_image(
    run: Run, coarse: str, fine: str, images: list[str], tmp_path: Path
) -> None:
    ended = run("compare", images[0], "-m", coarse, "--against", fine, "-f", "jsonl")
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert {row["over"] for row in rows} == {"patches"}
    assert all(0 < row["similarity"] < 1 for row in rows)
    told = run("compare", images[0], "-m", coarse, "--against", fine, "--width", "300").out
    assert "patches of the finer grid, 6 × 6, over which those of 4 × 4 are spread" in told
    same = run("compare", images[0], "-m", fine, "--against", fine, "-f", "jsonl")
    assert json.loads(same.out.splitlines()[0])["similarity"] == pytest.approx(1)
    assert json.loads(same.out.splitlines()[0])["over"] == "tokens"
    cropped = encoder("dinov2_with_registers").make(tmp_path / "cropped")
    ours, theirs = on_one_grid(captured(coarse), captured(str(cropped)))
    assert ours.key_tokens == theirs.key_tokens
    assert len(ours.key_tokens) < 16  # the second does not see the sides of a wide image
    areas = overlaps(ours.key_tokens, ours.key_tokens).diagonal()
    assert areas.sum() < 1


def test_what_cannot_be_compared_is_told(
    run: Run, coarse: str, fine: str, images: list[str]
) -> None:
    ended = run("compare", images[0], "-m", coarse, "--against", "builtin")
    assert ended.status is ExitStatus.USAGE
    assert "reads images and builtin texts" in ended.err
    ended = run("compare", *images, "-m", coarse, "--words")
    assert "is about a text, and there is none; leave it out." in ended.err
    with pytest.raises(UsageError, match="single text"):
        attnviz.compare(images[0], model=attnviz.load_model(coarse))
