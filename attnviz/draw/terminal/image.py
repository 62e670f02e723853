"""Attention over an image in the terminal: pixels, two in a cell, or shades without colour."""

import io
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isnan

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import ControlType, Segment
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import INFERNO, between, fenced, signed_color
from attnviz.draw.overlay import (
    Panel,
    density,
    mean_color,
    of_whole_image,
    panel_title,
    scale_name,
    shown_panels,
    veiled,
)
from attnviz.draw.terminal.around import heading, in_ascii
from attnviz.draw.terminal.cells import folded, shade_of
from attnviz.records.exhibit import Exhibit

WIDEST, HIGHEST = 56, 28
"""Cells across, and lines down, of a picture."""
BELOW, LEAST_BELOW = "-", 0.05
"""The mark without colour of values below 0, from this share of the largest."""
MOST_PIXELS = 1024
"""Pixels of a side, on terminals that show pixels."""
HEAT = np.array(between(INFERNO, 256))
SIGNS = np.array([signed_color(share) for share in np.linspace(-1, 1, 256)])


def render(exhibit: Exhibit, display: Display | None = None) -> list[RenderableType]:
    """Draw the image under the weights of each head and query, scaled by the strongest."""
    display, exhibit = display or Display(), of_whole_image(exhibit)
    panels, notes = shown_panels(exhibit, "terminal")
    most = max(panel.peak for panel in panels) or 1.0
    draw = _blocks if _in_blocks(display) else _shades
    # the title of a single panel gives the share on the image
    above = exhibit if len(panels) > 1 else replace(exhibit, on_images=None)
    parts: list[RenderableType] = [*heading(above, display)]
    for panel in panels:
        title = panel_title(panel, exhibit)
        written = fenced(title) if display.unicode else in_ascii(title)
        parts += [Text(), *folded(Text(written, style="bold"), display.width)]
        if display.graphics:
            parts.append(_pixels(panel, most, display))
        else:
            parts += draw(panel, most, display)
    parts += [Text(), *_legend(panels, most, scale_name(exhibit, panels), display)]
    said = (folded(Text(note, style="dim"), display.width) for note in notes)
    return [*parts, *(line for lines in said for line in lines)]


def _legend(panels: list[Panel], most: float, what: str, display: Display) -> Iterator[Text]:
    """The colours of weights over the mean colour of the images, or their shades."""
    if _in_blocks(display):
        low = -1 if panels[0].signed else 0
        share = np.linspace(low, 1, 16, dtype=np.float32)
        line = Text(f"{what} {low * most:.2g} ", style="dim")
        heat = SIGNS if low else HEAT
        colors = veiled(mean_color(panels), np.abs(share), heat[::17]).astype(np.uint8)[None]
        for color in _in_terminal(colors, display)[0]:
            line.append("█", Style(color=color, dim=False))
        yield line.append(f" {most:.2g}")
    else:
        shades = "".join(shade_of(n / 4, unicode=display.unicode) for n in range(5))
        signed = panels[0].signed
        least = f"{-most:.2g}" if signed and display.graphics else "0"
        below = f"; below 0: {BELOW}" if signed and not display.graphics else ""
        said = f"{what} from {least} to {most:.2g}{below}"
        said = said if display.graphics else f"{shades} {said}"
        yield from folded(Text(said, style="dim"), display.width)
    if not all(panel.image.shown().all() for panel in panels):
        empty = "dark" if display.graphics or _in_blocks(display) else "blank"
        yield Text(f"{empty}: not seen by the model", style="dim")


def _in_blocks(display: Display) -> bool:
    return display.color and display.unicode and not display.sixteen


def _size(panel: Panel, display: Display) -> tuple[float, float]:
    """Cells across and half lines down, in proportion: a cell is twice as high as it is wide."""
    width, height = panel.image.raw.size
    scale = min(min(WIDEST, display.width) / width, 2 * HIGHEST / height)
    return width * scale, height * scale


def _whole(across: float, down: float) -> tuple[int, int]:
    return max(1, round(across)), max(2, 2 * round(down / 2))


def _pixels(panel: Panel, most: float, display: Display) -> "PixelSequence":
    """The panel as pixels, as large as its half blocks would be."""
    across, down = _size(panel, display)
    unit = min(display.cell, MOST_PIXELS / max(across, down))
    colors = _colors(panel, most, (max(1, round(across * unit)), max(1, round(down * unit))))
    if display.graphics == "sixel":
        return sixel(colors)
    columns, lines = _whole(across, down)
    return kitty(colors, f"c={columns}" if 4 * across > down else f"r={lines // 2}")


def _blocks(panel: Panel, most: float, display: Display) -> Iterator[Text]:
    """Draw half blocks, the upper pixel in the letter's colour, the lower in the ground's."""
    colors = _in_terminal(_colors(panel, most, _whole(*_size(panel, display))), display)
    for upper, lower in zip(colors[::2], colors[1::2], strict=True):
        line = Text(no_wrap=True, overflow="crop")
        for above, below in zip(upper, lower, strict=True):
            line.append("▀", Style(color=above, bgcolor=below))
        yield line


