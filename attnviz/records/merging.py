"""One policy by which tokens merge: pieces of a character or a word, of an image, of a time."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture
from attnviz.records.places import NEAR, PADDING, TIME
from attnviz.records.tokens import Token, numbered
from attnviz.records.transforms import Unit

WHOLE: Unit = "images"
"""The unit of all tokens of one inset."""


def groups_of(capture: Capture, unit: Unit) -> tuple[list[range], list[range]]:
    """The query and the key tokens that are pieces of one character, word, image or time."""
    of_queries, of_keys = capture.texts
    queries = _groups(capture.query_tokens, of_queries, unit)
    if unit == "patches":
        return queries, [range(i, i + 1) for i in range(len(capture.key_tokens))]
    return queries, _groups(capture.key_tokens, of_keys, unit)


def word_groups(tokens: Sequence[Token]) -> list[range]:
    """The tokens of a text that are pieces of one word, as ranges of places in `tokens`."""
    text = [" "] * max((token.end for token in tokens), default=0)
    for token in tokens:
        text[token.start : token.end] = token.text
    return _groups(tokens, "".join(text), "words")


def _groups(tokens: Sequence[Token], text: str, unit: Unit) -> list[range]:
    if unit == "frames":
        starts = bin_starts(tokens)
    elif unit in ("images", "patches"):
        same = [False, *(b.inset and a.image == b.image for a, b in pairwise(tokens))]
        starts = [i for i, _ in enumerate(tokens) if not same[i]]
    else:
        places = [_seen_of(text), *([_word_of(text)] if unit == "words" else [])]
        apart = (not _together(before, token, places) for before, token in pairwise(tokens))
        starts = [i for i, begins in enumerate([bool(tokens), *apart]) if begins]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(tokens)], strict=True)]


def wholes_shown(
    capture: Capture, chosen: Sequence[str], *, legible: bool, bins: bool
) -> tuple[Unit, ...]:
    """What people are shown in the place of its parts, unless a part is all there is, or is chosen.

    `legible`: people read it, to whom a patch says little; `bins`: there is no room for each frame.
    """
    apart = capture.beside or any(name.startswith("@") for name in chosen)
    apart |= len(capture.images) == 1 and all(token.inset for token in capture.key_tokens)
    frames = bins and capture.timed and not any(map(TIME.fullmatch, chosen))
    whole: tuple[Unit, ...] = (WHOLE,) if legible and capture.images and not apart else ()
    return (*whole, "frames") if frames else whole


def joined(
    capture: Capture, tokens: Sequence[Token], groups: Sequence[range], text: str
) -> tuple[Token, ...]:
    """The tokens with each group as one: named by its text, its seconds, or as a whole image."""
    wholes = []
    for group in groups:
        first, last = tokens[group.start], tokens[group.stop - 1]
        if first.inset and len(group) > 1:
            first = replace(first, name=capture.inset_name(first.image), patch=None)
        elif len(group) > 1:
            end = max(first.end, last.end)
            first = replace(first, text=text[first.start : end], end=end, part=None)
        wholes.append(in_time(first, last))
    return numbered(wholes)


# Which tokens are pieces of one character or one word, as a person reads them.

# An ideograph or a kana is a word of its own: their texts put no spaces between words.
_IDEOGRAPH = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ALONE = re.compile(f"[{_IDEOGRAPH}]")
_JOINERS = "\u200c\u200d'’"
_JOINER = "\u200d"
# joiners, skin tones, the tags of flags such as Scotland's
_EXTENDS = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_FLAG_LETTERS = {chr(code) for code in range(0x1F1E6, 0x1F200)}  # two of them are one flag


def _together(before: Token, token: Token, places: Sequence[NDArray[np.int64]]) -> bool:
    """Whether two neighbours are pieces of one character, or of one word."""
    if before.special or token.special:
        return False
    if token.part is not None and token.part[0] > 1:
        return True
    if before.end != token.start or token.start == len(places[0]):
        return False
    if before.start == before.end:  # it only says that what follows begins a word
        return True
    follows, ends = token.start, before.end - 1
    if before.text == " " and len(places) > 1:
        return bool(places[1][follows] >= 0)
    return any(place[follows] >= 0 and place[follows] == place[ends] for place in places)


def _seen_of(text: str) -> NDArray[np.int64]:
    """For each character the number of what a reader sees as one: a letter with its marks, a
    flag, a family. Unicode Standard Annex 29, "extended grapheme clusters", without Hangul."""
    place = np.zeros(len(text), np.int64)
    number, flags = -1, 0
    for i, character in enumerate(text):
        flags = flags + 1 if character in _FLAG_LETTERS else 0
        joined = i > 0 and (
            _EXTENDS.match(character) is not None
            or unicodedata.category(character).startswith("M")
            or (text[i - 1] == _JOINER and not character.isspace())
            or (flags > 0 and flags % 2 == 0)
        )
        number += not joined
        place[i] = number
    return place


def _word_of(text: str) -> NDArray[np.int64]:
    """For each character the number of its word, -1 outside of words.

    A combining mark belongs to the letter before it; an apostrophe or a joiner between two
    letters to their word.
    """
    place = np.full(len(text), -1)
    number, word = -1, False
    for i, character in enumerate(text):
        letter = character.isalnum() or character == "_"
        mark = word and unicodedata.category(character).startswith("M")
        joint = word and character in _JOINERS and text[i + 1 : i + 2].isalnum()
        alone = _ALONE.match(character) is not None
        if letter and (not word or alone):
            number += 1
        word = (letter or mark or joint) and not alone
        if letter or mark or joint:
            place[i] = number
    return place


# Frames merged to bins, so that a table can name them.

WIDTHS = (0.02, 0.04, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_IN_TABLE = 16
"""The most bins of what was heard."""


def bin_starts(tokens: Sequence[Token]) -> list[int]:
    """The starts of bins of neighbouring frames; padding is one bin, other tokens their own."""
    spans = [token.time for token in tokens if token.time is not None and not token.silent]
    long = spans[-1][1] - spans[0][0] if spans else 0.0
    width = next((w for w in WIDTHS if long <= w * MOST_IN_TABLE), long / MOST_IN_TABLE)
    bins: list[object] = [
        PADDING if t.silent else int(sum(t.time) / 2 / width) if t.time else (t.index,)
        for t in tokens
    ]
    return [i for i, own in enumerate(bins) if i == 0 or own != bins[i - 1]]


def in_time(first: Token, last: Token) -> Token:
    """Frames of a sound as one token, named by its seconds; a token of a text as it is.

    The name has as many decimals as its ends need, and at most two: `1.2–1.4s`.
    """
    if first.time is None or last.time is None or first == last:
        return first
    time = first.time[0], last.time[1]
    few = next((n for n in (0, 1) if all(abs(round(at, n) - at) < NEAR for at in time)), 2)
    name = PADDING if first.silent else f"{time[0]:.{few}f}–{time[1]:.{few}f}s"
    return replace(first, name=name, time=time)
