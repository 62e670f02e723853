"""Which tokens are pieces of one character or one word, as a person reads them."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnviz.data.capture import Capture
from attnviz.data.tokens import Token
from attnviz.data.transforms import Unit

# An ideograph or a kana is a word of its own: their texts put no spaces between words.
_IDEOGRAPH = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ALONE = re.compile(f"[{_IDEOGRAPH}]")
_JOINERS = "\u200c\u200d'’"
_JOINER = "\u200d"
# joiners, skin tones, the tags of flags such as Scotland's
_EXTENDS = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_FLAG_LETTERS = {chr(code) for code in range(0x1F1E6, 0x1F200)}  # two of them are one flag


def groups_of(capture: Capture, unit: Unit) -> tuple[list[range], list[range]]:
    """Which query tokens, and which key tokens, are pieces of one character or word."""
    of_queries, of_keys = capture.texts
    queries = _groups(capture.query_tokens, of_queries, unit)
    return queries, _groups(capture.key_tokens, of_keys, unit)


def word_groups(tokens: Sequence[Token]) -> list[range]:
    """Which tokens of a text are pieces of one word, as ranges of their places in `tokens`."""
    text = [" "] * max((token.end for token in tokens), default=0)
    for token in tokens:
        text[token.start : token.end] = token.text
    return _groups(tokens, "".join(text), "words")


def _groups(tokens: Sequence[Token], text: str, unit: Unit) -> list[range]:
    """Which tokens go together, as ranges of positions."""
    places = [_seen_of(text), *([_word_of(text)] if unit == "words" else [])]
    starts = [
        i for i, token in enumerate(tokens) if i == 0 or not _together(tokens[i - 1], token, places)
    ]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(tokens)], strict=True)]


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
