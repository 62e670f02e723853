"""The alignment of a text's words with the seconds of a sound, by attention."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, gcd
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import END_READ, Capture, FloatArray, PatternBlock
from attnviz.records.exhibit import Choice
from attnviz.records.heads import ALIGNMENT, Head, every_head
from attnviz.records.merging import word_groups
from attnviz.records.places import Waveform
from attnviz.records.tokens import Token


def alignment_heads(capture: Capture) -> tuple[Head, ...]:
    """The heads for alignment that the model's settings name; else the upper half of its layers.

    Whisper's authors do the same.
    """
    named = [each.head for each in capture.named_heads if each.behaviour == ALIGNMENT]
    every = every_head(capture.model.heads_per_layer)
    upper = capture.model.n_layer // 2
    return tuple(sorted(set(named))) or tuple(head for head in every if head.layer >= upper)


@dataclass(frozen=True)
class SpokenWord:
    """A word, its seconds in the sound, and the share of its attention that is on them.

    `tokens`: the positions of its first token, and of the one after its last.
    """

    text: str
    begin: float
    end: float
    weight: float
    tokens: tuple[int, int]


@dataclass(frozen=True)
class Alignment:
    """The words of a text, aligned with a sound by the mean attention of some heads.

    `capture`: the run, without its patterns.
    """

    capture: Capture
    heads: tuple[Head, ...]
    words: tuple[SpokenWord, ...]


def check_aligned(capture: Capture) -> None:
    """Check that a text attends to a sound, which has a frame for each of its words.

    Raises:
        UsageError: it does not, or the sound has too few frames.
    """
    timed = any(token.time for token in capture.key_tokens)
    if timed and capture.kind == "cross":
        rows, frames = heard_rows(capture)
        words = _words([capture.query_tokens[row] for row in rows])
        if len(frames) < len(words):
            raise UsageError(
                f"{len(words):,} words are too many for a sound of {len(frames):,} frame"
                + "s" * (len(frames) != 1),
                f"give a longer one, an earlier {option('start')}, or fewer words",
            )
        return
    if timed:
        writes = capture.kind != "self"
        raise UsageError(
            "words cannot be aligned: this attention is not from a text to a sound",
            "use this model's cross-attention" if writes else "use a model that writes a text",
        )
    raise UsageError("there is no sound to align a text with", "give one")


def aligned(capture: Capture, heads: Sequence[Head]) -> Alignment:
    """Align the words of a capture that holds these heads with their seconds.

    A word begins where the path of its first token does, and ends where that of the next word, or
    of the end of the text, begins.
    """
    rows, frames = heard_rows(capture)
    spans = [capture.key_tokens[frame].time or (0.0, 0.0) for frame in frames]
    starts = [*row_starts(heard_weights(capture, heads), rows).tolist(), len(frames)]
    total = np.zeros((len(rows), len(frames)), np.float32)
    for own in heard_weights(capture, heads):
        total += own[rows]
    words = list[SpokenWord]()
    for first, after in _words([capture.query_tokens[row] for row in rows]):
        begin, end = starts[first], starts[after]
        inside = total[first:after, begin:end].sum(axis=1) / len(heads)
        text = "".join(capture.query_tokens[rows[n]].exact for n in range(first, after)).strip()
        last = spans[end][0] if end < len(spans) else spans[-1][1]
        place = rows[first], rows[after - 1] + 1
        words.append(SpokenWord(text, spans[begin][0], last, float(inside.mean()), place))
    return Alignment(capture.only(()), tuple(heads), tuple(words))


def lost_letters(capture: Capture) -> str:
    """The letters of the target text that are in no token."""
    spans = [range(token.start, token.end) for token in capture.query_tokens]
    places = set(range(len(capture.target))).difference(*spans)
    return "".join(capture.target[i] for i in sorted(places)).strip()


def heard_weights(capture: Capture, heads: Sequence[Head]) -> Iterator[FloatArray]:
    """Yield each head's weights on the sound (all rows, frames), scaled as if without padding.

    The last row is the attention at the end of the text, if the capture holds it.
    """
    _, frames = heard_rows(capture)
    ends = capture.extras.get(END_READ)  # (layers, heads, n_keys)
    for head in heads:
        weights = capture.weights(head)[:, frames]
        if ends is not None:
            weights = np.concatenate([weights, ends[head.layer, head.head][None, frames]])
        sums = weights.sum(axis=1, keepdims=True)
        yield np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def _words(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The tokens of each word between spaces, as a start and an end.

    A text without spaces is split by `word_groups`.
    """
    own = [n for n, token in enumerate(tokens) if not token.special]
    begins = [n for n in own if n == own[0] or tokens[n].exact[:1].isspace()]
    if len(begins) < 2:
        groups = word_groups([tokens[n] for n in own])
        return [(own[group.start], own[group.stop - 1] + 1) for group in groups]
    return list(zip(begins, [*begins[1:], own[-1] + 1], strict=True))


def path_scores(capture: Capture, heads: Sequence[Head]) -> dict[Head, float]:
    """The share of each head's weight along its monotone path; see `path_shares`."""
    rows, frames = heard_rows(capture)
    return {
        head: float(path_shares(capture.weights(head)[np.ix_(rows, frames)][None])[0])
        for head in heads
    }


