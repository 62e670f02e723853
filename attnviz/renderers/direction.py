"""Letters that are written from right to left, kept in their place on a line.

A terminal that follows Unicode's bidirectional algorithm (UAX #9) would lay out
`שלום → עולם 0.50` from its right end, arrow and numbers with it. Left-to-right marks
(U+200E) around such a run stop that: inside it the letters run as they should, and all
that stands around it keeps its order, be it an arrow, a number or another run.

Why marks and not isolates (U+2066 ... U+2069), which say the same: every implementation
since Unicode 1.1 knows the mark, and every table of widths, old ones too, counts it as no
cell; isolates came with 6.3, and a terminal with an older table draws a box and moves
whatever follows. A mark also tells a terminal that looks for the direction of the line.
Marks from outside never come here: `readable` escapes them. Pictures use them, too: what
draws or shows a picture follows the same algorithm.
"""

import re
import unicodedata
from functools import lru_cache

MARK = "\u200e"
BETWEEN = re.compile(r"→|(?<=\s)(?:\.\d\d|1\.00)\b")
"""What a title has between names, and no text of the user's is likely to: `ש → ל .96, ע 1.00`."""


def fenced(text: str) -> str:
    """The text with a mark around each run of right-to-left letters; of the same width.

    Each line by itself, as each is laid out by itself.
    """
    if text.isascii():
        return text
    return "\n".join(_fenced_line(line.replace(MARK, "")) for line in text.split("\n"))


def _fenced_line(text: str) -> str:
    parts, end = [], 0
    for start, stop in runs(text):
        parts += [text[end:start], MARK, text[start:stop], MARK]
        end = stop
    return "".join([*parts, text[end:]])


def runs(text: str) -> list[tuple[int, int]]:
    """Where the runs of right-to-left letters begin and end.

    Spaces, signs and digits between two such letters belong to their run, but for an arrow and
    a weight, which stand between two names; the marks that a letter carries (vowel points)
    belong to the letter.
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
    """`r`, `l`, `m` for a mark on the letter before it, `-` for what has no direction."""
    # Arabic digits (AN) run from left to right, but turn what stands between two of them.
    kinds = {"R": "r", "AL": "r", "AN": "r", "L": "l", "NSM": "m"}
    return kinds.get(unicodedata.bidirectional(letter), "-")
