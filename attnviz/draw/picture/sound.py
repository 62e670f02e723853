"""Attention of words to a sound: its waveform above, seconds across, a row for each word."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.picture.canvas import place
from attnviz.draw.picture.frame import (
    GREY,
    Ticks,
    add_key,
    hatch_ground,
    outline,
    write,
    write_rows,
    write_titles,
)
from attnviz.draw.picture.paint import PictureOptions, PictureWords, scale_of
from attnviz.records.capture import FloatArray
from attnviz.records.exhibit import Exhibit, HeadMap
from attnviz.records.tokens import HeardSound, Span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, WAVE, ROW, BETWEEN = 7.5, 0.6, 0.2, 0.34
"""Inches: of the seconds, of the waveform, of a word's row, and between two heads."""
MOST_ACROSS = 900
"""Cells across; of more frames, each cell has the strongest of several."""
ROW_SIZE = 8.0


def lies_in_time(exhibit: Exhibit, options: PictureOptions) -> bool:
    """Whether a picture can have seconds across: whole rows of words to the frames of a sound."""
    tokens = exhibit.capture.key_tokens
    timed = all(tokens[key].time is not None for key in exhibit.keys)
    whole = all(isinstance(each, HeadMap) for each in exhibit.maps)
    heard = any(not tokens[key].silent for key in exhibit.keys)
    cross = exhibit.capture.kind == "cross" and options.orient == "query-rows"
    return timed and whole and heard and cross


def draw_in_time(
    figure: "Figure", exhibit: Exhibit, options: PictureOptions, words: PictureWords
) -> None:
    """Draw the maps of an exhibit, one below the other; the padding is left out."""
    tokens = exhibit.capture.key_tokens
    keys = [key for key in exhibit.keys if not tokens[key].silent]
    spans = [span for key in keys if (span := tokens[key].time) is not None]
    begin, end = spans[0][0], spans[-1][1]
    maps = [m for m in exhibit.maps if isinstance(m, HeadMap)]
    values = [
        _strongest(m.weights[np.ix_(exhibit.queries, keys)], options.color_scale == "row")
        for m in maps
    ]
    scale = scale_of(exhibit, options, values)
    height, top = ROW * len(exhibit.queries), 0.0
    labels = tuple(words.queries[query] for query in exhibit.queries)
    for number, each in enumerate(values):
        axes = place(figure, 0, top - height, WIDTH, height)
        _draw_rows(axes, scale.paint(each), labels, (begin, end))
        axes.set_xticks([] if number + 1 < len(values) else axes.get_xticks())
        axes.set_xlim(begin, end)
        if len(maps) > 1:
            write(axes, words.panes[number][0], (begin, 0), (0, 3), size=ROW_SIZE)
        top -= height + BETWEEN
    rest = [key for key in exhibit.keys if tokens[key].silent]
    unheard = float(np.mean([m.weights[list(exhibit.queries)][:, rest].sum(axis=1) for m in maps]))
    said = f" ({unheard:.0%} of the weight is on the padding behind them)" if rest else ""
    axes.set_xlabel(f"seconds{said}", fontsize=9, color=GREY)
    axes.tick_params(axis="x", length=3, labelsize=8, labelbottom=True)
    first = figure.axes[0]
    above = _draw_wave(figure, exhibit.capture.sound, (begin, end), len(maps) > 1)
    write_titles(above or first, words, WIDTH, above=0 if above or len(maps) == 1 else 14)
    add_key(figure, scale, WIDTH, 0, empty="")


def _draw_rows(
    axes: "Axes", colors: NDArray[np.uint8], labels: tuple[str, ...], shown: Span
) -> None:
    """(rows, cells, 4) colours, over the seconds that are shown."""
    begin, end = shown
    hatch_ground(axes)
    extent = (begin, end, len(labels), 0)
    axes.imshow(colors, extent=extent, aspect="auto", interpolation="nearest", zorder=1)
    outline(axes, [(0, begin, len(labels), end - begin)])
    write_rows(axes, Ticks(tuple(n + 0.5 for n in range(len(labels))), labels, ROW_SIZE))


def _strongest(weights: FloatArray, by_row: bool) -> FloatArray:
    """(rows, cells): the strongest weight of each cell; of each row's strongest, if asked."""
    size = -(-weights.shape[1] // MOST_ACROSS)
    starts = np.arange(0, weights.shape[1], size)
    cells: FloatArray = np.maximum.reduceat(weights, starts, axis=1)
    if not by_row:
        return cells
    most = cells.max(axis=1, keepdims=True)
    return np.asarray(np.divide(cells, most, out=np.zeros_like(cells), where=most > 0))


def _draw_wave(
    figure: "Figure", sound: HeardSound | None, shown: Span, several: bool
) -> "Axes | None":
    """The waveform of the seconds that are shown, from the lowest to the highest samples."""
    if sound is None or not len(sound.envelope):
        return None
    bottom = 0.08 + 0.16 * several
    axes = place(figure, 0, bottom, WIDTH, WAVE)
    count = len(sound.envelope)
    at: Sequence[float] = np.linspace(sound.begin, sound.end, count + 1)[:-1].tolist()
    low, high = sound.envelope.T
    axes.fill_between(at, low, high, color=GREY, linewidth=0.4, step="post")
    most = float(np.abs(sound.envelope).max()) or 1.0
    axes.set_xlim(*shown)
    axes.set_ylim(-most, most)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes
