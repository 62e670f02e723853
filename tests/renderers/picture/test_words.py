"""The words on a picture: the head as the terminal names it, and what was translated."""

from dataclasses import replace

from attnviz.data.card import NamedHead
from attnviz.data.exhibit import Choice
from attnviz.data.finding import Finding, FoundLink
from attnviz.data.head import Head
from attnviz.renderers.picture.words import PictureOptions, words_for
from tests.factories import make_capture, make_exhibit

GUILTY = NamedHead("mystery", Head(0, 0), "the last “was” attends to the guilty name")
AGAIN = NamedHead(
    "induction", Head(0, 0), "a repeated token attends to what followed its earlier occurrence"
)


def test_a_head_that_was_picked_for_one_behaviour_names_that_one_alone() -> None:
    capture = make_capture("a b", named_heads=(GUILTY, AGAIN))
    exhibit = make_exhibit(capture, heads=[Head(0, 0)])
    both = words_for(exhibit, PictureOptions()).title
    assert both == f"L0H0 · known for: {GUILTY.title}; {AGAIN.title}"
    picked = replace(exhibit, choice=Choice((Head(0, 0),), "acts", AGAIN))
    found = replace(picked, finding=Finding((FoundLink(1, 0, 0.75),), "induction"))
    title = f"L0H0: b → a .75 · known for: {AGAIN.title}"
    assert words_for(found, PictureOptions()).title == title


def test_a_picture_carries_the_model_and_the_text() -> None:
    exhibit = make_exhibit(make_capture("a b\nc"), heads=[Head(0, 0)])
    assert words_for(exhibit, PictureOptions()).subtitle.endswith("without BOS: “a b c”")
    assert words_for(exhibit, PictureOptions()).subtitle.startswith("tiny, ")


def test_a_translation_is_written_out_with_what_its_rows_are() -> None:
    capture = replace(make_capture("a b"), target="un b", kind="cross")
    exhibit = make_exhibit(capture, heads=[Head(0, 0)])
    said = words_for(exhibit, PictureOptions()).subtitle
    assert "read: “a b”, written: “un b”" in said
    assert "each row is the word that a position predicts" in said
    turned = words_for(exhibit, PictureOptions(orient="key-rows")).subtitle
    assert "each column is the word that a position predicts" in turned
