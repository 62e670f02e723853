"""Pictures: what is drawn where, what is written, and that the bytes are always the same."""

import hashlib
import io
import logging
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from numpy.typing import NDArray

from attnviz.draw.labels import BLUES, MARK, SEQUENTIAL
from attnviz.draw.picture import canvas
from attnviz.draw.picture.canvas import LARGEST_SIDE, Drawn, PictureFormat, drawing, figure_bytes
from attnviz.draw.picture.heatmap import draw
from attnviz.draw.picture.paint import PictureOptions
from attnviz.errors import UsageError
from attnviz.records.exhibit import Exhibit, HeadMap
from attnviz.records.heads import Head, NamedHead
from attnviz.records.transforms import NormBased, Scores
from tests.factories import awkward_pieces as pieces
from tests.factories import make_capture, make_exhibit

STRONGEST, ZERO = [8, 48, 107, 255], [247, 251, 255, 255]  # the ends of Blues
PATTERN = np.array([[1, 0, 0], [0, 1, 0], [0.3, 0.1, 0.6]], np.float32)


def three(**options: object) -> Exhibit:
    capture = make_capture("cat saw dog", patterns={Head(0, 0): PATTERN})
    return make_exhibit(capture, **options)  # type: ignore[arg-type]


def long_text(tokens: int, heads: int = 1) -> Exhibit:
    words = " ".join(f"word{n % 7}" for n in range(tokens))
    capture = make_capture(words, heads_per_layer=(heads,))
    return make_exhibit(capture, heads=capture.heads)


def model(layers: int, heads: int, text: str = "a fluffy blue creature") -> Exhibit:
    capture = make_capture(text, heads_per_layer=(heads,) * layers)
    return make_exhibit(capture, heads=capture.heads)


def main_axes(drawn: Drawn) -> Axes:
    return drawn.figure.axes[0]


def cells(drawn: Drawn) -> NDArray[np.uint8]:
    """The colours of the one image, (rows, columns, 4)."""
    (image,) = main_axes(drawn).images
    return np.asarray(image.get_array())


def written(drawn: Drawn) -> list[str]:
    """Every text on the picture."""
    found = []
    for axes in drawn.figure.axes:
        texts = [*axes.texts, axes.xaxis.label, axes.yaxis.label]
        texts += [*axes.get_xticklabels(), *axes.get_yticklabels()]
        found += [text.get_text() for text in texts]
    return found


def ticks(drawn: Drawn) -> tuple[list[str], list[str]]:
    axes = main_axes(drawn)
    return (
        [tick.get_text() for tick in axes.get_yticklabels()],
        [tick.get_text() for tick in axes.get_xticklabels()],
    )


def test_queries_are_rows_and_keys_are_columns() -> None:
    image = cells(draw(three()))
    assert image[0, 0].tolist() == STRONGEST
    assert image[1, 0].tolist() == ZERO  # `saw` does not attend to `cat`
    assert image[2, 0].tolist() not in (STRONGEST, ZERO)


def test_key_rows_turn_the_picture_and_say_what_sums_to_1() -> None:
    straight = draw(three())
    turned = draw(three(), PictureOptions(orient="key-rows"))
    assert (cells(turned) == cells(straight).transpose(1, 0, 2)).all()
    assert "query (each column sums to 1)" in written(turned)
    assert "query (each row sums to 1)" not in written(turned)


def test_both_sides_are_labelled_with_tokens_as_far_as_they_are_shown() -> None:
    rows, columns = ticks(draw(three(queries=[1, 2], keys=[0, 2])))
    assert rows == ["saw", "dog"]
    assert columns == ["cat", "dog"]


def test_masked_cells_are_told_apart_from_zero() -> None:
    image = cells(draw(three()))
    assert image[0, 1, 3] == 0  # transparent: the hatched ground shows
    assert image[1, 0, 3] == 255
    assert "masked" in written(draw(three()))


def test_the_table_of_pages_is_the_map_of_pictures() -> None:
    from matplotlib import colormaps

    of_page = np.array(
        [np.interp(np.linspace(0, 8, 256), range(9), c) for c in zip(*BLUES, strict=True)]
    )
    of_picture = colormaps[SEQUENTIAL](np.linspace(0, 1, 256), bytes=True)[:, :3]
    assert np.abs(of_page.T - of_picture).max() <= 1


