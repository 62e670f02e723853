"""Images as pixels of the terminal: what kitty and sixel terminals are sent, decoded again."""

import io
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from rich.style import Style
from rich.text import Text

import attnviz
from attnviz.commands.show.outputs import Show
from attnviz.commands.show.run import show_capture
from attnviz.console import Display, Graphics
from attnviz.draw.overlay import CONTRAST, GROUND, LEAST_ALPHA
from attnviz.draw.picture.overlay import drawn_as
from attnviz.draw.terminal.image import PixelSequence, kitty, render, sixel
from attnviz.records.apply import whole_exhibit
from attnviz.records.exhibit import Exhibit, Filters, Look
from tests.conftest import Run

GREY = 120
KITTY = re.compile(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\")
SIXEL = re.compile(r'\x1bP0;1q"1;1;(\d+);(\d+)([^\x1b]*)\x1b\\')


def captured(width: int, height: int, grey: int = GREY) -> attnviz.AttentionCapture:
    """A grey image of 2 × 3 patches; `red` attends to the last, and half as much to the first."""
    weights = np.full((7, 7), 1 / 7)
    weights[-1] = [0.3, 0, 0, 0, 0, 0.6, 0.1]
    image = np.full((height, width, 3), grey, np.uint8)
    tokens = [*["<image>"] * 6, "red"]
    return attnviz.from_attention(weights, tokens, image=image, grid=(2, 3), causal=False)


def exhibit_of(width: int, height: int) -> Exhibit:
    return whole_exhibit(captured(width, height).record)


def shown(exhibit: Exhibit, graphics: Graphics, width: int = 80) -> str:
    """The sequence of the panel of `red`."""
    parts = render(exhibit, Display(width=width, color=True, graphics=graphics, cell=9))
    return [part.sequence for part in parts if isinstance(part, PixelSequence)][-1]


def decoded(sequence: str) -> np.ndarray:
    """(height, width, 3) as a terminal draws it."""
    if found := SIXEL.fullmatch(sequence):
        return decoded_sixel(int(found[1]), int(found[2]), found[3])
    data = b"".join(b64decode(piece) for _, piece in KITTY.findall(sequence))
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    return np.asarray(image)


def decoded_sixel(width: int, height: int, body: str) -> np.ndarray:
    pixels = np.full((height + 6, width, 3), 255, np.uint8)
    palette: dict[str, list[float]] = {}
    x = y = 0
    color, drawn = "", np.zeros((height + 6, width), int)
    for chosen, rgb, repeat, letter in re.findall(r"#(\d+)((?:;\d+)*)|(?:!(\d+))?(.)", body):
        count = int(repeat or 1)
        if rgb:
            palette[chosen] = [int(share) * 2.55 for share in rgb.split(";")[2:]]
        elif chosen:
            color = chosen
        elif letter == "$":
            x = 0
        elif letter == "-":
            x, y = 0, y + 6
        else:
            for line in range(6):
                if (ord(letter) - 63) >> line & 1:
                    pixels[y + line, x : x + count] = palette[color]
                    drawn[y + line, x : x + count] += 1
            x += count
    assert (drawn[:height] == 1).all()  # each pixel once, and nothing below the image
    assert not drawn[height:].any()
    return pixels[:height]


@pytest.mark.parametrize("graphics", ["kitty", "sixel"])
def test_the_strongest_weight_is_brightest_where_its_patch_is(graphics: Graphics) -> None:
    pixels = decoded(shown(exhibit_of(60, 40), graphics)).astype(int)
    assert pixels.shape == (336, 504, 3)  # 56 cells of 9 pixels, in the image's proportions
    patches = pixels.reshape(2, 168, 3, 168, 3)
    spread = np.ptp(patches, axis=(1, 3))
    assert spread.max() == 0  # a patch is one colour, from edge to edge
    light = patches[:, 0, :, 0].sum(axis=-1)
    assert np.unravel_index(light.argmax(), light.shape) == (1, 2)
    assert light[0, 0] > light[0, 1] == light[1, 0]
    weak = patches[0, 0, 1, 0]  # the image's own grey, faded, a fifth of it covered
    faded = GROUND + CONTRAST * (GREY - GROUND)
    assert np.abs(weak - (1 - LEAST_ALPHA) * faded).max() < 3


def test_of_256_colours_those_of_a_theme_stay_out() -> None:
    black = captured(60, 40, grey=0)  # a theme has a black of its own
    parts = render(whole_exhibit(black.record), Display(width=40, color=True, fixed=True))
    spans = [span.style for part in parts if isinstance(part, Text) for span in part.spans]
    styles = [style for style in spans if isinstance(style, Style) and style.bgcolor]
    colors = [color for style in styles for color in (style.color, style.bgcolor)]
    assert len(colors) > 100
    assert min(color.number for color in colors) >= 16


def test_a_picture_comes_back_pixel_for_pixel() -> None:
    """To sixel's hundredths of each colour, while it has no more colours than the palette."""
    draw = np.random.default_rng(0)
    picture = draw.integers(0, 255, (7, 3), np.uint8)[draw.integers(0, 7, (45, 50))]
    assert (decoded(kitty(picture, "c=5").sequence) == picture).all()
    assert np.abs(decoded(sixel(picture).sequence).astype(int) - picture).max() <= 2
    many = draw.integers(0, 255, (45, 50, 3), np.uint8)
    assert np.abs(decoded(sixel(many).sequence).astype(int) - many).mean() < 30


def test_kitty_gets_a_long_picture_in_pieces() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (60, 70, 3), np.uint8)
    pieces = KITTY.findall(kitty(noise, "c=5").sequence)
    assert len(pieces) > 3
    assert all(len(piece) == 4096 for _, piece in pieces[:-1])
    assert [keys for keys, _ in pieces[1:]] == [*["m=1"] * (len(pieces) - 2), "m=0"]
    assert pieces[0][0] == "a=T,f=100,c=5,q=2,m=1"
    (alone,) = KITTY.findall(kitty(noise[:2, :2], "c=5").sequence)
    assert alone[0].endswith("q=2,m=0")


