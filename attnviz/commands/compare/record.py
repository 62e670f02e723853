"""Comparisons of one word in several texts, or of one text in two models."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile
from math import log
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head, Pairing
from attnviz.records.metrics import entropy

Basis: TypeAlias = Literal["rows", "shares"]
"""The things compared: whole rows, if their keys stand at the same positions, or their shares."""
SHARES = ("self", "first", "previous", "others")
"""The keys that share the weight of a row: the query, the first token, the previous, the rest."""


@dataclass(frozen=True)
class Sight:
    """One row of a head in one text: its `shares`, and its strongest links (key, weight)."""

    shares: Sequence[float]
    links: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class HeadDifference:
    """The difference of a head's attention in several texts, from 0 (alike) to 1 (disjoint).

    `sights`: one for each text, of its query; empty where all queries were compared. `moved`:
    between two images, the keys with the largest gain and the largest loss, and how much these are:
    the second's weight minus the first's, as a mean over all rows.
    """

    head: Head
    difference: float
    sights: Sequence[Sight] = ()
    moved: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, eq=False)
class TextComparison:
    """Several texts through one model.

    `captures`: the transformed captures with their patterns; `queries`: the position of the word
    in each, None where all rows were compared; `by`: the unit of comparison; `heads`: the largest
    difference first; `cosines`: the mean cosine over all pairs of the word's vectors, before
    layer 0 and after each layer; empty without a word.
    """

    captures: Sequence[Capture]
    queries: Sequence[int] | None
    by: Basis
    heads: Sequence[HeadDifference]
    cosines: Sequence[float] = ()

    @property
    def shared(self) -> int:
        """The number of tokens at the beginning that are the same in all texts."""
        texts = [[(t.text, t.special) for t in captured.key_tokens] for captured in self.captures]
        same = (len(set(each)) == 1 for each in zip(*texts, strict=False))
        return sum(takewhile(bool, same))

    @property
    def identical(self) -> bool:
        """Whether all texts have the same tokens, and the same images."""
        first, *others = ([image.raw.pixels for image in c.images] for c in self.captures)
        same = all(all(map(np.array_equal, first, other)) for other in others)
        return same and all(len(each.key_tokens) == self.shared for each in self.captures)

    @property
    def of_images(self) -> bool:
        """Whether images are compared, and not texts."""
        return self.captures[0].image_alone

    @property
    def alike_so_far(self) -> bool:
        """Whether a causal model has read the same text at the word, wherever the texts differ."""
        if self.queries is None or not self.captures[0].causal:
            return False
        return len(set(self.queries)) == 1 and self.queries[0] < self.shared


@dataclass(frozen=True)
class HeadMatch:
    """A head and a head of another model; a similarity of 1 is the same rows."""

    head: Head
    other: Head
    similarity: float


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """One text through two models.

    `captures`: both over the same units, tokens or words. `matches`: a pair for each head of the
    first model, with the head of the same name, the largest change first; or with its best match,
    the most similar first. `heads`, `others`: the rows and columns of `similarity` (heads, others),
    NaN where there is nothing to compare. `silent`: heads of the first model that have no weight on
    what is compared. `grids`: the rows and columns of both models' patches, where these were
    compared on the finer grid.
    """

    captures: tuple[Capture, Capture]
    words: bool
    pair: Pairing
    matches: Sequence[HeadMatch]
    heads: tuple[Head, ...]
    others: tuple[Head, ...]
    similarity: NDArray[np.float64]
    silent: tuple[Head, ...] = ()
    grids: tuple[tuple[int, int], ...] = ()


Exact = NDArray[np.float64]


def divergence(distributions: Sequence[NDArray[np.floating]]) -> Exact:
    """The Jensen-Shannon divergence of k distributions, from 0 (the same) to 1 (disjoint).

    H(mean) - mean(H), divided by ln k, its largest possible value; Lin 1991, "Divergence Measures
    Based on the Shannon Entropy", IEEE Transactions on Information Theory 37(1).

    Args:
        distributions: k arrays (..., n); each row is scaled to a sum of 1, unless it is empty.

    Returns:
        (...), in float64.
    """
    rows = np.stack(distributions).astype(np.float64)  # (k, ..., n)
    sums = rows.sum(axis=-1, keepdims=True)
    rows = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
    mixed = entropy(rows.mean(axis=0)) - entropy(rows).mean(axis=0)
    shares: Exact = np.clip(mixed / log(len(rows)), 0.0, 1.0) + 0.0  # never -0.0
    return shares


def shares_of(row: FloatArray, query: int) -> tuple[float, float, float, float]:
    """The weight of one row (n) on the query itself, the first token, the one before, others.

    Each key counts once, for the first of these that applies.
    """
    left = np.asarray(row, np.float64).copy()
    taken = []
    for key in (query, 0, query - 1):
        inside = 0 <= key < len(left)
        taken.append(float(left[key]) if inside else 0.0)
        if inside:
            left[key] = 0.0
    on_itself, first, previous = taken
    return on_itself, first, previous, float(left.sum())


def mean_cosine(vectors: Sequence[FloatArray]) -> Exact:
    """The mean cosine over all pairs of k arrays (layers, d): (layers); NaN where a vector is 0."""
    exact = np.stack(vectors).astype(np.float64)  # (k, layers, d)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    unit = exact / np.where(lengths > 0, lengths, np.nan)
    pairs = [(a * b).sum(axis=-1) for a, b in combinations(unit, 2)]
    means: Exact = np.mean(pairs, axis=0)
    return means


def similarities(ours: FloatArray, theirs: FloatArray) -> Exact:
    """The similarity of every head of one model to every head of another, (a, b); 1 is the same.

    Rows that are empty in either pattern are left out; NaN where no row is left.

    Args:
        ours: the patterns of the one model, (a, n, n).
        theirs: the patterns of the other over the same units, (b, n, n).
    """
    similarity = np.full((len(ours), len(theirs)), np.nan)
    for i, pattern in enumerate(ours):
        for j, other in enumerate(theirs):
            both = pattern.any(axis=1) & other.any(axis=1)
            if both.any():
                similarity[i, j] = 1.0 - float(divergence([pattern[both], other[both]]).mean())
    return similarity


# Patterns beside each other; where two of them align, with their difference.


@dataclass(frozen=True, eq=False)
class Panel:
    """One of several patterns; `query` is the row to mark."""

    title: str
    capture: Capture
    head: Head
    weights: FloatArray
    query: int | None = None


def texts_beside(comparison: TextComparison) -> list[Panel]:
    """The first head in all texts."""
    head, queries = comparison.heads[0].head, comparison.queries
    return [
        Panel(
            f"{'image' if comparison.of_images else 'text'} {i + 1}",
            captured,
            head,
            captured.weights(head),
            queries[i] if queries else None,
        )
        for i, captured in enumerate(comparison.captures)
    ]


def models_beside(comparison: ModelComparison) -> list[Panel]:
    """The first pair of heads."""
    match = comparison.matches[0]
    heads = zip(comparison.captures, (match.head, match.other), strict=True)
    return [Panel(f"{c.model.name} {head}", c, head, c.weights(head)) for c, head in heads]


def difference_of(sides: Sequence[Panel], basis: Basis = "rows") -> FloatArray | None:
    """The first minus the second pattern; None where they do not align."""
    patterns = [side.weights for side in sides]
    aligned = basis == "rows" and len(sides) == 2 and patterns[0].shape == patterns[1].shape
    return patterns[0] - patterns[1] if aligned else None


@dataclass(frozen=True, eq=False)
class StreamDifference:
    """The mean stream at the last tokens of one set of texts, less that of another.

    `layers`: those at whose input it is taken. `texts`: the number in each set. `vectors`
    (layers, d): the difference; `lengths` (layers): the mean length of a text's vector.
    """

    model: str
    layers: Sequence[int]
    texts: tuple[int, int]
    vectors: FloatArray
    lengths: FloatArray


def stream_difference(
    model: str, layers: Sequence[int], first: FloatArray, second: FloatArray
) -> StreamDifference:
    """The difference of two sets of vectors (layers, texts, d)."""
    means = [each.mean(axis=1, dtype=np.float64) for each in (first, second)]
    lengths = np.linalg.norm(np.concatenate([first, second], axis=1), axis=2).mean(axis=1)
    texts = first.shape[1], second.shape[1]
    return StreamDifference(model, layers, texts, (means[0] - means[1]).astype(np.float32), lengths)