@pytest.mark.parametrize("cmap", ["Blues", "viridis", "Greys", "magma"])
def test_masked_cells_differ_from_zero_in_the_finished_picture(cmap: str) -> None:
    drawn = draw(three(), PictureOptions(cmap=cmap))
    pixels = imread(io.BytesIO(figure_bytes(drawn.figure, "png")))
    box = main_axes(drawn).get_window_extent()
    side, top = box.width / 3, pixels.shape[0] - box.y1

    def corner(row: int, column: int) -> NDArray[np.float32]:
        y, x = int(top + row * side) + 5, int(box.x0 + column * side) + 5
        return np.asarray(pixels[y : y + 12, x : x + 12, :3])

    assert np.ptp(corner(1, 0), axis=(0, 1)).max() == 0  # zero: one plain colour
    assert np.ptp(corner(0, 2), axis=(0, 1)).max() > 0  # masked: hatched


def test_without_a_mask_nothing_is_called_masked() -> None:
    drawn = draw(make_exhibit(make_capture(causal=False)))
    assert "masked" not in written(drawn)
    assert (cells(drawn)[..., 3] == 255).all()


def test_filtered_links_are_left_empty_and_said_to_be() -> None:
    drawn = draw(three(top=1))
    assert cells(drawn)[2, 0, 3] == 0
    assert "masked or not among the 1 strongest" in written(drawn)


def test_rows_that_are_not_whole_are_not_said_to_sum_to_1() -> None:
    assert "query (each row sums to 1)" in written(draw(three()))
    assert "query" in written(draw(three(keys=[0, 1])))


def test_numbers_are_written_where_they_fit() -> None:
    numbers = [text for text in written(draw(three())) if text.startswith(("0.", "1."))]
    assert {"0.30", "0.10", "0.60"} <= set(numbers)
    many = written(draw(long_text(60)))
    assert not [text for text in many if text.count(".") == 1 and len(text) == 4]


def test_numbers_that_would_round_to_nothing_are_left_out_and_said_to_be() -> None:
    small = np.array([[1, 0, 0], [0.006, 0.994, 0], [0.1, 0.004, 0.896]], np.float32)
    capture = make_capture("a b c", patterns={Head(0, 0): small})
    for orient in ("query-rows", "key-rows"):
        texts = written(draw(make_exhibit(capture), PictureOptions(orient=orient)))  # type: ignore[arg-type]
        numbers = sorted(text for text in texts if text.startswith(("0.", "1.")) and len(text) == 4)
        assert numbers == ["0.01", "0.10", "0.90", "0.99", "1.00"]
        assert "no number: under 0.005" in texts
    whole = np.array([[1, 0], [0.5, 0.5]], np.float32)
    some = make_exhibit(make_capture("a b", patterns={Head(0, 0): whole}))
    assert "no number: under 0.005" not in written(draw(some))


def test_scores_near_zero_are_written() -> None:
    scores = np.array([[-3, 0, 0], [0.001, 2, 0], [0.1, -0.2, 1]], np.float32)
    capture = make_capture("a b c", patterns={Head(0, 0): scores}, transforms=(Scores(),))
    texts = written(draw(make_exhibit(capture)))
    assert "0.0" in texts
    assert "no number: under 0.005" not in texts


def test_the_bar_of_weights_times_norms_says_so() -> None:
    weighted = make_exhibit(make_capture(transforms=(NormBased(),)))

    def bars(exhibit: Exhibit) -> list[str]:
        return [axes.get_ylabel() for axes in draw(exhibit).figure.axes[1:]]

    assert "weight × norm" in bars(weighted)
    assert "weight" in bars(three())


def test_each_pane_has_an_outline_as_its_weakest_cells_are_white() -> None:
    for drawn, panes in ((draw(three()), 1), (draw(model(2, 3)), 6)):
        boxes = [found for found in main_axes(drawn).collections if len(found.get_paths()) == panes]
        assert len(boxes) == 1
        (corner, *_), *_ = [path.vertices for path in boxes[0].get_paths()]
        assert tuple(corner) == (0, 0)


