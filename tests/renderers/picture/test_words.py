"""The words on a picture: the head as the terminal names it, and what was translated."""

from dataclasses import replace

from attnviz.data.card import NamedHead
from attnviz.data.exhibit import Choice
from attnviz.data.head import Head
from attnviz.renderers.picture.words import PictureOptions, words_for
from tests.factories import make_capture, make_exhibit

GUILTY = NamedHead("mystery", Head(0, 0), "the last “was” attends to the guilty name")
AGAIN = NamedHead(
    "induction", Head(0, 0), "a repeated token attends to what followed its earlier occurrence"
)


def test_a_head_that_was_picked_for_one_behaviour_is_called_by_that_one() -> None:
    capture = make_capture("a b", named_heads=(GUILTY, AGAIN))
    exhibit = make_exhibit(capture, heads=[Head(0, 0)])
    both = words_for(exhibit, PictureOptions()).title
    assert both == f"L0H0: {GUILTY.title}; {AGAIN.title}"
    picked = replace(exhibit, choice=Choice((Head(0, 0),), "fits best", GUILTY))
    assert words_for(picked, PictureOptions()).title == f"L0H0: {GUILTY.title}"


def test_a_translation_is_written_out_with_what_its_rows_are() -> None:
    capture = replace(make_capture("a b"), target="un b", kind="cross")
    exhibit = make_exhibit(capture, heads=[Head(0, 0)])
    said = words_for(exhibit, PictureOptions()).subtitle
    assert "read: “a b”, written: “un b”" in said
    assert "each row is the word that a position predicts" in said
    turned = words_for(exhibit, PictureOptions(orient="key-rows")).subtitle
    assert "each column is the word that a position predicts" in turned
