"""Keys left out of patterns, such as the sink; what is left of a row is brought to 1 again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import VALUE_NORMS, Capture, FloatArray, LayerPattern
from attnviz.records.exhibit import HeadMap
from attnviz.records.positions import groups_of
from attnviz.records.tokens import Token, numbered
from attnviz.records.transforms import How, Merged, NormBased, Over, Unit

# A call between the layers of a long transform, which can stop it.

Between: TypeAlias = Callable[[], None]
"""Is called before each step of a transform; an error that it raises ends the transform."""

T = TypeVar("T")


def go_on() -> None:
    """Let the transform go on to its end."""


def each(items: Iterable[T], between: Between) -> Iterator[T]:
    """The items, with a call before each."""
    for item in items:
        between()
        yield item


NOTHING = 1e-6
"""A row with less left than this attended to nothing else; rounding leaves it no zero."""


@dataclass(frozen=True, eq=False)
class Dropped:
    """Maps without some keys; `share` is how much of the weight of the queries shown was on them.

    `empty` are the queries that attended to nothing else; their rows are zero.
    """

    maps: tuple[HeadMap, ...]
    share: float
    empty: tuple[int, ...]


def without_keys(
    maps: Sequence[HeadMap], keys: Sequence[int], queries: Sequence[int], between: Between = go_on
) -> Dropped:
    """Take keys (columns) out of maps (n_queries, n_keys), and renormalise.

    `queries`: the rows that are shown and that might attend to other keys.
    """
    kept, shares = [], []
    for head_map in each(maps, between):
        weights = head_map.weights.astype(np.float32, copy=True)
        sums = weights.sum(axis=1)
        weights[:, list(keys)] = 0
        left = weights.sum(axis=1)
        shares.append(np.divide(left, sums, out=np.zeros_like(left), where=sums > 0))
        out, there = np.zeros_like(weights), left[:, None] > NOTHING
        scaled = np.divide(weights, left[:, None], out=out, where=there)
        kept.append(replace(head_map, weights=scaled))
    left_of = np.array(shares)[:, list(queries)]  # (maps, queries shown)
    some: NDArray[np.bool_] = np.any(left_of > NOTHING, axis=0)
    empty = tuple(query for query, able in zip(queries, some.tolist(), strict=True) if not able)
    return Dropped(tuple(kept), float(1 - left_of.mean()) if queries else 1.0, empty)


# Tokens merged to characters or words: the patterns between what a person reads.
#
# Attention to a merged key is the sum over its pieces, attention from a merged query the
# mean over its pieces, so that rows still sum to 1. Clark et al. 2019, "What Does BERT
# Look At?", arXiv 1906.04341, section 4.1.


def merged(capture: Capture, unit: Unit, between: Between = go_on) -> Capture:
    """The same capture with the pieces of each character, or of each word, as one token.

    A token that holds several characters stays one; so does one that reaches over the
    end of a word, together with what it touches. A character is what a reader sees as one.
    Texts in Chinese or Japanese put no spaces between words: there a word is one character.
    """
    of_queries, of_keys = capture.texts
    queries, keys = groups_of(capture, unit)
    layers = tuple(
        LayerPattern(layer.layer, layer.heads, _pooled(layer.weights, queries, keys))
        for layer in each(capture.layers, between)
    )
    return replace(
        capture,
        layers=layers,
        query_tokens=_joined(capture.query_tokens, queries, of_queries),
        key_tokens=_joined(capture.key_tokens, keys, of_keys),
        transforms=(*capture.transforms, Merged(unit)),
    )


def _pooled(weights: FloatArray, queries: Sequence[range], keys: Sequence[range]) -> FloatArray:
    """(heads, n_queries, n_keys) to (heads, groups, groups): sums over keys, means over queries."""
    summed = np.add.reduceat(weights, [group.start for group in keys], axis=2)
    total = np.add.reduceat(summed, [group.start for group in queries], axis=1)
    sizes = np.array([len(group) for group in queries], dtype=np.float32)
    return np.asarray(total / sizes[None, :, None], dtype=np.float32)


def _joined(tokens: Sequence[Token], groups: Sequence[range], text: str) -> tuple[Token, ...]:
    return numbered(_parts(tokens, groups, text))


def _parts(tokens: Sequence[Token], groups: Sequence[range], text: str) -> Iterator[Token]:
    for group in groups:
        first, last = tokens[group.start], tokens[group.stop - 1]
        if len(group) == 1:
            yield first
        else:
            end = max(first.end, last.end)
            yield replace(first, text=text[first.start : end], end=end, part=None)


# Several heads to one map: the mean or the maximum, entry by entry.


def reduce_maps(maps: Sequence[HeadMap], how: How, over: Over) -> tuple[HeadMap, ...]:
    """Reduce maps of shape (n_queries, n_keys) over the heads of each layer, over layers, or all.

    Rows of a mean still sum to 1; rows of a maximum do not.
    """
    groups: dict[tuple[int | None, int | None], list[HeadMap]] = {}
    key = _KEYS[over]
    for head_map in maps:
        groups.setdefault(key(head_map), []).append(head_map)
    return tuple(
        HeadMap(layer, head, how, weights=_reduced(group, how))
        for (layer, head), group in groups.items()
    )


_KEYS: dict[Over, Callable[[HeadMap], tuple[int | None, int | None]]] = {
    "heads": lambda head_map: (head_map.layer, None),
    "layers": lambda head_map: (None, head_map.head),
    "all": lambda head_map: (None, None),
}


def _reduced(group: Sequence[HeadMap], how: How) -> np.ndarray:
    """One matrix at a time, so that memory stays that of a single map."""
    result = group[0].weights.astype(np.float32, copy=True)
    for head_map in group[1:]:
        if how == "mean":
            result += head_map.weights
        else:
            np.maximum(result, head_map.weights, out=result)
    return result / np.float32(len(group)) if how == "mean" else result


# Attention rollout: how much of each token is in a position, through all layers.
#
# Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", arXiv 2005.00928: the mean
# of a layer's heads, half of it replaced by the identity for the residual connection, multiplied
# through the layers.


def rollout(maps: Sequence[HeadMap], between: Between = go_on) -> Iterator[HeadMap]:
    """From all heads (n, n) of the layers from the first on, in order: the rollout to each layer.

    Rows still sum to 1, where those of the heads do.
    """
    through: NDArray[np.float64] | None = None
    for layer, heads in each(groupby(maps, key=lambda head_map: head_map.layer), between):
        weights = np.array([head_map.weights for head_map in heads], np.float64)  # (h, n, n)
        mixed = (weights.mean(axis=0) + np.eye(weights.shape[1])) / 2
        through = mixed if through is None else mixed @ through
        yield HeadMap(layer, None, "rollout", weights=through.astype(np.float32))


# Norm-based attention: how much a key adds to a query, rather than its weight alone.
#
# Kobayashi et al. 2020, "Attention is Not Only a Weight", arXiv 2004.10102: a head adds
# A[i, j] · f(x_j) for each key, f(x) = (x·W_V + b_V)·W_O; the measure is the length of that vector.
# A weight is never negative, so this is A[i, j] · ‖f(x_j)‖.


def weighted(capture: Capture) -> Capture:
    """The same capture with ‖A[i, j] · f(x_j)‖ in the place of A[i, j].

    Raises:
        UsageError: it holds no norms.
    """
    norms = capture.extras.get(VALUE_NORMS)  # (layers, heads, n_keys)
    if norms is None:
        raise UsageError(
            f"this capture does not hold the norms of values, which {option('weighted')} needs",
            f"capture the text again with {option('weighted')}",
        )
    layers = tuple(
        LayerPattern(
            layer.layer,
            layer.heads,
            layer.weights * norms[layer.layer, list(layer.heads)][:, None, :],
        )
        for layer in capture.layers
    )
    return replace(capture, layers=layers, transforms=(*capture.transforms, NormBased()))
