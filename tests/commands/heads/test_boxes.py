"""`attnviz heads --boxes`: how much of each head's attention lies in a box of an image."""

import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from transformers import AutoModelForImageTextToText

import attnviz
from attnviz.errors import InputError, UsageError
from attnviz.inputs.beside import box_of
from attnviz.records.images import are_sinks, one_sheet, spatial_entropy, take_much
from attnviz.records.places import ImageView, Patch, RawImage, SeenImage
from tests.conftest import Run
from tests.vision.folders import processed, processor
from tests.vision.zoo import species

SIDE = 112  # the model's own, so that nothing is resized: 8 × 8 tokens of 14 × 14 pixels
BOX = (14, 28, 42, 42)  # two tokens, of row 2


@pytest.fixture(scope="module")
def folder(llava_folder: Path) -> Path:
    return llava_folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "a.png"
    pixels = np.random.default_rng(0).integers(0, 255, (SIDE, SIDE, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def entropy_of_regions(grid: np.ndarray[Any, Any]) -> float:
    """As Peruzzo et al. 2022 define it, with scipy's regions."""
    above = np.maximum(grid - grid.mean(), 0)
    regions, number = ndimage.label(above > 0, structure=np.ones((3, 3)))
    shares = ndimage.sum(above, regions, range(1, number + 1)) / above.sum()
    return float(-(shares * np.log(shares)).sum())


def test_spatial_entropy_is_that_of_connected_regions() -> None:
    draw = np.random.default_rng(0)
    maps = draw.random((50, 7, 11)) ** 3
    assert spatial_entropy(maps) == pytest.approx([*map(entropy_of_regions, maps)], abs=1e-9)
    corner, apart = np.zeros((2, 5, 5))
    corner[1, 1] = corner[2, 2] = apart[0, 0] = apart[4, 4] = 1
    gap = np.full((5, 1), np.nan)
    views = np.hstack([corner[:, 2:], gap, corner[:, 2:]])  # one cell each, but with a gap between
    assert spatial_entropy(corner[None]) == [0]
    assert spatial_entropy(apart[None]) == pytest.approx([np.log(2)])
    assert spatial_entropy(views[None]) == pytest.approx([np.log(2)])
    assert np.isnan(spatial_entropy(np.full((1, 3, 5), 0.1, np.float32))).all()
    snake = np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0.0]])
    assert spatial_entropy(np.repeat(snake, 2, axis=0)[None]) == [0]


def test_a_long_winding_region_is_found_in_few_passes() -> None:
    snake = np.zeros((4, 129, 129))
    snake[:, ::2] = 1
    snake[:, 1::4, -1] = snake[:, 3::4, 0] = 1
    snake[1, 63:66] = 0  # cut in two
    started = process_time()
    assert spatial_entropy(snake) == pytest.approx([0, entropy_of_regions(snake[1]), 0, 0])
    assert process_time() - started < 3  # a pass for each cell takes a minute


def test_views_of_an_image_lie_apart_on_a_sheet() -> None:
    views = (ImageView("overview", (0, 0, 8, 8), 2, 2), ImageView("tile", (0, 0, 4, 8), 3, 1))
    image = SeenImage(RawImage("a", np.zeros((8, 8, 3), np.uint8)), views)
    patches = [Patch(0, 0, r, c) for r in range(2) for c in range(2)]
    patches += [Patch(0, 1, r, 0) for r in range(3)]
    sheet = one_sheet(image, patches)
    assert sheet.tolist() == [[0, 1, -1, 4, -1], [2, 3, -1, 5, -1], [-1, -1, -1, 6, -1]]


def test_the_mass_is_that_of_transformers_own_attention(
    folder: Path, image: Path, tmp_path: Path
) -> None:
    boxes = written(tmp_path / "boxes.jsonl", {"query": "-1", "box": BOX})
    rows = attnviz.heads("<image>ab", folder, image=image, boxes=boxes).rows
    model = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = processed(processor(folder), "<image>ab", Image.open(image))
    with torch.inference_mode():
        attentions = model(**inputs, output_attentions=True).attentions
    own = (inputs["input_ids"][0] == model.config.image_token_id).numpy()
    for row in rows:
        weights = attentions[row["layer"]][0, row["head"], -1].double().numpy()[own]
        grid = weights.reshape(8, 8)
        shares = weights / weights.sum()
        assert row["mass"] == pytest.approx(grid[2, 1] + grid[2, 2], abs=1e-5)
        assert row["on_image"] == pytest.approx(weights.sum(), abs=1e-5)
        assert row["within"] == pytest.approx((grid[2, 1] + grid[2, 2]) / weights.sum(), abs=1e-5)
        assert row["entropy"] == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-4)
        assert row["spatial_entropy"] == pytest.approx(entropy_of_regions(grid), abs=1e-4)
        assert row["chance"] == pytest.approx(2 / 64)
    assert [row["mass"] for row in rows] == sorted((row["mass"] for row in rows), reverse=True)


def test_pixels_and_shares_are_the_same_box(folder: Path, image: Path) -> None:
    shares = [edge / SIDE for edge in BOX]
    both = [
        attnviz.heads(
            "<image>ab", folder, image=image, boxes=[{"query": "b", "box": box}], heads="L1H0"
        ).rows[0]["mass"]
        for box in (BOX, shares)
    ]
    assert both[0] == pytest.approx(both[1], rel=1e-9)


