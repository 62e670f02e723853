"""Tokens: the pieces a text is cut into, and how a person reads them."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

SPECIAL_LABEL = "BOS"


@dataclass(frozen=True)
class Token:
    """One token of a text.

    `text` is the exact slice of the source, `start` and `end` its offsets in
    characters. Tokens that share one character (a letter cut into bytes) all carry
    that character's slice, and `part` says which one this is: (1, 3) is the first of
    three. A token that only says that a word begins has the space before the word, or, where
    none stands there, an empty slice. A special token (BOS, [SEP]) has no slice: its offsets
    are equal, its text is empty, and `name` is what it is called.
    """

    index: int
    id: int
    text: str
    start: int
    end: int
    special: bool = False
    part: tuple[int, int] | None = None
    name: str = SPECIAL_LABEL

    @property
    def label(self) -> str:
        """The token as a person reads it: no space mark, nothing that a terminal would obey."""
        if self.special:
            return self.name
        label = readable(self.text) or "␣"
        return f"{label} {self.part[0]}/{self.part[1]}" if self.part else label


def numbered(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """The same tokens with indices from 0."""
    return tuple(replace(token, index=i) for i, token in enumerate(tokens))


def readable(text: str) -> str:
    """A text with its outer spaces dropped and every control character escaped.

    Spaces alone become `␣`, so that no label is empty. Format characters (category
    Cf: direction marks, joiners) are escaped too, as they would reorder or hide what
    stands beside them.
    """
    bare = text.strip(" ") or "␣" * len(text)
    return "".join(_escaped(character) for character in bare)


def _escaped(character: str) -> str:
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    if character == "\r":
        return "\\r"
    if unicodedata.category(character)[0] != "C" and character not in "\u2028\u2029":
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
