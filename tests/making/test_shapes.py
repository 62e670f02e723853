"""Pictures of shapes: what is drawn, which questions have an answer, and a short training."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from attnviz.models.folder.files import bundled_folder
from making.shapes import __main__ as making
from making.shapes import data
from making.shapes.draw import Shape, draw, main, nearest, questions, scene
from making.shapes.model import IDS, PATCHES, fresh_model, processor
from tests.reading import without_version

BUNDLED = bundled_folder("shapes")
IMAGES = Path(__file__).parents[2] / "docs" / "images"
SEEDS = [f"of a test {n}" for n in range(30)]


@pytest.mark.parametrize("pixels", [64, 300])
def test_the_boxes_hold_all_that_differs_from_the_background_and_no_more(pixels: int) -> None:
    for seed in SEEDS:
        image = np.asarray(draw(seed, pixels)).astype(int)
        drawn = abs(image - image[0, 0]).sum(-1) > 60
        inside = np.zeros_like(drawn)
        for shape in scene(seed):
            x0, y0, x1, y1 = (side * pixels for side in shape.box)
            top, bottom, left, right = math.floor(y0), math.ceil(y1), math.floor(x0), math.ceil(x1)
            rows, columns = drawn[top:bottom, left:right].nonzero()
            reached = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
            assert reached == pytest.approx((0, 0, right - left, bottom - top), abs=1 + pixels / 60)
            inside[top:bottom, left:right] = True
        assert not (drawn & ~inside).any()


def test_shapes_differ_and_do_not_touch_and_stand_from_left_to_right() -> None:
    for seed in SEEDS:
        shapes = scene(seed)
        assert 2 <= len(shapes) == len({shape.name for shape in shapes}) <= 5
        assert [s.x for s in shapes] == sorted(s.x for s in shapes)
        for n, shape in enumerate(shapes):
            for other in shapes[:n]:
                apart = math.hypot(shape.x - other.x, shape.y - other.y)
                assert apart > shape.radius + other.radius


RED, BLUE, GREEN = (
    Shape("red", "circle", 0.2, 0.5, 0.1),
    Shape("blue", "square", 0.5, 0.55, 0.1),
    Shape("green", "circle", 0.85, 0.5, 0.1),
)


def test_questions_have_the_answers_that_one_reads_off() -> None:
    asked = {question.text: question.answer for question in questions((RED, BLUE, GREEN))}
    described = "a red circle, a blue square and a green circle"
    assert asked["describe it"] == described
    assert asked["how many shapes are there?"] == "three"
    assert asked["what colour is the square?"] == "blue"
    assert "what colour is the circle?" not in asked  # there are two
    assert asked["what shape is red?"] == "circle"
    assert asked["what is right of the red circle?"] == "a blue square"
    assert asked["what is left of the green circle?"] == "a blue square"
    assert asked["what is left of the red circle?"] == "nothing"
    assert asked["what is above the blue square?"] == "nothing"


def test_what_stands_diagonally_or_as_near_as_another_is_not_asked_for() -> None:
    diagonal = Shape("pink", "star", 0.5, 0.2, 0.1)
    assert not nearest(RED, (RED, diagonal), (1, 0))[1]
    two = Shape("pink", "star", 0.2, 0.2, 0.1), Shape("black", "star", 0.25, 0.15, 0.1)
    assert not nearest(RED, (RED, *two), (0, -1))[1]


def test_questions_packed_together_are_answered_as_each_alone_by_the_processor() -> None:
    """The mask, the positions and the pixels of a batch are those of the ordinary way."""
    seed, model, reader = SEEDS[0], fresh_model(3).eval(), processor()
    batch = data.batch([seed], 64, every=True)
    with torch.inference_mode():
        packed = making.run(model, batch)[0][0]
        for n, question in enumerate(questions(scene(seed)), 1):
            text = f"<image> {question.text} {question.answer}"
            given = reader(text=text, images=draw(seed, 64), return_tensors="pt")
            alone = model.model(**given).last_hidden_state[0, 1 + PATCHES :]
            here = packed[batch.documents[0] == n][:-1]  # without the end
            torch.testing.assert_close(here, alone, atol=2e-5, rtol=0)


def test_mass_is_summed_over_the_shares_of_patches_in_the_box_of_the_named_shape() -> None:
    batch = data.batch(SEEDS[:2], 64, every=True)
    pattern = torch.rand(2, 3, batch.ids.size(1), batch.ids.size(1))
    words = {id_: word for word, id_ in IDS.items()}
    for next_one, rows in enumerate(batch.mentions()):
        masses = iter(batch.masses(pattern, rows, next_one=bool(next_one)))
        for which, at in rows.nonzero().tolist():
            shape = scene(SEEDS[which])[batch.named[which, at + next_one]]
            named = words[int(batch.ids[which, at + next_one])]
            assert named in (shape.colour, shape.form, "a", "an")
            x0, y0, x1, y1 = (8 * side for side in shape.box)
            share = [
                max(0, min(x + 1, x1) - max(x, x0)) * max(0, min(y + 1, y1) - max(y, y0))
                for y in range(8)
                for x in range(8)
            ]
            expected = pattern[which, :, at, 1:65] @ torch.tensor(share)
            torch.testing.assert_close(next(masses), expected)


def test_the_pictures_of_the_documents_are_those_that_are_drawn(tmp_path: Path) -> None:
    main(tmp_path)
    for path in tmp_path.iterdir():
        kept = IMAGES / path.name
        if path.suffix == ".png":  # another version of zlib packs the same pixels otherwise
            assert np.array_equal(Image.open(path), Image.open(kept))
        else:
            assert path.read_bytes() == kept.read_bytes()
    assert len(list(tmp_path.iterdir())) == 8


@pytest.mark.slow
def test_a_short_run_makes_the_files_of_the_bundled_model_and_goes_on(tmp_path: Path) -> None:
    making.main(tmp_path, seed=3, steps=1, tests=1)
    making.main(tmp_path, seed=3, steps=2, tests=1)
    log = (tmp_path / making.LOG).read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == [1, 2]
    beside = {making.LOG, making.STATE}
    assert {path.name for path in tmp_path.iterdir()} - beside == {
        p.name for p in BUNDLED.iterdir()
    }
    for name in ("config.json", "processor_config.json", "tokenizer.json", "chat_template.jinja"):
        assert without_version(tmp_path / name) == without_version(BUNDLED / name)
    made, bundled = (json.loads((f / "card.json").read_text()) for f in (tmp_path, BUNDLED))
    assert [made[key] for key in ("description", "heads")] == [
        bundled[key] for key in ("description", "heads")
    ]
    recipe = json.loads(json.dumps(asdict(making.ShapesRecipe())))
    assert {key: bundled["training"][key] for key in recipe} == recipe
