"""Token labels: repeated ones numbered, legible by themselves, in ASCII if needed."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from string import punctuation
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnviz.errors import in_quotes, readable
from attnviz.records.places import LABEL as PATCH
from attnviz.records.tokens import SPECIAL_LABEL, Token


def distinct_labels(tokens: Sequence[Token], *, unicode: bool = True) -> tuple[str, ...]:
    """One label per token; repeated ones as `the#1`, `the#2`, as a user types them.

    Without `unicode`, letters beyond ASCII are written as escapes.
    """
    named = told_apart([standing(token.label) for token in tokens])
    return tuple(named if unicode else map(ascii_only, named))


def told_apart(labels: Sequence[str]) -> list[str]:
    """The labels, with a number on each that occurs more than once."""
    total, seen = Counter(labels), Counter[str]()
    named = []
    for label in labels:
        seen[label] += 1
        named.append(f"{label}#{seen[label]}" if total[label] > 1 else label)
    return named


TIME = re.compile(r"(\d+\.\d\d+)s|(\d+(?:\.\d+)?)(?:[–-]|\\u2013)\d+(?:\.\d+)?s")
"""The label of a frame, or of frames that were merged, with the second at which it begins."""
OWN = re.compile(rf"{TIME.pattern}|{PATCH.pattern}|\[[a-z]+ \d+\]")
"""A time, a place in an inset, a token of a model's own: no text of a user's."""


def name_of(label: str) -> str:
    """The label beside a number: in quotes if it could be read as a part of it (`7`, `.`)."""
    bare = re.sub(r"#\d+$", "", label)
    if OWN.fullmatch(bare):
        return label
    marks = all(character in punctuation for character in bare)
    mark = "'" if '"' in label else '"'
    return f"{mark}{label}{mark}" if marks or re.search(r"[\d\s]", bare) else label


def names_of(tokens: Sequence[Token], *, unicode: bool = True) -> tuple[str, ...]:
    """The distinct labels for places beside numbers."""
    return tuple(map(name_of, distinct_labels(tokens, unicode=unicode)))


def names_of_texts(texts: Sequence[str], *, unicode: bool = True) -> list[str]:
    """A name for each text of a token, for places beside numbers; a token without text is BOS.

    If two of them differ only in spaces, both are in quotes with their spaces.
    """
    bare = [standing(readable(text)) or SPECIAL_LABEL for text in texts]
    spellings: dict[str, set[str]] = {}
    for name, text in zip(bare, texts, strict=True):
        spellings.setdefault(name, set()).add(text)
    named = [
        in_quotes(text) if len(spellings[name]) > 1 else name_of(name)
        for name, text in zip(bare, texts, strict=True)
    ]
    return named if unicode else list(map(ascii_only, named))


def standing(label: str) -> str:
    """The label, with a dotted circle before a combining mark at its start."""
    return f"◌{label}" if label and unicodedata.category(label[0]).startswith("M") else label


def ascii_only(text: str) -> str:
    """The text with every letter beyond ASCII as an escape, such as `\\u695a`."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


# Letters that are written from right to left, kept in their place on a line.
#
# Left-to-right marks (U+200E) around such a run keep the order of the text around it in terminals
# that follow Unicode's bidirectional algorithm (UAX #9). Isolates (U+2066 ... U+2069) would
# do as well, but terminals with tables older than Unicode 6.3 draw them as boxes.

MARK = "\u200e"
BETWEEN = re.compile(r"→|(?<=\s)(?:\.\d\d|1\.00)\b")
"""Separators of names in a title, unlikely in a user's text: `ש → ל .96, ע 1.00`."""


def fenced(text: str) -> str:
    """The text with marks of no width around each run of right-to-left letters, line by line."""
    if text.isascii():
        return text
    lines = []
    for line in text.replace(MARK, "").split("\n"):
        parts, end = [], 0
        for start, stop in runs(line):
            parts += [line[end:start], MARK, line[start:stop], MARK]
            end = stop
        lines.append("".join([*parts, line[end:]]))
    return "\n".join(lines)


