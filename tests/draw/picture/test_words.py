"""The words on a picture: the head as the terminal names it, and what was translated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from attnviz.draw.picture.paint import PictureOptions, Scale, draw_bar, draw_color_bar, words_for
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Finding, FoundLink, Head, NamedHead
from attnviz.records.transforms import NormBased, Scores, Transform
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
    assert words_for(exhibit, PictureOptions()).subtitle.startswith(
        "tiny, 3 tokens without BOS: “a b c”"
    )


SINK = np.array([[1, 0, 0], [0.8, 0.2, 0], [0.6, 0.3, 0.1]], np.float32)
ELSEWHERE = np.array([[1, 0, 0], [0.2, 0.8, 0], [0.2, 0.8, 0]], np.float32)


def caption(
    pattern: FloatArray, *, bos: bool = True, transforms: tuple[Transform, ...] = (), **shown: Any
) -> str:
    """The line below the title of the picture of this pattern."""
    text = "b c" if bos else "a b c"
    capture = make_capture(text, bos=bos, patterns={Head(0, 0): pattern}, transforms=transforms)
    return words_for(make_exhibit(capture, heads=[Head(0, 0)], **shown), PictureOptions()).subtitle


def test_a_caption_says_how_much_of_the_weight_a_sink_has() -> None:
    # the first row cannot attend elsewhere, and is not counted
    assert caption(SINK).endswith("“b c”; 70% of the weight is on BOS")
    assert caption(SINK, bos=False).endswith("; 70% of the weight is on the first token, “a”")
    assert caption(SINK, queries=[2]).endswith("; 60% of the weight is on BOS")


def test_a_caption_says_nothing_of_other_columns_or_of_what_is_no_weight() -> None:
    assert "of the weight" not in caption(ELSEWHERE)
    assert "of the weight" not in caption(SINK, transforms=(NormBased(),))
    assert "of the weight" not in caption(SINK, transforms=(Scores(),))
    assert "of the weight" not in caption(SINK, keys=[1, 2])
    assert "of the weight" not in caption(SINK, queries=[0])


def test_a_translation_is_written_out_with_what_its_rows_are() -> None:
    capture = replace(make_capture("a b"), target="un b", kind="cross")
    exhibit = make_exhibit(capture, heads=[Head(0, 0)])
    said = words_for(exhibit, PictureOptions()).subtitle
    assert "read: “a b”, written: “un b”" in said
    assert "each row is the word that a position predicts" in said
    turned = words_for(exhibit, PictureOptions(orient="key-rows")).subtitle
    assert "each column is the word that a position predicts" in turned


def test_a_colour_bar_has_numbers_at_both_of_its_ends() -> None:
    figure = Figure()
    draw_color_bar(figure.add_axes((0, 0, 0.1, 1)), Scale("Blues", "linear", 0.0, 0.943, "weight"))
    written = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert (written[0], written[-1]) == ("0", "0.943")


@pytest.mark.parametrize("least", [0.0, -0.363])
def test_so_has_the_bar_of_a_sheet(least: float) -> None:
    figure = Figure()
    image = figure.add_subplot().imshow([[0.1]], vmin=least, vmax=0.363)
    draw_bar(figure.add_axes((0, 0, 0.1, 1)), image)
    written = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert (written[0], written[-1]) == (f"{least:g}", "0.363")
