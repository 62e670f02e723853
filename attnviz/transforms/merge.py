"""Tokens merged to characters or words: the patterns between what a person reads.

Attention to a merged key is the sum over its pieces, attention from a merged query the
mean over its pieces, so that rows still sum to 1. Clark et al. 2019, "What Does BERT
Look At?", arXiv 1906.04341, section 4.1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attnviz.data.blocks import FloatArray, LayerPattern
from attnviz.data.capture import Capture
from attnviz.data.tokens import Token, numbered
from attnviz.data.transforms import Merged, Unit
from attnviz.data.words import groups_of
from attnviz.transforms.between import Between, each, go_on


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
