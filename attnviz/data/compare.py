"""Comparisons of one word in several texts, or of one text in two models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import HeadMap
from attnviz.records.heads import Head

By: TypeAlias = Literal["rows", "shares"]
"""What is compared: whole rows, if their keys stand at the same positions, or their shares."""
SHARES = ("self", "first", "previous", "others")
"""Where the weight of a row goes: the query itself, the first token, the one before, others."""


@dataclass(frozen=True)
class Sight:
    """What a head's query attends to in one text: `shares`, and its strongest (key, weight)."""

    shares: Sequence[float]
    links: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class HeadDifference:
    """How differently a head attends in several texts, from 0 (alike) to 1 (disjoint).

    `sights`: one for each text, of the one query; empty where all queries were compared.
    """

    head: Head
    difference: float
    sights: Sequence[Sight] = ()


@dataclass(frozen=True, eq=False)
class TextComparison:
    """Several texts through one model.

    `captures`: the transformed captures with their patterns; `queries`: the position of the word
    in each, None where all rows were compared; `by`: what was compared; `heads`: the largest
    difference first; `cosines`: the mean cosine over all pairs of the word's vectors, before
    layer 0 and after each layer; empty without a word.
    """

    captures: Sequence[Capture]
    queries: Sequence[int] | None
    by: By
    heads: Sequence[HeadDifference]
    cosines: Sequence[float] = ()


Pairing: TypeAlias = Literal["same", "best"]
"""A head is compared with the head of the same name, or with the most similar one."""


@dataclass(frozen=True)
class HeadMatch:
    """A head and a head of another model; a similarity of 1 is the same rows."""

    head: Head
    other: Head
    similarity: float


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """One text through two models.

    `captures`: both over the same units, tokens or words. `matches`: for each head of the first
    model the one that it is paired with: of the same name, the largest change first; or the best
    match, the most similar first. `heads`, `others`: those of the rows and columns of `similarity`
    (heads, others), NaN where there is nothing to compare. `silent`: heads of the first model that
    have no weight on what is compared.
    """

    captures: tuple[Capture, Capture]
    words: bool
    pair: Pairing
    matches: Sequence[HeadMatch]
    heads: tuple[Head, ...]
    others: tuple[Head, ...]
    similarity: NDArray[np.float64]
    silent: tuple[Head, ...] = ()


@dataclass(frozen=True, eq=False)
class Side:
    """One of several patterns drawn beside each other; `query` is the row to mark."""

    title: str
    capture: Capture
    map: HeadMap
    query: int | None = None


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Patterns on one scale; where two of them align, their `difference` (first minus second)."""

    sides: Sequence[Side]
    difference: FloatArray | None
