"""Attention to a sound: its waveform above, seconds across; rows of words, or seconds down."""

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
from attnviz.records.places import HeardSound, Span
from attnviz.records.tokens import Token

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, WAVE, ROW, BETWEEN = 7.5, 0.6, 0.2, 0.34
"""Inches of the seconds, of the waveform, of a word's row, and between two heads."""
MOST_ACROSS = 900
"""The most cells across; with more frames, each cell has the strongest of several."""
ROW_SIZE = 8.0


def lies_in_time(exhibit: Exhibit, options: PictureOptions) -> bool:
    """Whether a picture can have seconds across: whole rows of words, or frames, to frames."""
    tokens, queries = exhibit.capture.key_tokens, exhibit.capture.query_tokens
    timed = all(tokens[key].time is not None for key in exhibit.keys)
    whole = all(isinstance(each, HeadMap) for each in exhibit.maps)
    keys = [key for key in exhibit.keys if not tokens[key].silent]
    heard = bool(keys) and _seconds(tokens, keys) is not None
    rows = any(queries[query].time and not queries[query].silent for query in exhibit.queries)
    cross = exhibit.capture.kind == "cross" or rows
    return timed and whole and heard and cross and options.orient == "query-rows"


def draw_in_time(
    figure: "Figure", exhibit: Exhibit, options: PictureOptions, words: PictureWords
) -> None:
    """Draw the maps of an exhibit, one below the other, without the padding."""
    tokens, asking = exhibit.capture.key_tokens, exhibit.capture.query_tokens
    keys = [key for key in exhibit.keys if not tokens[key].silent]
    queries = [query for query in exhibit.queries if not asking[query].silent]
    begin, end = _seconds(tokens, keys) or (0.0, 0.0)
    maps = [m for m in exhibit.maps if isinstance(m, HeadMap)]
    values = [
        _strongest(m.weights[np.ix_(queries, keys)], options.color_scale == "row") for m in maps
    ]
    if down := _seconds(asking, queries):
        values = [_strongest(each.T, False).T for each in values]
    scale = scale_of(exhibit, options, values)
    long = (down[1] - down[0]) / (end - begin) if down else 0.0
    height, top = min(max(WIDTH * long, ROW), WIDTH) if down else ROW * len(queries), 0.0
    rows = down or tuple(words.queries[query] for query in queries)
    for number, each in enumerate(values):
        axes = place(figure, 0, top - height, WIDTH, height)
        _draw_rows(axes, scale.paint(each), rows, (begin, end))
        axes.set_xticks([] if number + 1 < len(values) else axes.get_xticks())
        axes.set_xlim(begin, end)
        if len(maps) > 1:
            write(axes, words.panes[number][0], (begin, 0), (0, 3), size=ROW_SIZE)
        top -= height + BETWEEN
    axes.set_xlabel(f"seconds{_unheard(exhibit, maps, queries)}", fontsize=9, color=GREY)
    axes.tick_params(axis="x", length=3, labelsize=8, labelbottom=True)
    first = figure.axes[0]
    above = _draw_wave(figure, exhibit.capture.sound, (begin, end), len(maps) > 1)
    write_titles(above or first, words, WIDTH, above=0 if above or len(maps) == 1 else 14)
    add_key(figure, scale, WIDTH, 0, empty="")


def _unheard(exhibit: Exhibit, maps: Sequence[HeadMap], queries: list[int]) -> str:
    """A note on the share of the weight on keys that are left out."""
    tokens = exhibit.capture.key_tokens
    rest = [key for key in exhibit.keys if tokens[key].silent]
    if not rest:
        return ""
    unheard = float(np.mean([m.weights[np.ix_(queries, rest)].sum(axis=1) for m in maps]))
    return f" ({unheard:.0%} of the weight is on the padding after them)"


def _seconds(tokens: Sequence[Token], some: Sequence[int]) -> Span | None:
    """The first and last seconds of neighbouring frames; None for other tokens."""
    first, last = tokens[some[0]].time, tokens[some[-1]].time
    neighbours = some[-1] - some[0] == len(some) - 1
    return (first[0], last[1]) if first and last and neighbours else None


def _draw_rows(
    axes: "Axes", colors: NDArray[np.uint8], rows: Span | tuple[str, ...], shown: Span
) -> None:
    """Draw colours (rows, cells, 4) over the shown seconds; `rows`: seconds, or labels."""
    begin, end = shown
    hatch_ground(axes)
    labels = tuple(row for row in rows if isinstance(row, str))
    top, bottom = (0, len(labels)) if labels else (float(rows[0]), float(rows[1]))
    extent = (begin, end, bottom, top)
    axes.imshow(colors, extent=extent, aspect="auto", interpolation="nearest", zorder=1)
    outline(axes, [(top, begin, bottom - top, end - begin)])
    if labels:
        write_rows(axes, Ticks(tuple(n + 0.5 for n in range(len(labels))), labels, ROW_SIZE))
    else:
        axes.tick_params(axis="y", length=3, labelsize=8)
    axes.set_ylabel("query" if labels else "seconds of the query", fontsize=9, color=GREY)


def _strongest(weights: FloatArray, by_row: bool) -> FloatArray:
    """The strongest weight of each cell (rows, cells), with `by_row` as a share of its row's."""
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
    """Draw the waveform of the shown seconds, from the lowest to the highest samples."""
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
