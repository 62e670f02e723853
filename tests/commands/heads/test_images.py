"""`attnviz heads` within images: what each head's patches attend to."""

import json
from math import hypot, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import attnviz
from attnviz.errors import IdleOption, UsageError
from attnviz.records.capture import FloatArray, PatternBlock
from attnviz.records.heads import Head
from attnviz.records.images import MeasurePatches
from attnviz.records.metrics import IMAGE_METRICS
from attnviz.records.places import ImageView, Patch, RawImage, SeenImage
from attnviz.records.tokens import Token
from tests.conftest import Run, loaded_once
from tests.vision.encoders import encoder

ROWS, COLUMNS = 3, 5
OWN = ("[class]", "[register 1]", "[register 2]")


def tokens(own: tuple[str, ...] = OWN) -> list[Token]:
    """Those of an image of 3 × 5 patches, and of the model's own before them."""
    named = [Token(i, 0, "", 0, 0, special=True, name=name) for i, name in enumerate(own)]
    patches = [Patch(0, 0, row, column) for row in range(ROWS) for column in range(COLUMNS)]
    return named + [
        Token(len(own) + i, 0, "", 0, 0, special=True, name="@", image=0, patch=patch)
        for i, patch in enumerate(patches)
    ]


IMAGE = SeenImage(
    RawImage("a.png", np.zeros((30, 50, 3), np.uint8)),
    (ImageView("overview", (0, 0, 50, 30), ROWS, COLUMNS),),
)


def measured(
    pattern: FloatArray, own: tuple[str, ...] = OWN, dropped: tuple[int, ...] = ()
) -> dict[str, float]:
    """The metrics of one head (n, n), whose rows come four at a time."""
    measure = MeasurePatches(tokens(own), IMAGE, dropped)
    for first in range(0, len(pattern), 4):
        queries = np.arange(first, min(first + 4, len(pattern)))
        measure(PatternBlock(0, (0,), queries, pattern[None, queries]))
    return measure.metrics()[Head(0, 0)]


def regions(row: Any) -> float:
    """The spatial entropy of a row of patches, with scipy's regions."""
    above = np.maximum(row - row.mean(), 0).reshape(ROWS, COLUMNS)
    labels, number = ndimage.label(above > 0, structure=np.ones((3, 3)))
    shares = ndimage.sum(above, labels, range(1, number + 1)) / above.sum()
    return float(-(shares * np.log(shares)).sum())


def by_hand(a: Any, own: tuple[str, ...]) -> dict[str, float]:
    """The definitions of docs/metrics.md, in loops."""
    every = tokens(own)
    patches = [i for i, token in enumerate(every) if token.patch]
    distance = mass = 0.0
    for i in patches:
        for j in patches:
            one, other = every[i].patch, every[j].patch
            assert one
            assert other
            distance += a[i, j] * hypot(one.row - other.row, one.column - other.column)
            mass += a[i, j]
    sinks = [j for j in patches if _takes_much(a, patches, j)]

    def share(keys: list[int]) -> float:
        return float(np.mean([sum(a[i, j] for j in keys) for i in patches]))

    classes = [i for i, token in enumerate(every) if token.label.startswith("[class")]
    maps = [a[i, patches] for i in classes] or [a[np.ix_(patches, patches)].mean(axis=0)]
    return {
        "entropy": float(np.mean([-sum(w * log(w) for w in a[i] if w) for i in patches])),
        "patch_distance": distance / mass,
        "spatial_entropy": float(np.mean([regions(each) for each in maps])),
        "class": share(classes) if classes else float("nan"),
        "registers": share([1, 2]) if own == OWN else float("nan"),
        "sinks": share(sinks),
    }


def _takes_much(a: Any, patches: list[int], j: int) -> bool:
    often = sum(a[i, j] > 4 * a[i, patches].mean() for i in patches)
    return bool(often >= 0.9 * len(patches))


@pytest.mark.parametrize("own", [OWN, (), ("[class 1]", "[class 2]")])
def test_metrics_are_those_of_plain_loops(own: tuple[str, ...]) -> None:
    draw, n = np.random.default_rng(0), len(tokens(own))
    scores = draw.normal(size=(n, n))
    scores[:, -3] += 5  # a sink
    pattern = np.exp(scores)
    pattern /= pattern.sum(axis=1, keepdims=True)
    expected = by_hand(pattern, own)
    assert expected["sinks"] > 0.3
    found = measured(pattern.astype(np.float32), own)
    assert found == pytest.approx(expected, rel=1e-5, nan_ok=True)
    assert list(found) == list(IMAGE_METRICS)


def test_distances_are_counted_in_patches_and_none_is_one_to_itself() -> None:
    pattern = np.eye(len(tokens()), dtype=np.float32)
    assert measured(pattern)["patch_distance"] == 0
    corner = np.zeros_like(pattern)
    corner[:, -1] = 1  # of 3 × 5 patches, the last
    far = np.mean([hypot(2 - row, 4 - column) for row in range(ROWS) for column in range(COLUMNS)])
    assert measured(corner)["patch_distance"] == pytest.approx(far)
    assert measured(corner)["spatial_entropy"] == 0
    on_class = np.zeros_like(pattern)
    on_class[:, 0] = 1
    found = measured(on_class)
    assert found["class"] == 1
    assert np.isnan(found["patch_distance"])  # no patch is attended to
    assert np.isnan(measured(on_class, dropped=(0,))["class"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = encoder("dinov2_with_registers").make(tmp_path_factory.mktemp("model") / "dino")
    return loaded_once(made)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    at, draw = tmp_path_factory.mktemp("images"), np.random.default_rng(1)
    for name in ("a.png", "b.png"):
        Image.fromarray(draw.integers(0, 255, (40, 48, 3), np.uint8)).save(at / name)
    return [str(at / name) for name in ("a.png", "b.png")]


def test_a_run_and_its_saved_capture_have_the_same_metrics(
    folder: Path, images: list[str], tmp_path: Path
) -> None:
    model = attnviz.load_model(str(folder))
    rows = attnviz.heads(images[0], model).rows
    assert len(rows) == 8
    assert {"entropy", "patch_distance", "registers", "sinks"} < set(rows[0])
    assert not {"previous", "induction", "first", "role"} & set(rows[0])
    attnviz.capture(images[0], model).save(tmp_path / "a.npz")
    saved = attnviz.heads(attnviz.load(tmp_path / "a.npz")).rows
    for one, other in zip(rows, saved, strict=True):
        assert one["patch_distance"] == pytest.approx(other["patch_distance"], rel=1e-5)
        assert one["spatial_entropy"] == pytest.approx(other["spatial_entropy"], abs=1e-5)


def test_several_images_are_means_with_their_standard_errors(
    folder: Path, images: list[str]
) -> None:
    model = attnviz.load_model(str(folder))
    each = [attnviz.heads(image, model).rows for image in images]
    for both, *apart in zip(attnviz.heads(image=images, model=model).rows, *each, strict=True):
        values = [row["patch_distance"] for row in apart]
        assert both["patch_distance"] == pytest.approx(np.mean(values))
        error = abs(values[0] - values[1]) / 2
        assert both["patch_distance_error"] == pytest.approx(error, abs=1e-6)


def test_what_is_about_texts_is_refused(folder: Path, images: list[str]) -> None:
    model = attnviz.load_model(str(folder))
    for more, wrong in (
        ({"sort": "previous"}, "is not measured here"),
        ({"role": "induction"}, "heads on images have no roles"),
        ({"words": True}, "there is none"),
        ({"chars": True}, "there is none"),
    ):
        with pytest.raises((IdleOption, UsageError), match=wrong):
            attnviz.heads(images[0], model, **more)
    for none in ({}, {"circuits": True}):
        with pytest.raises(UsageError, match=r"reads no|cannot read"):
            attnviz.heads(model=model, **none)


def test_boxes_are_those_of_an_image_alone(
    run: Run, folder: Path, images: list[str], tmp_path: Path
) -> None:
    boxes = tmp_path / "boxes.jsonl"
    boxes.write_text('{"query": "[class]", "box": [0, 0, 1, 0.5]}\n')
    at = ("-m", str(folder), "--boxes", str(boxes), "-f", "jsonl")
    named, given = run("heads", images[0], *at), run("heads", "--image", images[0], *at)
    assert named.out == given.out
    row = json.loads(named.out.splitlines()[0])
    capture = attnviz.capture(images[0], attnviz.load_model(str(folder)))
    weights = capture.record.weights(Head(row["layer"], row["head"]))
    upper = [t.index for t in capture.record.key_tokens if t.patch and t.patch.row < 2]
    assert row["mass"] == pytest.approx(float(weights[0, upper].sum()), abs=1e-3)


def test_a_column_sorts_by_its_own_name_and_the_order_is_said(run: Run) -> None:
    at = ("heads", "docs/images/patterned.png", "-m", "shapes-vit")
    table = run(*at, "--top", "3").out
    assert "by layer and head; --sort METRIC" in table
    named = "known for: L1H1 covers; L2H2 finds"
    assert named in " ".join(run(*at).out.split())
    assert "by layer and head" not in run(*at).out
    column, metric = (
        run(*at, "--sort", name, "-f", "csv").out for name in ("dist", "patch_distance")
    )
    assert column == metric != run(*at, "-f", "csv").out
    text = ("heads", "one two one two", "-f", "csv", "--sort")
    assert run(*text, "dist").out == run(*text, "distance").out