@pytest.mark.parametrize(
    ("size", "width", "keys", "pixels"),
    [
        ((60, 40), 80, "c=56", (504, 336)),
        ((60, 40), 40, "c=40", (360, 240)),
        ((4000, 4000), 80, "c=56", (504, 504)),
        ((6, 900), 80, "r=28", (3, 504)),  # one cell across would be 150 lines
        ((900, 6), 80, "c=56", (504, 3)),
    ],
)
def test_pixels_are_as_large_as_half_blocks_and_in_proportion(
    size: tuple[int, int], width: int, keys: str, pixels: tuple[int, int]
) -> None:
    sequence = shown(exhibit_of(*size), "kitty", width)
    assert f",{keys}," in sequence
    assert decoded(sequence).shape[1::-1] == pixels
    assert decoded(shown(exhibit_of(*size), "sixel", width)).shape[1::-1] == pixels


def test_rich_passes_the_sequence_on_and_ends_the_line() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=40)
    console.print(picture := kitty(np.zeros((90, 90, 3), np.uint8), "c=5"))
    assert stream.getvalue() == picture.sequence + "\n"


KITTY_TERM = {"TERM": "xterm-kitty"}


@pytest.mark.parametrize(
    ("variables", "terminal", "more", "starts"),
    [
        (KITTY_TERM, True, (), "\x1b_G"),
        ({"TERM": "foot"}, True, (), "\x1bP0;1q"),
        ({"TERM": "xterm-256color"}, True, (), "▀"),
        ({**KITTY_TERM, "TMUX": "/run/tmux,1,0"}, True, (), "▀"),
        (KITTY_TERM, False, ("--color", "always"), "▀"),  # into less, or a file
        (KITTY_TERM, False, (), "█"),
        (KITTY_TERM, True, ("--no-color",), "█"),
        ({**KITTY_TERM, "NO_COLOR": "1"}, True, (), "█"),
    ],
)
def test_pixels_go_to_terminals_with_colour_that_show_them(
    run: Run,
    tmp_path: Path,
    variables: dict[str, str],
    terminal: bool,
    more: tuple[str, ...],
    starts: str,
) -> None:
    captured(60, 40).save(tmp_path / "c.npz")
    asked = ("show", str(tmp_path / "c.npz"), "--view", "image", "--query", "red", *more)
    ended = run(*asked, terminal=terminal, variables=variables)
    assert ended.status == 0, ended.err
    picture = ended.out.rpartition("on the image")[2]
    kinds = {"\x1b_G", "\x1bP0;1q", "▀", "█"} - ({"█"} if starts != "█" else set())
    assert [kind for kind in kinds if kind in picture] == [starts]
    if terminal:
        run(*asked, "-o", str(tmp_path / "a.txt"), variables=variables, terminal=True)
        assert "\x1b" not in (tmp_path / "a.txt").read_text()


def tiled() -> Exhibit:
    """Three times as wide as high, and as if it was read in an overview and a tile."""
    capture = captured(600, 200).record
    (image,) = capture.images
    views = (*image.views, replace(image.views[0], name="tile"))
    return whole_exhibit(replace(capture, images=(replace(image, views=views),)))


def test_the_legend_says_what_weights_of_several_views_are() -> None:
    *_, legend = render(tiled(), Display(width=100, color=False))
    said = "weight per area, views added (1: all on one of the finest tokens) from 0 to 0.6"
    assert str(legend) == f"·▒▓██ {said}"


def test_the_label_of_the_colour_bar_is_as_long_as_the_bar_at_most() -> None:
    queries = tuple(range(4, 7))
    figure = drawn_as(replace(tiled(), queries=queries), Look()).figure
    figure.canvas.draw()
    (bar,) = (axes for axes in figure.axes if "per area" in axes.get_ylabel())
    label, room = bar.yaxis.label.get_window_extent(), bar.get_window_extent()
    assert room.y0 <= label.y0 < label.y1 <= room.y1
    assert label.x1 <= figure.bbox.x1


@pytest.mark.parametrize(("queries", "times"), [(("red",), 1), (("red", "@r1c2"), 3)])
def test_the_share_on_the_image_is_said_once_of_one_panel(
    queries: tuple[str, ...], times: int
) -> None:
    exhibit = show_capture(captured(60, 40).record, Show(filters=Filters(queries=queries)))
    parts = render(exhibit, Display(width=200))
    assert sum("on the image" in str(part) for part in parts) == times


def test_the_colour_bar_has_the_colours_that_lie_on_the_image() -> None:
    from matplotlib.collections import QuadMesh

    figure = drawn_as(exhibit_of(60, 40), Look()).figure
    (bar,) = (part for axes in figure.axes for part in axes.findobj(QuadMesh))
    painted = [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images][-1]
    for at, weight in {(30, 50): 0.6, (5, 5): 0.3, (5, 30): 0.0}.items():
        expected = np.multiply(bar.to_rgba(weight)[:3], 255)
        assert painted[at][:3] == pytest.approx(expected, abs=3)