def runs(text: str) -> list[tuple[int, int]]:
    """The beginnings and ends of runs of right-to-left letters.

    Marks on a letter belong to it; spaces, signs and digits between two such letters to their run,
    except an arrow and a weight, which separate two names.
    """
    if text.isascii():
        return []
    sides = "".join(map(_side, text))
    for between in BETWEEN.finditer(text):
        start, stop = between.span()
        sides = sides[:start] + "l" * (stop - start) + sides[stop:]
    return [run.span() for run in re.finditer("r(?:[^l]*r)?m*", sides)]


@lru_cache(maxsize=4096)
def _side(letter: str) -> str:
    """A letter's direction: `r`, `l`, `m` for a mark on the letter before it, `-` for none."""
    # Arabic digits (AN) run from left to right, but turn the characters between two of them.
    kinds = {"R": "r", "AL": "r", "AN": "r", "L": "l", "NSM": "m"}
    return kinds.get(unicodedata.bidirectional(letter), "-")


# Colours that several rooms share: maps by name and as tables, and the lightness of colours.

SEQUENTIAL, DIVERGING, LAYERS = "Blues", "RdBu_r", "viridis"
"""Matplotlib's maps in pictures: for values from 0 up (white to dark, like paper and ink), for
values with a sign (blue below zero, red above), and for layers, which have no zero."""


def _colors(table: str) -> tuple[tuple[int, int, int], ...]:
    numbers = bytes.fromhex(table)
    return tuple(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))


VIRIDIS = _colors(
    "440154 470d60 48186a 482374 472e7c 453882 424186 3e4a89 "
    "3a548c 365d8d 32658e 2e6d8e 2b758e 287d8e 25848e 228c8d "
    "1f948c 1e9c89 20a386 25ab82 2eb37c 3aba76 48c16e 58c765 "
    "6ccd5a 7fd34e 93d741 a8db34 c0df25 d5e21a eae51a fde725"
)
INFERNO = _colors("000004 160b39 420a68 6a176e 932667 bc3754 dd513a f37819 fca50a f6d746 fcffa4")
"""Matplotlib's inferno, at eleven places."""
BLUES = _colors("f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b")
"""Matplotlib's Blues (ColorBrewer), which is linear between these nine."""
BLUES_ON_DARK = ((22, 24, 28), *BLUES[:0:-1])
"""The same blues on a dark ground, from nearly its colour to nearly white."""


def between(colors: Sequence[Sequence[int]], count: int) -> Sequence[Sequence[int]]:
    """Interpolate `count` colours evenly from the first of these to the last."""
    at, places = np.linspace(0, len(colors) - 1, count), np.arange(len(colors))
    channels = [np.interp(at, places, channel) for channel in zip(*colors, strict=True)]
    return np.rint(np.transpose(channels)).astype(int).tolist()  # type: ignore[no-any-return]


Rgb: TypeAlias = tuple[int, int, int]
SIGNED: tuple[Rgb, Rgb, Rgb] = ((247, 247, 247), (33, 102, 172), (178, 24, 43))
"""Zero, the lowest and the highest value with a sign, near the middle and the ends of RdBu."""
SIGNED_ON_DARK: tuple[Rgb, Rgb, Rgb] = ((36, 39, 46), (103, 179, 250), (255, 125, 100))
"""The colours of signed values on a dark ground: zero is near its colour, the ends far from it."""
PALE = 0.55
"""Up to this share of a value with a sign, letters in the text colour are legible."""


def signed_color(share: float, of: tuple[Rgb, Rgb, Rgb] = SIGNED) -> Rgb:
    """Red, green and blue of a value from -1 to 1."""
    zero, below, above = of
    end = below if share < 0 else above
    return tuple(  # type: ignore[return-value]
        round(start + (far - start) * abs(share)) for start, far in zip(zero, end, strict=True)
    )


def is_light(color: ArrayLike, least: float = 110) -> NDArray[np.bool_]:
    """Whether black letters are more legible than white ones on colours (..., 3), 0 to 255.

    They are if the luma (ITU-R BT.601) is more than `least`.
    """
    return np.asarray(color, np.float32) @ LUMA > least


LUMA = np.array([0.299, 0.587, 0.114], np.float32)
