"""`attnviz predict --image`: what the last position attends to names an image as one."""

import pytest

import attnviz
from tests.conftest import Run

PICTURE = "docs/images/shapes-1.png"
TEXT = "what colour is the circle?"


def test_the_links_to_an_image_are_one(run: Run) -> None:
    found = attnviz.predict(TEXT, "shapes", image=PICTURE).record
    captured = attnviz.capture(TEXT, "shapes", image=PICTURE)
    for link in (each for each in found.evidence if each.key == 1):
        row = captured.pattern(link.head.layer, link.head.head)[-1]
        assert link.weight == pytest.approx(row[1:65].sum(), abs=1e-5)
    assert {each.key for each in found.evidence} <= {1, *range(65, 71)}
    shown = run("predict", TEXT, "--image", PICTURE, "-m", "shapes").out
    assert "L1  image 0.99 (H0), image 0.99 (H3)" in shown
    assert "@r" not in shown


def test_what_is_attended_to_leaves_the_first_token_out() -> None:
    text = "the old dog chased a cat"
    found = attnviz.predict(text).record.evidence
    first = attnviz.capture(text)
    rows = [first.pattern(layer, head)[-1] for layer in range(4) for head in range(4)]
    assert max(row[0] for row in rows) > 0.5
    assert all(link.key for link in found)


def test_several_images_are_told_apart(run: Run) -> None:
    both = ("--image", PICTURE, "--image", PICTURE)
    shown = run("predict", "is <image> <image> a circle", *both, "-m", "shapes").out
    assert '"image 2"' in shown
