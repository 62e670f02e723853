"""Attention as colours over the image attended to: a panel for each head and query."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.labels import DIVERGING
from attnviz.draw.overlay import (
    Panel,
    density,
    mean_color,
    of_whole_image,
    panel_title,
    panels_of,
    scale_name,
    shown_panels,
    veiled,
)
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import add_key, hatch_ground, outline, sheet, write, write_titles
from attnviz.draw.picture.paint import PictureOptions, PictureWords, Scale, options_of, words_for
from attnviz.errors import UsageError, option
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONE, TOGETHER, ACROSS, MOST_ACROSS = 6.0, 2.6, 5, 16
"""Inches of the longer side of a single panel, at least, and of one among others; panels in a row,
and the most of them for the heads of a layer."""
LARGEST_IMAGE = 2048
"""Pixels of a side to which an image is reduced, with the weights on it."""
BETWEEN, TITLE_SIZE, LETTERS = 0.34, 8.0, 15
"""Inches between panels; points of their titles, and letters per inch."""
LEAST_WIDTH = 1.3
"""The least width of a title, in inches."""
OVERLAY_MAP = "inferno"


def drawn_as(exhibit: Exhibit, look: Look) -> Drawn:
    """Draw the panels of an exhibit; those of several heads each on its own scale of colours.

    Raises:
        UsageError: there is no image, or nothing to draw; or a logarithmic scale is asked for.
    """
    exhibit = of_whole_image(exhibit)
    shown, notes = shown_panels(exhibit, "picture")
    options = options_of(look, None, by_row=len(exhibit.maps) > 1)
    words = words_for(exhibit, options)
    titles = [panel_title(panel, exhibit) for panel in shown]
    return _drawn(exhibit, shown, titles, words, options, _across(exhibit, len(shown)), notes)


def drawn_beside(
    exhibits: Sequence[Exhibit], words: PictureWords, options: PictureOptions
) -> Drawn:
    """Draw the same head in several images side by side, on one scale of colours."""
    each = [of_whole_image(exhibit) for exhibit in exhibits]
    shown = [(n, panel, of) for n, of in enumerate(each, start=1) for panel in panels_of(of)]
    titles = [f"image {n}, {panel_title(panel, of)}" for n, panel, of in shown]
    panels = [panel for _, panel, _ in shown]
    return _drawn(each[0], panels, titles, words, options, min(ACROSS, len(panels)))


def _drawn(
    exhibit: Exhibit,
    shown: list[Panel],
    titles: list[str],
    words: PictureWords,
    options: PictureOptions,
    across: int,
    notes: Sequence[str] = (),
) -> Drawn:
    if options.color_scale == "log":
        hint = f"leave out {option('color_scale', 'log')}"
        raise UsageError("a logarithmic scale is not available for colours over an image", hint)
    usual = DIVERGING if exhibit.capture.signed else OVERLAY_MAP
    cmap = usual if options.cmap == PictureOptions.cmap else options.cmap
    peaks, what = [panel.peak or 1.0 for panel in shown], scale_name(exhibit, shown)
    most, times = max(peaks), [1.0] * len(shown)
    if options.color_scale == "row" and len(shown) > 1:
        titles = [f"{title}, max {peak:.2g}" for title, peak in zip(titles, peaks, strict=True)]
        what, most, times = f"{what} ÷ the panel's largest", 1.0, peaks
    key = Scale(cmap, "linear", -most if exhibit.capture.signed else 0.0, most, what)
    scales = [replace(key, low=key.low * each, high=key.high * each) for each in times]
    with sheet([*words.all, *titles], dpi=options.dpi, cmap=cmap) as (figure, fonts):
        spelled = [fonts.spell(title) for title in titles]
        _draw_panels(figure, shown, spelled, words.spelled(fonts), scales, key, across)
    return Drawn(figure, (*fonts.notes, *notes))


def _across(exhibit: Exhibit, panels: int) -> int:
    """The number of panels in a row: the heads of a layer, if each of several has a panel."""
    layers = Counter(each.layer for each in exhibit.maps)
    heads, several = max(layers.values()), len(layers) > 1
    whole = panels == len(exhibit.maps) == heads * len(layers)
    return heads if several and whole and heads <= MOST_ACROSS else min(ACROSS, panels)


def _draw_panels(
    figure: "Figure",
    panels: list[Panel],
    titles: list[str],
    words: PictureWords,
    scales: Sequence[Scale],
    key: Scale,
    columns: int,
) -> None:
    """Draw panels in rows of `columns`; a title is as wide as its panel, `key` is the legend."""
    longer = _alone(panels[0], figure.dpi) if len(panels) == 1 else TOGETHER
    sizes = [_inches(panel, longer) for panel in panels]
    width = max(LEAST_WIDTH, *(size[0] for size in sizes))
    height = max(size[1] for size in sizes)
    titles = [fill(title, int((width + BETWEEN) * LETTERS)) for title in titles]
    lines = max(title.count("\n") for title in titles)  # beyond the first
    down = height + BETWEEN + lines * TITLE_SIZE * 1.2 / 72
    whole_height = -(-len(panels) // columns) * down - (down - height)
    for number, (panel, (w, h)) in enumerate(zip(panels, sizes, strict=True)):
        row, column = divmod(number, columns)
        left, top = column * (width + BETWEEN), whole_height - row * down
        axes = place(figure, left, top - h, w, h)
        hatch_ground(axes)
        axes.imshow(_painted(panel, scales[number]), extent=(0, 1, 1, 0), aspect="auto", zorder=1)
        axes.set_xlim(0, 1)
        axes.set_ylim(1, 0)
        axes.set_xticks([])
        axes.set_yticks([])
        outline(axes, [(0, 0, 1, 1)])
        write(axes, titles[number], (0, 0), (0, 3), size=TITLE_SIZE)
        if number == 0:
            whole_width = columns * (width + BETWEEN) - BETWEEN
            write_titles(axes, words, whole_width, above=TITLE_SIZE * (1 + 1.2 * lines) + 7)
    add_key(
        figure,
        _as_painted(key, panels),
        columns * (width + BETWEEN) - BETWEEN,
        whole_height,
        empty="not seen" if any(not p.image.shown().all() for p in panels) else "",
    )


def _alone(panel: Panel, dpi: float) -> float:
    """Inches of the longer side of the only panel, at the image's own resolution."""
    return max(ALONE, min(max(panel.image.raw.size), LARGEST_IMAGE) / dpi)


