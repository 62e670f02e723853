"""Light and dark mean one thing: the larger a value, the farther its colour is from the ground."""

import numpy as np
import pytest
from rich.color import Color

from attnviz.console import Display, has_light_ground
from attnviz.draw.labels import (
    BLUES,
    BLUES_ON_DARK,
    SIGNED,
    SIGNED_ON_DARK,
    VIRIDIS,
    between,
    signed_color,
)
from attnviz.draw.picture.paint import Scale
from attnviz.draw.terminal.cells import bar_style, cell_style, signed_style
from tests.conftest import Run

BLACK, WHITE = (0.0, 0.0, 0.0), (255.0, 255.0, 255.0)
DARK, LIGHT = Display(color=True), Display(color=True, light=True)
STEPS = np.linspace(0, 1, 11)


def linear(channel: float) -> float:
    """A channel of sRGB as light (IEC 61966-2-1)."""
    share = channel / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def contrast(color: tuple[float, ...], ground: tuple[float, ...]) -> float:
    """The contrast of WCAG 2, from 1 to 21."""
    parts = 0.2126, 0.7152, 0.0722
    lights = [
        sum(part * linear(channel) for part, channel in zip(parts, each, strict=True)) + 0.05
        for each in (color, ground)
    ]
    return max(lights) / min(lights)


def rgb(color: Color | None) -> tuple[float, ...]:
    assert color is not None
    return tuple(color.get_truecolor())


PAPER = Scale("Blues", "linear", 0.0, 1.0, "weight").paint(STEPS[None].astype(np.float32))[0, :, :3]
RAMPS = {
    "terminal": ([rgb(cell_style(step, DARK).bgcolor) for step in STEPS], BLACK),
    "light terminal": ([rgb(cell_style(step, LIGHT).bgcolor) for step in STEPS], WHITE),
    "bars": ([rgb(bar_style(step, DARK).color) for step in STEPS], BLACK),
    "bars on a light terminal": ([rgb(bar_style(step, LIGHT).color) for step in STEPS], WHITE),
    "picture": ([tuple(map(float, color)) for color in PAPER], WHITE),
    "page": (BLUES, WHITE),
    "dark page": (BLUES_ON_DARK, (22, 24, 28)),
    "explore": (VIRIDIS, BLACK),
    **{
        f"{sign:+} {name}": ([signed_color(sign * step, of) for step in STEPS], ground)
        for sign in (1, -1)
        for name, of, ground in (("light", SIGNED, WHITE), ("dark", SIGNED_ON_DARK, BLACK))
    },
}


@pytest.mark.parametrize("name", RAMPS)
def test_colours_go_away_from_the_ground_as_values_grow(name: str) -> None:
    colors, ground = RAMPS[name]
    contrasts = [contrast(color, ground) for color in colors]
    assert contrasts == sorted(contrasts)
    assert contrasts[-1] >= 5.5
    assert contrasts[0] < (3 if "bars" in name else 1.5)


@pytest.mark.parametrize("display", [DARK, LIGHT], ids=["dark", "light"])
def test_letters_stand_out_on_every_cell(display: Display) -> None:
    for share in np.linspace(-1, 1, 41):
        for style in (cell_style(abs(share), display), signed_style(share, display)):
            assert contrast(rgb(style.color), rgb(style.bgcolor)) >= 4


def test_sixteen_colours_turn_round_with_the_ground() -> None:
    steps = (0.1, 0.3, 0.5, 0.7, 0.9)
    ramps = {
        light: [cell_style(step, Display(color=True, sixteen=True, light=light)) for step in steps]
        for light in (False, True)
    }
    assert ramps[True] == ramps[False][::-1]


@pytest.mark.parametrize(
    ("said", "light"),
    [
        ("0;15", True),
        ("0;default;15", True),
        ("0;7", True),
        ("15;0", False),
        ("7;8", False),
        ("12;4", False),
        ("15;default", False),
        ("", False),
        ("0;", False),
        ("15", True),
    ],
)
def test_a_terminal_says_which_ground_it_has(said: str, light: bool) -> None:
    assert has_light_ground({"COLORFGBG": said}) is light


def test_the_ground_is_asked_of_the_environment_and_dark_without_an_answer(run: Run) -> None:
    asked = ("show", "a cat", "--view", "heatmap", "--color", "always")
    colors = {"COLORTERM": "truecolor"}
    plain, dark, light = (
        run(*asked, variables={**colors, **more}).out
        for more in ({}, {"COLORFGBG": "15;0"}, {"COLORFGBG": "0;15"})
    )
    assert plain == dark
    strongest = "48;2;{};{};{}m"
    assert strongest.format(*VIRIDIS[-1]) in dark
    assert strongest.format(*BLUES[-1]) in light
    assert strongest.format(*VIRIDIS[-1]) not in light


def test_colours_between_others_pass_through_them() -> None:
    assert list(map(tuple, between(BLUES, 17)[::2])) == list(BLUES)
