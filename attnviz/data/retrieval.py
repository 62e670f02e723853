"""Retrieval heads: those that look at the token that is copied."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.records.capture import ModelIdentity
from attnviz.records.heads import Head

RETRIEVES = 0.1
"""The least score of a retrieval head (Wu et al. 2024)."""
MOST = 16
"""So many of them, the strongest, are joined where an answer's rows are shown."""


@dataclass(frozen=True)
class Needles:
    """How retrieval is measured.

    A needle, a name with `length` random tokens, stands at each of `depths` (shares of the filler)
    in a filler of `filler` tokens; the text ends with the name again. `samples` are drawn anew for
    each depth, from `seed` on.
    """

    length: int = 8
    filler: int = 192
    depths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    samples: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Retrieval:
    """The score of each head: the share of copied tokens that its strongest key is."""

    model: ModelIdentity
    needles: Needles
    scores: tuple[tuple[Head, float], ...]

    @property
    def ranked(self) -> Sequence[tuple[Head, float]]:
        """Every head with its score, the strongest first."""
        return sorted(self.scores, key=lambda each: (-each[1], each[0]))

    @property
    def heads(self) -> Sequence[Head]:
        """The retrieval heads, strongest first."""
        return [head for head, score in self.ranked if score >= RETRIEVES][:MOST]
