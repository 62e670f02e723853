"""Tokens: the pieces a text is cut into, and the labels that a person reads."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from attnviz.errors import in_quotes, readable

SPECIAL_LABEL = "BOS"
MASKS = ("[MASK]", "<mask>")
"""The names of masks; a text may have either, whatever the model's own is."""


@dataclass(frozen=True)
class Token:
    """One token of a text.

    `text` is the exact slice of the source, `start` and `end` are its offsets in characters.
    Tokens that share one character (a letter cut into bytes) all carry that character's slice,
    and `part` says which of them this is: (1, 3) is the first of three. A token that only marks
    the beginning of a word has the space before the word, or an empty slice if there is none.
    A special token (BOS, [SEP]) has no slice: its offsets are equal, its text is empty, and
    `name` is its label. `spaced`: the token begins with a space that its slice leaves out, as some
    tokenizers count their offsets.
    """

    index: int
    id: int
    text: str
    start: int
    end: int
    special: bool = False
    part: tuple[int, int] | None = None
    name: str = SPECIAL_LABEL
    spaced: bool = False

    @property
    def exact(self) -> str:
        """The text of the token itself, with its leading space."""
        return f" {self.text}" if self.spaced else self.text

    @property
    def label(self) -> str:
        """The token as a person reads it: without space mark, escape codes or invisible marks."""
        if self.special:
            return self.name
        label = readable(self.text) or "␣"
        return f"{label} {self.part[0]}/{self.part[1]}" if self.part else label

    @property
    def quoted(self) -> str:
        """The exact text in quotes, with its leading space; the label of a special token."""
        if self.special:
            return self.name
        text = in_quotes(self.exact)
        return f"{text} {self.part[0]}/{self.part[1]}" if self.part else text


def numbered(tokens: Iterable[Token], first: int = 0) -> tuple[Token, ...]:
    """The same tokens, numbered from `first` on."""
    return tuple(replace(token, index=i) for i, token in enumerate(tokens, start=first))