# A sound at another rate, and what is drawn of it.

MOST_BINS = 1_500
"""The most parts of an envelope."""


def envelope_of(samples: Waveform) -> Waveform:
    """(bins, 2): the lowest and the highest of each part of the samples."""
    starts = np.unique(np.linspace(0, len(samples), MOST_BINS + 1)[:-1].astype(int))
    ends = (np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts))
    return np.stack(ends, axis=1)


# Another rate, by a windowed sinc: the band below both halves of the rates stays.

CROSSINGS, ROLLOFF = 24, 0.95
"""Zeros of the sinc on each side, and the share of the band that is kept."""
AT_ONCE = 1 << 12
"""Waveform that are computed together."""


def resampled(samples: Waveform, rate: int, to: int) -> Waveform:
    """The same sound with another number of samples a second."""
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


def heard_rows(capture: Capture) -> tuple[list[int], list[int]]:
    """The rows of what was written, with that of its end; and the frames in which there is sound.

    Tokens that only begin a text, such as its language, have no time.
    """
    queries = capture.query_tokens
    first = next((t.index for t in queries if not t.special), 0)
    frames = [t.index for t in capture.key_tokens if t.time is not None and not t.silent]
    return list(range(first, len(queries))), frames


# Words to times: dynamic time warping of attention, as the authors of Whisper align words.


def monotone_paths(costs: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """For matrices (heads, rows, frames) the cheapest monotone path through each.

    It goes from the first row and frame to the last ones by steps of one row, one frame or both.

    Returns:
        (heads, rows, 2): the first frame of each row on the path, and its last one.
    """
    heads, rows, frames = costs.shape
    total = np.full((heads, rows + 1, frames + 1), np.inf, np.float32)
    total[:, 0, 0] = 0
    step = np.zeros((heads, rows + 1, frames + 1), np.int8)
    for diagonal in range(rows + frames - 1):  # whose cells do not depend on each other
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
"""Frames whose median takes the place of a weight."""


def row_starts(weights: Iterable[Waveform], rows: Sequence[int]) -> NDArray[np.int64]:
    """The frame at which each of some rows begins, by the weights (all rows, frames) of each head.

    Each column is standardised over all rows of the decoder, those before the words and behind
    them included; then each of the rows is filtered by a median, and the heads' mean aligned by
    dynamic time warping: Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak
    Supervision", arXiv 2212.04356, as in the authors' `timing.py`. Heads are taken one after
    another.
    """
    total, count = np.zeros((), np.float32), 0
    for own in weights:
        total, count = total + standardised(own, rows), count + 1
    return monotone_paths(-(total / np.float32(count))[None])[0, :, 0]


def standardised(weights: Waveform, rows: Sequence[int]) -> Waveform:
    """(rows, frames): of these rows the deviations of each column, filtered along each row."""
    wide = weights.astype(np.float32)
    spread = wide.std(axis=0)
    apart = wide[rows] - wide.mean(axis=0)
    scaled: Waveform = np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0)
    half = MEDIAN // 2
    if scaled.shape[1] <= half:
        return scaled
    padded = np.pad(scaled, ((0, 0), (half, half)), mode="reflect")
    return np.median(sliding_window_view(padded, MEDIAN, axis=1), axis=2)


NEAR_PATH = 1


def path_shares(weights: Waveform, near: int = NEAR_PATH) -> NDArray[np.float64]:
    """The share of each head's rows (heads, rows, frames) that lies along a monotone path (heads).

    The path is the one with the most weight above its frame's mean over the rows, so that a frame
    that all rows attend to makes none; frames at most `near` away from it in a row count. Rows sum
    to 1 with what is on frames that are not here.
    """
    wide = weights.astype(np.float64)
    ends = monotone_paths(wide.mean(axis=1, keepdims=True) - wide)
    frames = np.arange(wide.shape[2])
    inside = (frames >= ends[..., :1] - near) & (frames <= ends[..., 1:] + near)
    return np.asarray((wide * inside).sum(axis=2).mean(axis=1))


@dataclass
class FindAligningHead:
    """Consumes the rows of a run, and finds the head whose weight follows a sound.

    Its measure is `path_shares` of the model's `alignment_heads`.
    """

    empty: Capture
    shares: dict[Head, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows, self._frames = heard_rows(self.empty)
        self.heads = alignment_heads(self.empty)
        self._begun, self._seen = dict[Head, list[FloatArray]](), list[Head]()

    def __call__(self, block: PatternBlock) -> None:
        own = np.isin(block.queries, self._rows)
        for number, rows in zip(block.heads, block.weights, strict=True):
            head = Head(block.layer, number)
            self._seen.append(head)
            if head not in self.heads:
                continue
            begun = self._begun.setdefault(head, [])
            begun.append(rows[own][:, self._frames])
            if sum(map(len, begun)) == len(self._rows):
                whole = np.concatenate(self._begun.pop(head))
                self.shares[head] = float(path_shares(whole[None])[0])

    def choice(self) -> Choice:
        """The head that follows the sound best; ties go to the earliest head."""
        first = min(self._seen)
        best = max(sorted(self.shares), key=lambda head: self.shares[head], default=first)
        return Choice((best,), "aligned")