FIRST_FIXED = 16
"""The first of 256 colours that themes of terminals do not change."""


def _in_terminal(pixels: NDArray[np.uint8], display: Display) -> list[list[Color]]:
    """Colours of pixels (height, width, 3), or the nearest of 256, as Rich errs for dark ones."""
    if not display.fixed:
        return [[Color.from_rgb(*pixel) for pixel in row] for row in pixels.tolist()]
    fixed = np.array([Color.from_ansi(n).get_truecolor() for n in range(FIRST_FIXED, 256)])
    apart = pixels[:, :, None].astype(int) - fixed  # (height, width, 240, 3)
    nearest = FIRST_FIXED + (apart**2).sum(axis=3).argmin(axis=2)
    return [[Color.from_ansi(number) for number in row] for row in nearest.tolist()]


def _colors(panel: Panel, most: float, size: tuple[int, int]) -> NDArray[np.uint8]:
    """The image under its weights (height, width, 3), dark where the model did not read it."""
    from PIL import Image

    image = Image.fromarray(panel.image.raw.pixels).resize(size, Image.Resampling.BOX)
    pixels = np.asarray(image).astype(np.float32)
    weights = density(panel.image, panel.grids, size)
    share = np.clip(np.nan_to_num(weights) / np.float32(most), -1, 1)
    heat = SIGNS[np.rint((share + 1) / 2 * 255).astype(int)]
    if not panel.signed:
        heat = HEAT[np.rint(share * 255).astype(int)]
    mixed = veiled(pixels, np.abs(share), heat)
    return np.where(np.isnan(weights)[..., None], 0.15 * pixels, mixed).astype(np.uint8)


def _shades(panel: Panel, most: float, display: Display) -> Iterator[Text]:
    """Draw the panel without colour, with one letter for two pixels, one above the other."""
    width, height = _whole(*_size(panel, display))
    weights = density(panel.image, panel.grids, (width, height // 2))
    for row in (weights / most).tolist():
        letters = (
            " "
            if isnan(share)
            else BELOW
            if share <= -LEAST_BELOW
            else shade_of(min(1.0, share), unicode=display.unicode)
            for share in row
        )
        yield Text("".join(letters).rstrip(), no_wrap=True, overflow="crop")


# Escape sequences that show pixels in a terminal: kitty's graphics, or sixel.
#
# Kitty: https://sw.kovidgoyal.net/kitty/graphics-protocol/. Sixel: DEC's VT330/VT340 Programmer
# Reference Manual, volume 2, chapter 14.


CHUNK = 4096
"""The most letters of a piece in kitty's protocol."""
PALETTE = 64
"""The colours of a sixel picture; every terminal has that many."""


@dataclass(frozen=True)
class PixelSequence:
    """A picture as one escape sequence, and the end of its last line.

    To Rich it is a control code, so that it is neither measured, cropped nor escaped.
    """

    sequence: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self.sequence, None, [(ControlType.CURSOR_FORWARD, 0)])
        yield Segment.line()


def kitty(pixels: NDArray[np.uint8], size: str) -> PixelSequence:
    """Write pixels (height, width, 3) as a PNG. `size`: its columns, `c=`, or its lines, `r=`."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    data = b64encode(file.getvalue()).decode()
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    keys = [f"a=T,f=100,{size},q=2,", *[""] * (len(chunks) - 1)]  # q=2: no reply
    more = [*[1] * (len(chunks) - 1), 0]
    pieces = zip(keys, more, chunks, strict=True)
    return PixelSequence("".join(f"\x1b_G{key}m={m};{chunk}\x1b\\" for key, m, chunk in pieces))


def sixel(pixels: NDArray[np.uint8]) -> PixelSequence:
    """Write pixels (height, width, 3) in bands of six lines, in each colour by colour."""
    from PIL import Image

    few = Image.fromarray(pixels).quantize(PALETTE)
    palette, numbers = np.array(few.getpalette()).reshape(-1, 3), np.asarray(few)
    height, width = numbers.shape
    shares = (palette * 100 / 255).round().astype(int).tolist()
    colors = "".join(f"#{n};2;{r};{g};{b}" for n, (r, g, b) in enumerate(shares))
    bands = "-".join(_band(numbers[top : top + 6]) for top in range(0, height, 6))
    return PixelSequence(f'\x1bP0;1q"1;1;{width};{height}{colors}{bands}\x1b\\')


def _band(numbers: NDArray[np.uint8]) -> str:
    """Write a band of colour numbers (up to 6, width): a letter per column, repeats counted."""
    bits = 1 << np.arange(len(numbers))
    letters = {
        color: (bits @ (numbers == color) + 63).astype(np.uint8).tobytes().decode().rstrip("?")
        for color in np.unique(numbers).tolist()
    }
    return "$".join(
        f"#{color}" + re.sub(r"(.)\1{3,}", lambda run: f"!{len(run[0])}{run[1]}", row)
        for color, row in letters.items()
    )
