"""Sounds as a model reads them: the seconds that each of its frames stands for.

A model's features turn a sound into frames, each of which it attends to as one token. The frames
after the end of a sound that is shorter than the model's window are padding.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.tokens import PADDING, Token, Waveform

if TYPE_CHECKING:
    from attnviz.records.capture import Capture

MOST_BINS = 1_500
"""The most parts of an envelope."""


def envelope_of(samples: Waveform) -> Waveform:
    """The lowest and the highest sample of each part, shape (bins, 2)."""
    starts = np.unique(np.linspace(0, len(samples), MOST_BINS + 1)[:-1].astype(int))
    ends = (np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts))
    return np.stack(ends, axis=1)


# Resampling by a windowed sinc, which keeps the band below half of either rate.

CROSSINGS, ROLLOFF = 24, 0.95
"""Zeros of the sinc on each side, and the share of the band that is kept."""
AT_ONCE = 1 << 12
"""The number of samples that are computed together."""


def resampled(samples: Waveform, rate: int, to: int) -> Waveform:
    """Resample a sound to another number of samples per second."""
    if rate == to:
        return samples
    down, up = rate // gcd(rate, to), to // gcd(rate, to)
    cutoff = min(1.0, to / rate) * ROLLOFF
    half = ceil(CROSSINGS / cutoff)
    taps = np.arange(1 - half, half + 1)
    windows = sliding_window_view(np.pad(samples, (half - 1, half)), 2 * half)
    result = np.empty(len(samples) * up // down, np.float32)
    for first in range(0, len(result), AT_ONCE):
        places = np.arange(first, min(first + AT_ONCE, len(result))) * down
        phases, which = np.unique(places % up, return_inverse=True)
        away = taps - phases[:, None] / up  # (phases, taps)
        window = np.cos(np.clip(away / half, -1, 1) * np.pi / 2) ** 2
        kernel = (cutoff * np.sinc(cutoff * away) * window).astype(np.float32)
        result[first : first + len(places)] = np.einsum(
            "nk,nk->n", kernel[which], windows[places // up]
        )
    return result


# Names of times, as a user gives them.

SECONDS = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)s"
TIME = re.compile(rf"{SECONDS}(?::{SECONDS})?")
NEAR = 1e-6


def is_time(name: str) -> bool:
    """Whether a name is a time `0.5s`, or a range of times `0.5s:1.2s`."""
    return TIME.fullmatch(name) is not None


def time_label(seconds: float, frame: float) -> str:
    """The name of a frame by its first second: `0.42s`, with as many digits as frames need."""
    fine = abs(frame * 100 - round(frame * 100)) > NEAR
    return f"{seconds:.{3 if fine else 2}f}s"


def frames_at(tokens: Sequence[Token], name: str, parameter: str) -> list[tuple[int]]:
    """The frame that contains a time, or those that overlap a range of times."""
    found = TIME.fullmatch(name)
    assert found is not None
    begin = float(found[1]) + NEAR
    end = float(found[2]) - NEAR if found[2] else begin
    spans = [(token.index, *token.time) for token in tokens if token.time is not None]
    frames = [(i,) for i, first, last in spans if last > begin and first <= end]
    if not frames or begin > end + NEAR:
        raise UsageError(
            f"{option(parameter, name)} is outside the part of the sound that the model read",
            f"give seconds from {spans[0][1]:.2f}s to {spans[-1][2]:.2f}s",
        )
    return frames


# Frames merged to bins, so that a table can name them.

WIDTHS = (0.02, 0.04, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_IN_TABLE = 16
"""The most bins of a sound without its padding."""


def bin_starts(tokens: Sequence[Token]) -> list[int]:
    """The starts of bins of neighbouring frames; the padding is one bin, as is each other token."""
    spans = [token.time for token in tokens if token.time is not None and not token.silent]
    long = spans[-1][1] - spans[0][0] if spans else 0.0
    width = next((w for w in WIDTHS if long <= w * MOST_IN_TABLE), long / MOST_IN_TABLE)
    bins: list[object] = [
        PADDING if t.silent else int(sum(t.time) / 2 / width) if t.time else (t.index,)
        for t in tokens
    ]
    return [i for i, own in enumerate(bins) if i == 0 or own != bins[i - 1]]


def in_time(first: Token, last: Token) -> Token:
    """Join frames of a sound into one token, named by its seconds; text tokens are unchanged.

    The name has as many decimals as its ends need, and at most two: `1.2–1.4s`.
    """
    if first.time is None or last.time is None or first == last:
        return first
    time = first.time[0], last.time[1]
    few = next((n for n in (0, 1) if all(abs(round(at, n) - at) < NEAR for at in time)), 2)
    name = PADDING if first.silent else f"{time[0]:.{few}f}–{time[1]:.{few}f}s"
    return replace(first, name=name, time=time)


ALIGNMENT = "alignment"
"""The behaviour of heads that a model's settings name for the alignment of words and time."""


