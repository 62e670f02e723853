"""`attnviz ablate --image` measures the words that follow, and not the marks of an image."""

from math import log

import pytest

import attnviz
from tests.conftest import Run

PICTURE = "docs/images/shapes-1.png"
TEXT = "what colour is the circle?"
WORDS = ["what", "colour", "is", "the", "circle", "?"]


def test_the_tokens_behind_the_image_are_measured() -> None:
    each = attnviz.predict(TEXT, "shapes", image=PICTURE, each=True).record.each
    followed = [tokens.followed for tokens in each if tokens.followed]
    assert [candidate.exact for candidate in followed] == WORDS
    found = attnviz.ablate(TEXT, "shapes", image=PICTURE, heads="L0H0").record
    mean = sum(log(candidate.probability) for candidate in followed) / 6
    assert found.baseline == pytest.approx(mean, abs=1e-4)


def test_rows_of_tokens_begin_behind_the_image() -> None:
    found = attnviz.ablate(TEXT, "shapes", image=PICTURE, heads="L0H0", rows="token")
    rows = found.rows
    assert [(row["position"], row["token"]) for row in rows] == [*enumerate(WORDS, 65)]


def test_an_image_at_the_end_is_followed_by_nothing(run: Run) -> None:
    ended = run("ablate", "what<image>", "--image", PICTURE, "-m", "shapes")
    assert "nothing follows the image; give a longer text" in ended.err
