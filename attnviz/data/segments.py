"""Segments: named parts of a prompt, of which every token belongs to exactly one."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from attnviz.data.tokens import Token
from attnviz.errors import InputError, option

Slice: TypeAlias = tuple[int, int]
"""From a character of the prompt up to, and without, another."""
OTHER, TEMPLATE = "other", "template"
"""The segment of what no other segment holds: of a prompt, and of a chat."""
RESTS = (OTHER, TEMPLATE)
TAKEN = frozenset((*RESTS, "sink", "special", "answer"))
"""Names of columns that are no segment of a user's."""


@dataclass(frozen=True)
class Segment:
    """A named part of a prompt: one slice of it or several."""

    name: str
    slices: tuple[Slice, ...]


def partition(
    text: str, segments: Iterable[Segment], rest: str = OTHER, *, blanks: bool = False
) -> tuple[Segment, ...]:
    """The segments in the order of the prompt, with one for what they leave over.

    That one stands last where it is nothing but blanks.

    Args:
        text: the prompt.
        segments: parts of it, in any order.
        rest: the name of what they leave over.
        blanks: they are left over, too, where they stand alone between two segments; else they
            need none, and count for the one before.

    Raises:
        InputError: two of them overlap.
    """
    given = tuple(segments)
    taken = sorted((slice_, s.name) for s in given for slice_ in s.slices)
    gaps, end, before = list[Slice](), 0, ""
    for (start, after), name in taken:
        if start < end:
            raise InputError(
                f"the segments {before!r} and {name!r} overlap",
                f"make each {option('segments')} end before the next begins",
            )
        gaps.append((end, start))
        end, before = after, name
    gaps.append((end, len(text)))
    gaps = [(a, b) for a, b in gaps if text[a:b].strip() or (blanks and a < b)]
    left = [Segment(rest, tuple(gaps))] if gaps else []
    blank = not any(text[a:b].strip() for a, b in gaps)  # which stands at the end
    ordered = sorted([*given, *([] if blank else left)], key=lambda segment: segment.slices[0])
    return (*ordered, *(left if blank else []))


def segment_of(tokens: Sequence[Token], segments: Sequence[Segment], text: str) -> list[int | None]:
    """For each token the index of its segment: that of its first character that is no space.

    None for a special token, which has no character.
    """
    starts = sorted((start, i) for i, s in enumerate(segments) for start, _ in s.slices)

    def of(token: Token) -> int | None:
        if token.special:
            return None
        slice_ = text[token.start : token.end]
        blanks = len(slice_) - len(slice_.lstrip()) if slice_.strip() else 0
        before = bisect_right(starts, (token.start + blanks, len(segments)))
        return starts[max(before, 1) - 1][1]

    return [of(token) for token in tokens]