def _inches(panel: Panel, longer: float) -> tuple[float, float]:
    """The width and height of a panel; a very long image keeps a few pixels of its shorter side."""
    width, height = panel.image.raw.size
    scale = longer / max(width, height)
    return max(0.15, width * scale), max(0.15, height * scale)


def _painted(panel: Panel, scale: Scale) -> NDArray[np.uint8]:
    """The image under its weights (height, width, 4); transparent where the model did not read."""
    pixels = _reduced(panel.image.raw.pixels)
    height, width = pixels.shape[:2]
    weights = density(panel.image, panel.grids, (width, height))
    seen = ~np.isnan(weights)[..., None]
    shown: FloatArray = np.clip(np.nan_to_num(weights), scale.low, scale.high).astype(np.float32)
    share = np.abs(shown / np.float32(scale.high), dtype=np.float32)
    colors = scale.paint(shown)[..., :3]
    rgb = np.where(seen, veiled(pixels, share, colors), 0.35 * pixels + 0.65 * 255)
    return np.concatenate([rgb, np.where(seen, 255, 140)], axis=2).round().astype(np.uint8)


def _as_painted(scale: Scale, panels: list[Panel]) -> Scale:
    """The scale of the colour bar: its colours over the mean colour of the images."""
    from matplotlib.colors import ListedColormap

    values: FloatArray = np.linspace(scale.low, scale.high, 256, dtype=np.float32)
    share = np.abs(values / np.float32(scale.high), dtype=np.float32)
    colors = scale.paint(values[None])[0, :, :3]
    return replace(scale, cmap=ListedColormap(veiled(mean_color(panels), share, colors) / 255))


def _reduced(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Reduce an image to at most `LARGEST_IMAGE` pixels a side."""
    height, width = pixels.shape[:2]
    if max(height, width) <= LARGEST_IMAGE:
        return pixels
    from PIL import Image

    scale = LARGEST_IMAGE / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))