def test_cells_have_sharp_edges() -> None:
    drawn = draw(make_exhibit(make_capture("a b c d e f g", causal=False)))
    for drawn_over in [*main_axes(drawn).texts, *main_axes(drawn).collections]:
        drawn_over.set_visible(False)
    pixels = imread(io.BytesIO(figure_bytes(drawn.figure, "png")))
    box = main_axes(drawn).get_window_extent()
    inside = pixels[
        round(pixels.shape[0] - box.y1) : round(pixels.shape[0] - box.y0),
        round(box.x0) : round(box.x1),
    ]
    colors = {tuple(c) for c in (inside.reshape(-1, 4) * 255).round().astype(int).tolist()}
    assert colors == {tuple(c) for c in cells(drawn).reshape(-1, 4).tolist()}


def test_144_heads_are_one_image() -> None:
    drawn = draw(model(12, 12))
    assert sum(len(axes.images) for axes in drawn.figure.axes) == 1
    assert len(drawn.figure.axes) == 3  # the mosaic, the colour bar, the sample of the mask
    texts = written(drawn)
    assert all(f"L{n}" in texts and f"H{n}" in texts for n in range(12))


@pytest.mark.parametrize(
    ("heads", "tokens", "step"),
    [
        (4, 9, 1),
        (4, 16, 1),
        (4, 30, 1),  # panes grow for them
        (8, 9, 1),
        (8, 16, 1),
        (8, 30, 5),
        (16, 9, 2),
        (16, 16, 5),
        (4, 400, 0),  # cells of a pixel or less: none
    ],
)
def test_panes_at_the_left_and_below_carry_token_labels(heads: int, tokens: int, step: int) -> None:
    drawn = draw(model(2, heads, " ".join(f"w{n}" for n in range(tokens))))
    rows, columns = ticks(drawn)
    one = [f"w{n}" if step == 1 else f"{n} w{n}" for n in range(0, tokens, step)] if step else []
    assert (rows, columns) == (one * 2, one * heads)
    axes, canvas = main_axes(drawn), drawn.figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    assert all(label.get_fontsize() >= 6.5 for label in axes.get_yticklabels())
    boxes = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
    assert all(below.y1 <= above.y0 + 1 for above, below in pairwise(boxes))
    boxes = [label.get_window_extent(renderer) for label in axes.get_xticklabels()]
    upright = [box for box in boxes if box.height > box.width]
    assert all(left.x1 <= right.x0 + 1 for left, right in pairwise(upright))
    assert max(drawn.figure.get_size_inches()) <= 16


def test_a_mosaic_has_layers_down_and_heads_across() -> None:
    ones, zeros = np.eye(2, dtype=np.float32), np.full((2, 2), 0.5, np.float32)
    patterns = {Head(layer, head): zeros for layer in range(2) for head in range(3)}
    patterns[Head(1, 2)] = ones
    capture = make_capture("a b", heads_per_layer=(3, 3), patterns=patterns, causal=False)
    image = cells(draw(make_exhibit(capture, heads=capture.heads)))
    rows, columns = np.nonzero((image == STRONGEST).all(axis=-1))
    assert rows.min() > image.shape[0] / 2
    assert columns.min() > image.shape[1] * 0.6


def test_heads_of_a_mosaic_share_one_scale() -> None:
    weak = np.array([[0.5, 0], [0.25, 0.25]], np.float32)
    capture = make_capture("a b", heads_per_layer=(2,), patterns={Head(0, 1): weak})
    image = cells(draw(make_exhibit(capture, heads=capture.heads)))
    right = image[:, -2:].reshape(-1, 4).tolist()
    assert STRONGEST in image.reshape(-1, 4).tolist()
    assert STRONGEST not in right


def test_chosen_heads_leave_the_place_of_the_others_white() -> None:
    capture = make_capture("a b")
    image = cells(draw(make_exhibit(capture, heads=[Head(0, 0), Head(1, 1)])))
    assert (image[:2, -2:] == 255).all()


@pytest.mark.parametrize("tokens", [1, 5, 20, 60, 300, 1024])
@pytest.mark.parametrize("heads", [1, 3])
def test_labels_neither_overlap_nor_leave_the_picture(tokens: int, heads: int) -> None:
    drawn = draw(long_text(tokens, heads))
    canvas = drawn.figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    width, height = drawn.figure.get_size_inches() * drawn.figure.dpi
    for axes in drawn.figure.axes:
        box = axes.get_tightbbox(renderer)
        assert box is not None
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    labels = [t.get_window_extent(renderer) for t in main_axes(drawn).get_yticklabels()]
    assert all(below.y1 <= above.y0 + 1 for above, below in pairwise(labels))


