"""The alignment of a text's words with the seconds of a sound, by attention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.errors import UsageError, option
from attnviz.records.capture import END_READ, Capture, FloatArray
from attnviz.records.heads import Head, every_head
from attnviz.records.positions import word_groups
from attnviz.records.sounds import ALIGNMENT, heard_rows, path_shares, row_starts
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
