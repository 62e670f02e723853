"""Attention laid over an image in the terminal: two pixels a cell, or shades without colour."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import ascii_only, fenced
from attnviz.draw.overlay import NAME_ONE, Panel, density, panel_title, panels_of
from attnviz.draw.terminal.around import heading, in_ascii
from attnviz.draw.terminal.cells import folded, shade_of
from attnviz.errors import UsageError
from attnviz.records.exhibit import Exhibit

WIDEST, HIGHEST = 56, 28
"""Cells across, and lines down, of a picture."""
HOT = np.array([255, 120, 0])
"""The colour of the strongest weight, laid over the image."""
FAINT, BRIGHT = 0.1, 0.8
"""How much of it the weakest and the strongest weight have."""


def render(exhibit: Exhibit, display: Display | None = None) -> list[RenderableType]:
    """The image under the weights of each head and query; their scale is that of the strongest."""
    display = display or Display()
    panels = panels_of(exhibit)
    if not panels:
        raise UsageError("no token of the text stands behind the image", NAME_ONE)
    most = max(panel.most for panel in panels) or 1.0
    parts: list[RenderableType] = [*heading(exhibit, display)]
    for panel in panels:
        title = panel_title(panel, exhibit)
        written = fenced(title) if display.unicode else in_ascii(title)
        parts += [Text(), *folded(Text(written, style="bold"), display.width)]
        colored = display.color and display.unicode and not display.sixteen
        parts += _blocks(panel, most, display) if colored else _shades(panel, most, display)
    what = exhibit.value_name
    legend = f"brightest: a {what} of {most:.2g}; dark: not seen by the model"
    if not (display.color and display.unicode and not display.sixteen):
        marks = "".join(shade_of(n / 4, unicode=display.unicode) for n in range(5))
        legend = f"{marks} {what}s from 0 to {most:.2g}; blank: not seen by the model"
    said = legend if display.unicode else ascii_only(legend)
    return [*parts, Text(), *folded(Text(said, style="dim"), display.width)]


def _size(panel: Panel, display: Display) -> tuple[int, int]:
    """Cells across and half lines down: a cell is twice as high as it is wide."""
    width, height = panel.image.raw.size
    across = min(WIDEST, display.width)
    scale = min(across / width, 2 * HIGHEST / height)
    return max(1, round(width * scale)), max(2, 2 * round(height * scale / 2))


def _blocks(panel: Panel, most: float, display: Display) -> Iterator[Text]:
    """Lines of half blocks, the upper pixel in the letter's colour, the lower in the ground's."""
    width, height = _size(panel, display)
    colors = _colors(panel, most, (width, height))
    for upper, lower in zip(colors[::2], colors[1::2], strict=True):
        line = Text(no_wrap=True, overflow="crop")
        for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
            line.append("▀", Style(color=_rgb(above), bgcolor=_rgb(below)))
        yield line


def _rgb(color: tuple[int, int, int]) -> Color:
    red, green, blue = color
    return Color.from_rgb(red, green, blue)


def _colors(panel: Panel, most: float, size: tuple[int, int]) -> NDArray[np.uint8]:
    """(height, width, 3): the image under its weights, dark where the model did not see it."""
    from PIL import Image

    image = Image.fromarray(panel.image.raw.pixels).resize(size, Image.Resampling.BOX)
    pixels = np.asarray(image).astype(np.float32)
    base = 0.6 * pixels.mean(axis=2, keepdims=True) + 0.4 * pixels
    weights = density(panel.image, panel.grids, size)
    share = np.clip(np.nan_to_num(weights) / np.float32(most), 0, 1)[..., None]
    alpha = FAINT + (BRIGHT - FAINT) * share
    mixed = 0.8 * base * (1 - alpha) + HOT * alpha
    colors = np.where(np.isnan(weights)[..., None], 0.15 * base, mixed)
    return np.asarray(colors, np.uint8)


def _shades(panel: Panel, most: float, display: Display) -> Iterator[Text]:
    """The same without colour, one letter for two pixels, one above the other."""
    width, height = _size(panel, display)
    weights = density(panel.image, panel.grids, (width, height // 2))
    for row in weights.tolist():
        letters = (
            " " if value != value else shade_of(min(1.0, value / most), unicode=display.unicode)
            for value in row
        )
        yield Text("".join(letters).rstrip(), no_wrap=True, overflow="crop")
