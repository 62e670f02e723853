"""Comparisons: one word in several texts, or one text in two models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.data.capture import Capture, FloatArray
from attnviz.data.exhibit import HeadMap
from attnviz.data.head import Head

By: TypeAlias = Literal["rows", "shares"]
"""What is compared: whole rows, whose keys stand in the same places, or shares of them."""
SHARES = ("self", "first", "previous", "others")
"""Of a row: on the query itself, else the first token, else the one before, else elsewhere."""


@dataclass(frozen=True)
class Sight:
    """What a head's query looks at in one text: its `shares`, and its strongest (key, weight)."""

    shares: Sequence[float]
    links: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class HeadDifference:
    """How differently a head attends in several texts: 0 alike, 1 nothing in common.

    `sights`: of its one query, text by text; none where all queries were compared.
    """

    head: Head
    difference: float
    sights: Sequence[Sight] = ()


@dataclass(frozen=True, eq=False)
class TextComparison:
    """Several texts through one model.

    `captures`: with the transforms named, and with patterns; `queries`: the position of the word
    in each, None where all rows were compared; `by`: what the differences are of; `heads`: the
    largest difference first; `cosines`: how alike the word's vectors are, as the mean of all
    pairs, before layer 0 and after each layer; none without a word.
    """

    captures: Sequence[Capture]
    queries: Sequence[int] | None
    by: By
    heads: Sequence[HeadDifference]
    cosines: Sequence[float] = ()


@dataclass(frozen=True)
class HeadMatch:
    """A head, and of another model the head whose rows are most like its own; 1 is the same."""

    head: Head
    other: Head
    similarity: float


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """One text through two models.

    `captures`: both over the same units, tokens or words; `matches`: the best for each head of
    the first model, the most alike first; `silent`: those of the first that have no weight on
    what is compared.
    """

    captures: tuple[Capture, Capture]
    words: bool
    matches: Sequence[HeadMatch]
    silent: tuple[Head, ...] = ()


@dataclass(frozen=True, eq=False)
class Side:
    """One pattern of several that are drawn beside each other; `query`: the row that is meant."""

    title: str
    capture: Capture
    map: HeadMap
    query: int | None = None


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Patterns on one scale; where two of them align, the `difference` (first less second)."""

    sides: Sequence[Side]
    difference: FloatArray | None