def test_thinned_labels_carry_their_index() -> None:
    rows, _ = ticks(draw(long_text(300)))
    assert 20 <= len(rows) <= 150
    assert rows[1] == "5 word5"


def test_a_long_text_is_reduced_to_what_a_picture_can_show_and_says_so() -> None:
    exhibit = long_text(1024)
    weights = exhibit.maps[0].weights.copy()
    weights[900, 333] = 1.0
    drawn = draw(replace(exhibit, maps=(replace(exhibit.maps[0], weights=weights),)))
    image = cells(drawn)
    assert max(image.shape) <= 512
    assert image[450, 166].tolist() == STRONGEST  # the strong link is still there
    assert any("strongest of 2 × 2 weights" in text for text in written(drawn))
    assert max(drawn.figure.get_size_inches()) * 150 < 2500


FORMATS: list[PictureFormat] = ["png", "svg", "pdf"]
DRAW_IN_A_NEW_PROCESS = """
import hashlib, sys
from attnviz.draw.picture.canvas import figure_bytes
from attnviz.draw.picture.heatmap import draw
from tests.factories import make_capture, make_exhibit
capture = make_capture("a fluffy blue creature $x$ 楚")
figure = draw(make_exhibit(capture, heads=capture.heads)).figure
for format in ("png", "svg", "pdf"):
    print(hashlib.sha256(figure_bytes(figure, format)).hexdigest())
"""


def test_the_same_input_gives_the_same_bytes_in_another_process() -> None:
    capture = make_capture("a fluffy blue creature $x$ 楚")
    figure = draw(make_exhibit(capture, heads=capture.heads)).figure
    here = [hashlib.sha256(figure_bytes(figure, format)).hexdigest() for format in FORMATS]
    there = subprocess.run(
        [sys.executable, "-c", DRAW_IN_A_NEW_PROCESS], capture_output=True, text=True, check=True
    )
    assert there.stdout.split() == here
    assert there.stderr == ""


def test_what_the_user_set_in_matplotlib_changes_nothing_and_stays_set() -> None:
    plain_family, plain = mpl.rcParams["font.family"], figure_bytes(draw(three()).figure, "png")
    theirs = {"font.size": 30, "ytick.color": "red", "savefig.bbox": "tight"}
    with mpl.rc_context(theirs):  # type: ignore[arg-type]
        assert figure_bytes(draw(three()).figure, "png") == plain
        assert mpl.rcParams["ytick.color"] == "red"
        assert mpl.rcParams["font.family"] == plain_family


def test_warnings_of_the_libraries_stay_inside(
    logged: list[logging.LogRecord], capfd: pytest.CaptureFixture[str]
) -> None:
    with drawing():
        warnings.warn("Glyph 26970 missing from font", stacklevel=1)  # an error in these tests
        logging.getLogger("matplotlib.font_manager").warning("building the font cache")
        logging.getLogger("fontTools.subset").warning("FFTM NOT subset")
    assert logged == []
    assert capfd.readouterr() == ("", "")


def test_a_dollar_sign_is_no_mathematics() -> None:
    capture = make_capture(["$x^2$", " $", " $\\frac"])
    drawn = draw(make_exhibit(capture), PictureOptions(title="for $5 or $6"))
    svg = figure_bytes(drawn.figure, "svg").decode()
    assert svg.count(">$x^2$</text>") == svg.count(">$\\frac</text>") == 2  # on both sides
    assert ">for $5 or $6</text>" in svg


def test_text_is_escaped_in_svg_and_control_characters_everywhere() -> None:
    capture = make_capture(["<script>", "\x1b[31m", "\u202e", "\n"])
    drawn = draw(make_exhibit(capture), PictureOptions(title="<b>\x07"))
    svg = figure_bytes(drawn.figure, "svg").decode()
    assert "<script>" not in svg
    assert "&lt;script&gt;" in svg
    assert "\\x1b[31m" in svg
    assert "\x1b" not in svg
    assert ">&lt;b&gt;\\x07</text>" in svg
    assert ticks(drawn)[0][2:] == ["\\u202e", "\\n"]