def heard_rows(capture: "Capture") -> tuple[list[int], list[int]]:
    """The rows of the transcript, with that of its end; and the frames that contain sound.

    Tokens that only begin a text, such as its language, have no time.
    """
    queries = capture.query_tokens
    first = next((t.index for t in queries if not t.special), 0)
    frames = [t.index for t in capture.key_tokens if t.time is not None and not t.silent]
    return list(range(first, len(queries))), frames


# Times of words: dynamic time warping of attention, as in the Whisper authors' code.


def monotone_paths(costs: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Find the cheapest monotone path through each of several matrices (heads, rows, frames).

    It goes from the first row and frame to the last ones by steps of one row, one frame or both.

    Returns:
        (heads, rows, 2): the first frame of each row on the path, and its last one.
    """
    heads, rows, frames = costs.shape
    total = np.full((heads, rows + 1, frames + 1), np.inf, np.float32)
    total[:, 0, 0] = 0
    step = np.zeros((heads, rows + 1, frames + 1), np.int8)
    for diagonal in range(rows + frames - 1):  # its cells do not depend on each other
        row = np.arange(max(0, diagonal - frames + 1), min(rows, diagonal + 1))
        frame = diagonal - row
        both, down, along = (
            total[:, row, frame],
            total[:, row, frame + 1],
            total[:, row + 1, frame],
        )
        way = np.full(both.shape, 2, np.int8)
        way[(down < both) & (down < along)] = 1
        way[(both < down) & (both < along)] = 0
        cheapest = np.choose(way, (both, down, along))
        total[:, row + 1, frame + 1] = costs[:, row, frame] + cheapest
        step[:, row + 1, frame + 1] = way
    ends = np.zeros((heads, rows, 2), np.int64)
    for head in range(heads):
        row, frame, last = rows, frames, frames - 1
        while row > 0:
            way_back = step[head, row, frame] if frame > 0 else 1
            if way_back != 2:
                ends[head, row - 1] = frame - 1, last
            row, frame = row - (way_back != 2), frame - (way_back != 1)
            if way_back != 2:
                last = frame - 1
    return ends


MEDIAN = 7
"""The frames whose median replaces a weight."""


def row_starts(
    weights: Iterable[Waveform], rows: Sequence[int], median: int = MEDIAN
) -> NDArray[np.int64]:
    """The frame at which each of these rows begins, by the weights (all rows, frames) of each head.

    Each column is standardised over all rows of the decoder, including those before and after the
    words; then each of the rows is filtered by a median, and the heads' mean aligned by dynamic
    time warping: Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak
    Supervision", arXiv 2212.04356, as in the authors' `timing.py`. Heads are read one after
    another.
    """
    total, count = np.zeros((), np.float32), 0
    for own in weights:
        total, count = total + standardised(own, rows, median), count + 1
    starts: NDArray[np.int64] = monotone_paths(-(total / np.float32(count))[None])[0, :, 0]
    return starts


def standardised(weights: Waveform, rows: Sequence[int], median: int) -> Waveform:
    """The standardised columns of these rows (rows, frames), filtered along each row."""
    wide = weights.astype(np.float32)
    spread = wide.std(axis=0)
    apart = wide[rows] - wide.mean(axis=0)
    scaled: Waveform = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
    half = median // 2
    if scaled.shape[1] <= half:
        return scaled
    padded = np.pad(scaled, ((0, 0), (half, half)), mode="reflect")
    filtered: Waveform = np.median(sliding_window_view(padded, median, axis=1), axis=2)
    return filtered


NEAR_PATH = 1


def path_shares(weights: Waveform, near: int = NEAR_PATH) -> NDArray[np.float64]:
    """The share of each head's rows (heads, rows, frames) along a monotone path, shape (heads).

    The path is the one with the most weight above its frame's mean over the rows, so that a frame
    that all rows attend to adds nothing; frames at most `near` away from it in a row count. Rows
    sum to 1 with the weight on frames that are not given.
    """
    wide = weights.astype(np.float64)
    ends = monotone_paths(wide.mean(axis=1, keepdims=True) - wide)
    frames = np.arange(wide.shape[2])
    inside = (frames >= ends[..., :1] - near) & (frames <= ends[..., 1:] + near)
    return np.asarray((wide * inside).sum(axis=2).mean(axis=1))
