"""Pictures of comparisons: the similarity of two models' heads, and patterns side by side."""

import math
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.commands.compare.record import (
    ModelComparison,
    Panel,
    SideBySide,
    TextComparison,
    models_beside,
    texts_beside,
)
from attnviz.commands.compare.titles import about_models, about_texts, similarity_title, texts_title
from attnviz.draw.labels import DIVERGING, SEQUENTIAL, distinct_labels
from attnviz.draw.matrix import SideLabels, block_maximum
from attnviz.draw.picture.canvas import Drawn, Lettering, place
from attnviz.draw.picture.frame import (
    BOX,
    GREY,
    outline,
    paint_cells,
    sheet,
    ticks_for,
    write,
    write_columns,
    write_heading,
    write_line,
    write_rows,
)
from attnviz.draw.picture.paint import (
    EMPTY,
    Scale,
    draw_bar,
    draw_color_bar,
    scale_for,
    signed_scale,
)
from attnviz.errors import readable
from attnviz.records.capture import Capture, FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


GRID_SIDE = 5.0  # inches, of the longer side
LEAST = 0.8  # inches, of the shorter one
LABELS = 32  # heads along a side that are named at most


def draw_texts(comparison: TextComparison, **look: Any) -> Drawn:
    """The patterns of the head that differs most; raises what `draw_beside` does."""
    beside = texts_beside(comparison)
    return draw_beside(beside, texts_title(comparison), about_texts(comparison), **look)


def draw_models(comparison: ModelComparison, **look: Any) -> Drawn:
    """The similarities of all heads, or the patterns of one pair; raises what those do."""
    if len(comparison.heads) > 1:
        return draw_similarity(comparison, **look)
    best = comparison.matches[0]
    title = f"{best.head} and {best.other}, similarity {best.similarity:.2f}"
    return draw_beside(models_beside(comparison), title, about_models(comparison), **look)


def draw_similarity(
    comparison: ModelComparison, *, dpi: int = 150, cmap: str = SEQUENTIAL
) -> Drawn:
    """The similarity of every pair of heads; a circle marks the pairs that the rows list.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    title, about = similarity_title(comparison)
    names = [captured.model.name for captured in comparison.captures]
    with sheet([title, about, *names], dpi=dpi, cmap=cmap) as (figure, fonts):
        rows, columns = comparison.similarity.shape
        height, width = (max(LEAST, GRID_SIDE * n / max(rows, columns)) for n in (rows, columns))
        axes = place(figure, 0, 0, width, height)
        axes.set_facecolor(EMPTY)
        shown = axes.imshow(comparison.similarity, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        draw_bar(place(figure, width + 0.15, 0, 0.15, height), shown, "similarity")
        across = [comparison.others.index(match.other) for match in comparison.matches]
        down = [comparison.heads.index(match.head) for match in comparison.matches]
        size = min(40.0, (GRID_SIDE * 72 / max(rows, columns) / 2) ** 2)
        axes.scatter(across, down, s=size, facecolors="none", edgecolors="#d62728")
        for label, axis, heads in (
            (names[0], axes.yaxis, comparison.heads),
            (names[1], axes.xaxis, comparison.others),
        ):
            ticks = range(0, len(heads), -(-len(heads) // LABELS))
            axis.set_ticks(ticks, [str(heads[tick]) for tick in ticks], fontsize=6)
            axis.set_label_text(fonts.spell(label), fontsize=8)
        axes.tick_params(axis="x", rotation=90)
        write_heading(figure, height + 0.15, width, title, about, fonts)
    return Drawn(figure, fonts.notes)


# Patterns side by side on one scale, and their difference in diverging colours.

LARGEST_CELL, LARGEST_PANE = 0.42, 4.2  # inches
MOST_CELLS = 400
GAP, BAR = 0.35, 0.13
LETTERS = 13  # of the lines above, in an inch


def draw_beside(
    beside: SideBySide, title: str, about: Sequence[str], *, dpi: int = 150, cmap: str = SEQUENTIAL
) -> Drawn:
    """All patterns as one figure, with `about` in smaller letters below the title."""
    labels = [distinct_labels(side.capture.key_tokens) for side in beside.sides]
    with sheet(
        [title, *about, *(label for some in labels for label in some)], dpi=dpi, cmap=cmap
    ) as (figure, fonts):
        panes = [_visible(side.capture, side.map.weights) for side in beside.sides]
        scale = scale_for(cmap, "linear", panes, beside.sides[0].capture)
        left = 0.0
        for side, pane, names in zip(beside.sides, panes, labels, strict=True):
            left = _draw_one(figure, left, side, pane, scale, names, fonts)
        left = _bar(figure, left, panes[-1], scale)
        if beside.difference is not None:
            less = _visible(beside.sides[0].capture, beside.difference)
            signed = signed_scale(DIVERGING, [less], "first minus second")
            difference = replace(beside.sides[0], title="difference")
            pairs = zip(*labels, strict=True)
            both = [one if one == other else f"{one} / {other}" for one, other in pairs]
            left = _draw_one(figure, left, difference, less, signed, both, fonts)
            _bar(figure, left, less, signed)
        letters = max(50, int(left * LETTERS))
        below = "\n".join(fill(fonts.spell(line), letters) for line in about)
        write_line(figure, 0.5, below, size=8, color=GREY)
        top = 0.6 + 0.15 * (below.count("\n") + 1)
        write_line(figure, top, fonts.spell(title), size=11)
    return Drawn(figure, fonts.notes)


def _visible(captured: Capture, weights: FloatArray) -> FloatArray:
    """NaN where the mask forbids a link."""
    return np.where(captured.allowed(), weights, np.float32(np.nan))


def _inches(pane: FloatArray) -> float:
    return min(LARGEST_CELL, LARGEST_PANE / len(pane)) * len(pane)


def _draw_one(
    figure: "Figure",
    left: float,
    side: Panel,
    pane: FloatArray,
    scale: Scale,
    labels: Sequence[str],
    fonts: Lettering,
) -> float:
    """Draw a pattern at `left` (inches); returns where the next one may begin."""
    size = _inches(pane)
    cell = size / len(pane)
    names = [fonts.spell(label) for label in labels]
    start = left + min(1.6, 0.09 * max(map(len, names), default=0)) + 0.3
    axes = place(figure, start, -size, size, size)
    drawn = pane if scale.low < 0 else block_maximum(pane, MOST_CELLS, MOST_CELLS)
    block = math.ceil(len(pane) / len(drawn))
    paint_cells(axes, scale.paint(drawn), pane.shape, (block, block))
    outline(axes, [(0, 0, *pane.shape)])
    ticks = ticks_for(SideLabels(names, range(len(pane))), cell)
    write_rows(axes, ticks)
    write_columns(axes, ticks, cell)
    axes.set_xlabel("key", fontsize=8, color=GREY)
    axes.set_ylabel("query", fontsize=8, color=GREY)
    if side.query is not None:
        from matplotlib.patches import Rectangle

        row = Rectangle(
            (0, side.query), len(pane), 1, fill=False, ec=BOX, lw=2, zorder=3, clip_on=False
        )
        axes.add_patch(row)
    written = fonts.spell(readable(side.title))
    write(axes, written, (0, 1), (0, 6), size=9, coords="axes fraction", color="black")
    return start + size + GAP


def _bar(figure: "Figure", left: float, pane: FloatArray, scale: Scale) -> float:
    size = _inches(pane)
    draw_color_bar(place(figure, left - GAP + 0.12, -size, BAR, size), scale)
    return left + 0.75