def test_a_cell_that_is_cut_by_the_box_counts_in_part() -> None:
    patch = Patch(0, 0, 0, 0, (0.0, 0.0, 0.5, 0.5))
    assert patch.within((0.25, 0.0, 1.0, 1.0)) == pytest.approx(0.5)
    assert patch.within((0.25, 0.25, 1.0, 1.0)) == pytest.approx(0.25)
    assert patch.within((0.6, 0.6, 1.0, 1.0)) == 0


def test_each_line_may_bring_its_own_text_and_image(
    run: Run, folder: Path, image: Path, tmp_path: Path
) -> None:
    lines = (
        {"query": "a", "box": BOX, "image": str(image), "text": "<image>ab"},
        {"query": "ab", "box": BOX, "image": str(image)},
    )
    boxes = written(tmp_path / "boxes.jsonl", *lines)
    ended = run("heads", "-m", str(folder), "--boxes", str(boxes), "--top", "2")
    assert ended.status == 0, ended.err
    assert "2 boxes; 1 word run without a text" in " ".join(ended.out.split())
    given = attnviz.heads("<image>ab", folder, image=image, boxes=[{"query": "a", "box": BOX}])
    assert given.about.endswith("attention in 1 box")
    assert "mass  ± s.e." in ended.out


def test_a_bad_line_is_told_and_left_out(
    run: Run, folder: Path, image: Path, tmp_path: Path
) -> None:
    boxes = written(
        tmp_path / "boxes.jsonl", {"query": "a", "box": BOX}, {"query": "zebra", "box": BOX}
    )
    asked = ("-m", str(folder), "--image", str(image), "--boxes", str(boxes), "-f", "jsonl")
    ended = run("heads", "<image>ab", *asked)
    assert "line 2: the query 'zebra' is not in the text" in ended.err
    assert json.loads(ended.out.splitlines()[0])["boxes"] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"box": BOX}, "there is no query"),
        ({"query": "a"}, "four numbers"),
        ({"query": "a", "box": [1, 2, 3]}, "four numbers"),
        ({"query": "a", "box": [1, 2, "x", 4]}, "four numbers"),
        ({"query": "a", "box": [float("inf"), 2, 3, 4]}, "four numbers"),
        ({"query": "a", "box": [5, 5, 5, 9]}, "is empty"),
        ({"query": "a", "box": BOX, "image": 1.5}, "a wrong type"),
        ({"query": "a", "box": BOX, "imge": "a.png"}, "'imge' is not a field"),
        ([], "there is no query"),
        ("no json", "JSON"),
    ],
)
def test_a_line_that_is_no_box_is_refused(line: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        box_of(line)


def test_what_boxes_cannot_take_is_refused(folder: Path, image: Path) -> None:
    boxes = [{"query": "a", "box": BOX}]
    with pytest.raises(InputError, match="no such image"):
        attnviz.heads("ab", folder, boxes=boxes)
    with pytest.raises(UsageError, match="does nothing for boxes"):
        attnviz.heads("ab", folder, image=image, boxes=boxes, sort="entropy")
    with pytest.raises(UsageError, match="boxes is of type int"):
        attnviz.heads("ab", folder, image=image, boxes=3)


def test_sinks_take_much_of_nearly_every_row() -> None:
    rows = np.full((10, 20), 0.01, np.float32)
    rows[:, 3] = 0.5  # a sink
    rows[:4, 7] = 0.5  # what four words look at
    assert np.flatnonzero(are_sinks(take_much(rows).sum(axis=0), 10)).tolist() == [3]
    assert not are_sinks(take_much(rows[:3]).sum(axis=0), 3).any()  # too few rows to say
    assert not take_much(np.zeros((2, 5), np.float32)).any()


@pytest.mark.parametrize(
    "box",
    [(600, 600, 700, 700), (-9, -9, -1, -1), (0, 0, 9999, 9), (0, -2, 9, 9), (-0.5, 0, 0.5, 0.5)],
)
def test_a_box_that_reaches_outside_of_the_image_is_refused(
    folder: Path, image: Path, box: tuple[float, ...]
) -> None:
    with pytest.raises(InputError, match="outside of the image, which is 112 × 112 pixels"):
        attnviz.heads("ab", folder, image=image, boxes=[{"query": "b", "box": box}])


def test_an_edge_may_be_rounded_up(folder: Path, image: Path) -> None:
    boxes = [{"query": "b", "box": (0, 0, SIDE + 1, SIDE + 0.3)}]
    assert attnviz.heads("ab", folder, image=image, boxes=boxes).rows[0]["chance"] == 1


def test_a_box_that_was_cropped_away_is_told(folder: Path) -> None:
    wide = np.zeros((100, 400, 3), np.uint8)
    with pytest.raises(InputError, match="where the model read nothing"):
        attnviz.heads("ab", folder, image=wide, boxes=[{"query": "b", "box": [0, 0, 50, 90]}])


def test_boxes_of_an_image_beside_the_text_are_those_of_cross_attention(
    run: Run, image: Path, tmp_path: Path
) -> None:
    folder = species("mllama").make(tmp_path / "mllama")
    boxes = written(tmp_path / "boxes.jsonl", {"query": "a", "box": [0, 0, SIDE, SIDE]})
    asked = ("<image>ab", "-m", str(folder), "--image", str(image), "--boxes", str(boxes))
    ended = run("heads", *asked)
    assert ended.status == 3
    assert "beside the tokens of the text; measure them with --kind cross." in ended.err
    ended = run("heads", *asked, "--kind", "cross", "-f", "jsonl")
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert {row["layer"] for row in rows} == {1}
    assert all(row["within"] == pytest.approx(1, abs=1e-6) for row in rows)
    assert all(row["mass"] == pytest.approx(row["on_image"], abs=1e-6) for row in rows)
