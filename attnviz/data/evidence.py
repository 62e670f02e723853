"""Where a text may show a behaviour: the queries it is about, and the keys that may be right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Behaviour: TypeAlias = Literal["adjectives", "pronouns", "mystery", "senses", "induction"]


@dataclass(frozen=True)
class Occasion:
    """A query word and the words that may be its keys, by the positions of their tokens."""

    word: tuple[int, ...]
    keys: tuple[tuple[int, ...], ...]

    @property
    def query(self) -> int:
        """The position whose row is meant: the word's last token, which sees all of it."""
        return self.word[-1]

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of all keys, in order."""
        return tuple(sorted({position for key in self.keys for position in key}))


Evidence: TypeAlias = Mapping[Behaviour, tuple[Occasion, ...]]
"""The occasions of each behaviour; none where it cannot occur in the text."""
