"""`attnviz explain --image`: a head's calculation over a text with an image, part by part."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import ModelError, UsageError
from tests.conftest import Run
from tests.vision.zoo import species

PICTURE = "docs/images/shapes-1.png"
ASKED = ("what is left of the circle?", "-m", "shapes", "--image", PICTURE, "--head", "L1H0")


def test_every_part_of_the_image_is_a_key_of_the_calculation(run: Run) -> None:
    found = json.loads(run("explain", *ASKED, "--query", "circle", "-f", "json").out)
    captured = attnviz.capture(ASKED[0], "shapes", image=PICTURE, heads="L1H0")
    assert found["tokens"][3]["label"] == "@r0c2"
    assert np.abs(np.array(found["arrays"]["pattern"]) - captured.pattern(1, 0)).max() < 1e-6
    assert "0.43·v(@r6c4)" in run("explain", *ASKED, "--query", "circle", "--only", "4").out


def test_the_list_of_tokens_names_an_image_as_one(run: Run) -> None:
    asked = ("-m", "shapes", "--image", PICTURE, "--head", "L1H0", "--only", "1")
    assert (
        "tokens: 0:<s> 1-64:image 65:what 66:is 67:left" in run("explain", *ASKED, *asked[4:]).out
    )
    both = run("explain", "is <image> <image> a circle", *asked, "--image", PICTURE).out
    assert "1:is 2-65:image 1 66-129:image 2 130:a 131:circle" in both


def test_a_page_of_it_is_refused(run: Run, tmp_path: Path) -> None:
    ended = run("explain", *ASKED, "-o", str(tmp_path / "page.html"))
    wrong = (
        "is not for a page, which runs the model only on text; write txt or json, or leave it out."
    )
    assert ended.err == f"attnviz: --image {wrong}\n"
    made = attnviz.explain(ASKED[0], "shapes", image=PICTURE)
    with pytest.raises(UsageError, match="image is not for a page"):
        made.save(tmp_path / "page.html")


def test_a_model_whose_parts_are_not_known_refuses_with_images_too(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="changes its values behind their projection"):
        attnviz.explain("the circle", species("gemma4").make(tmp_path), image=PICTURE)