def test_a_letter_that_no_font_has_becomes_its_code_point_and_a_note(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(canvas, "_other_fonts", lambda region: [])
    monkeypatch.setattr(canvas, "_add_new_fonts", int)
    canvas._lettering.cache_clear()
    drawn = draw(make_exhibit(make_capture("楚留 said")))
    assert ticks(drawn)[0] == ["U+695A U+7559", "said"]
    assert len(drawn.notes) == 1
    assert "U+695A, U+7559" in drawn.notes[0]
    for format in FORMATS:
        figure_bytes(drawn.figure, format)
    assert capfd.readouterr() == ("", "")


def test_a_letter_that_another_font_has_is_drawn_with_that_font() -> None:
    arrow = "\u2900"  # in STIX, which comes with matplotlib, and not in DejaVu Sans
    drawn = draw(make_exhibit(make_capture(f"{arrow} said")))
    assert drawn.notes == ()
    label = main_axes(drawn).get_yticklabels()[0]
    assert label.get_text() == arrow
    assert len(label.get_fontfamily()) > 1
    for format in FORMATS:
        figure_bytes(drawn.figure, format)


def test_an_svg_falls_back_to_the_fonts_of_its_viewer() -> None:
    svg = figure_bytes(draw(three()).figure, "svg").decode()
    styles = re.findall(r'<text style="([^"]*)"', svg)
    assert styles
    assert all("sans-serif" in style for style in styles)


def test_numbers_stay_behind_letters_that_are_read_from_right_to_left() -> None:
    rows, columns = ticks(draw(make_exhibit(make_capture("שלום said שלום"))))
    one = f"{MARK}שלום{MARK}"
    assert rows == columns == [f"{one}#1", "said", f"{one}#2"]


@pytest.mark.parametrize(
    ("heads", "title"),
    [
        ([Head(0, 0), Head(1, 1)], "L0H0 and L1H1, 2 attention heads"),
        ([Head(n, m) for n in range(2) for m in range(2)], "L0H0 to L1H1, 4 attention heads"),
    ],
)
def test_the_title_of_several_says_which(heads: list[Head], title: str) -> None:
    assert title in written(draw(make_exhibit(make_capture(), heads=heads)))


def test_the_title_of_several_averages_does_not_call_them_heads() -> None:
    one = make_exhibit(make_capture())
    maps = tuple(HeadMap(n, None, "mean", weights=one.maps[0].weights) for n in range(3))
    title = "L0 mean to L2 mean, 3 maps of attention"
    assert title in written(draw(replace(one, maps=maps)))


def test_what_sums_to_1_is_said_of_a_mosaic_only_if_all_of_it_does() -> None:
    half = np.eye(9, dtype=np.float32) / 2
    capture = make_capture("a " * 9, heads_per_layer=(2,), patterns={Head(0, 1): half})
    said = "query (each row sums to 1)"
    assert said in written(draw(make_exhibit(make_capture("a " * 9), heads=capture.heads)))
    assert said not in written(draw(make_exhibit(capture, heads=capture.heads)))


def two_names(tokens: int, heads: int = 4) -> Exhibit:
    named = (
        NamedHead("adjectives", Head(1, 1), "nouns attend to their adjectives"),
        NamedHead("previous token", Head(1, 1), "each token attends to the one before it"),
    )
    words = " ".join(f"w{n}" for n in range(tokens))
    capture = make_capture(words, heads_per_layer=(heads, heads), named_heads=named)
    return make_exhibit(capture, heads=capture.heads)


@pytest.mark.parametrize(
    ("tokens", "heads", "title"),
    [
        (9, 4, "L1H1 adjectives, previous token"),
        (3, 4, "L1H1 adjectives"),
        (1, 4, "L1H1"),
        (9, 12, "L1H1 adjectives"),
    ],
)
def test_a_pane_names_what_its_head_is_known_for_if_that_fits(
    tokens: int, heads: int, title: str
) -> None:
    drawn = draw(two_names(tokens, heads))
    found = [text for text in written(drawn) if text.split()[:1] == ["L1H1"]]
    assert found == [title]
    assert "L1H2" in written(drawn)


def test_a_given_title_leaves_the_caption_which_then_names_the_head() -> None:
    texts = written(draw(three(), PictureOptions(title="Mine")))
    assert "Mine" in texts
    said = " ".join(" ".join(texts).split())
    assert "L0H0 · tiny, 3 tokens without BOS: “cat saw dog”" in said
    two = make_exhibit(make_capture(), heads=[Head(0, 0), Head(1, 1)])
    said = " ".join(written(draw(two, PictureOptions(title="Mine"))))
    assert "L0H0 and L1H1, 2 attention heads · tiny" in said


def test_an_empty_title_leaves_nothing_above_the_picture() -> None:
    texts = written(draw(three(), PictureOptions(title="")))
    assert not [text for text in texts if "L0H0" in text or "tiny" in text]


def test_a_long_title_is_wrapped() -> None:
    texts = written(draw(three(), PictureOptions(title="word " * 40)))
    assert any(text.count("\n") >= 3 for text in texts)


def test_row_scale_gives_each_query_the_whole_range() -> None:
    image = cells(draw(three(), PictureOptions(color_scale="row")))
    assert image[2, 2].tolist() == STRONGEST
    assert image[1, 1].tolist() == STRONGEST
    turned = PictureOptions(color_scale="row", orient="key-rows")
    assert (cells(draw(three(), turned)) == image.transpose(1, 0, 2)).all()


def test_log_scale_tells_small_weights_apart() -> None:
    small = np.array([[1, 0, 0], [0.99, 0.01, 0], [0.989, 0.01, 0.001]], np.float32)
    capture = make_capture("a b c", patterns={Head(0, 0): small})
    linear, log = (
        cells(draw(make_exhibit(capture), PictureOptions(color_scale=kind)))[2].astype(int)
        for kind in ("linear", "log")
    )
    assert abs(linear[1] - linear[2]).sum() < 20
    assert abs(log[1] - log[2]).sum() > 100
    assert (cells(draw(three(), PictureOptions(color_scale="log")))[1, 0, 3]) == 255  # zero


def test_numbers_stay_the_weights_on_any_scale() -> None:
    for kind in ("linear", "log", "row"):
        assert "0.60" in written(draw(three(), PictureOptions(color_scale=kind)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"), [("virids", "the nearest is viridis"), ("zzz", "try Blues")]
)
def test_an_unknown_colour_map_is_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        draw(three(), PictureOptions(cmap=name))


@pytest.mark.parametrize("dpi", [-5, 0, 29, 2401, 10**9])
def test_a_resolution_that_makes_no_picture_is_refused(dpi: int) -> None:
    with pytest.raises(UsageError, match="dpi="):
        draw(three(), PictureOptions(dpi=dpi))


def test_a_picture_that_would_be_too_large_names_the_largest_resolution() -> None:
    with pytest.raises(UsageError, match=r"give (\d+) or less") as error:
        draw(long_text(60), PictureOptions(dpi=2000))
    most = int(error.value.hint.split()[1])
    drawn = draw(long_text(60), PictureOptions(dpi=most))
    assert max(drawn.figure.get_size_inches()) * most <= LARGEST_SIDE


def test_more_pixels_per_inch_make_a_larger_picture() -> None:
    small, large = (
        imread(io.BytesIO(figure_bytes(draw(three(), PictureOptions(dpi=dpi)).figure, "png")))
        for dpi in (72, 144)
    )
    assert large.shape[0] == pytest.approx(2 * small.shape[0], rel=0.05)


def test_reduced_heads_are_drawn_too() -> None:
    capture = make_capture("a b c")
    drawn = draw(make_exhibit(capture, heads=capture.heads, reduced="mean"))
    assert "mean" in written(drawn)


def test_importing_a_renderer_does_not_import_matplotlib() -> None:
    modules = "picture.heatmap", "terminal.table", "terminal.heatmap", "terminal.text"
    named = ", ".join(f"attnviz.draw.{module}" for module in modules)
    code = f"import sys, {named}; print('matplotlib' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


@given(words=pieces, format=st.sampled_from(FORMATS), title=st.text(max_size=20))
@settings(max_examples=12, deadline=None)
def test_any_text_can_be_drawn(words: list[str], format: PictureFormat, title: str) -> None:
    drawn = draw(make_exhibit(make_capture(words)), PictureOptions(title=title, dpi=40))
    content = figure_bytes(drawn.figure, format)
    if format == "svg":
        ElementTree.fromstring(content)
