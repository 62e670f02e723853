"""The translator's figures on held-out pairs: exact translations and word alignment."""

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from attnviz.models.attention import attached
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.records.heads import Figure, Head
from making.tokenizer import WordEncoder
from making.translation.data import Pair, encoded
from making.translation.grammar import pairs

EXACT, ALIGNED = 0.95, 0.90


def held_out(seed: str, count: int, encoder: WordEncoder) -> list[Pair]:
    """Sentence pairs, each with an adjective on a noun that training never puts it on."""
    fresh = (phrase for phrase in pairs(seed, held_out=True) if phrase.reserved)
    return [encoded(phrase, encoder) for phrase in itertools.islice(fresh, count)]


def exact_match(model: Seq2Seq, encoder: WordEncoder, tests: list[Pair]) -> Figure:
    """The share of translations that are the grammar's, word for word."""
    right = [
        tuple(model.translate(torch.tensor(pair.source), encoder.bos, encoder.bos))
        == pair.target[1:]
        for pair in tests
    ]
    return Figure("translation", "exact match", _mean(right), EXACT, len(right))


def best_head(model: Seq2Seq, tests: list[Pair]) -> Head:
    """The cross-attention head whose strongest English word is most often the true one."""
    hits: dict[Head, list[bool]] = {}
    for pair in tests:
        for head, pattern in cross_patterns(model, pair):
            hits.setdefault(head, []).extend(_aligned(pattern, pair))
    return max(hits, key=lambda head: (_mean(hits[head]), head))


def alignment(model: Seq2Seq, head: Head, tests: list[Pair]) -> list[Figure]:
    """The share of strongest English words that are true, and the weight on the true word."""
    hits: list[bool] = []
    mass: list[float] = []
    for pair in tests:
        pattern = dict(cross_patterns(model, pair))[head]
        hits += _aligned(pattern, pair)
        mass += _mass(pattern, pair)
    return [
        Figure("alignment", "strongest word is the true one", _mean(hits), ALIGNED, len(hits)),
        Figure("alignment", "mass on the true word", _mean(mass), None, len(mass)),
    ]


def cross_patterns(model: Seq2Seq, pair: Pair) -> Iterator[tuple[Head, NDArray[np.float32]]]:
    """Each cross-attention head's pattern (n_t, n_s) over the true translation."""
    by_layer: list[torch.Tensor] = []
    layers = range(model.config.n_decoder)
    hooks = {f"decoder.{n}.cross.pattern": lambda p: by_layer.append(p[0]) for n in layers}
    with torch.inference_mode(), attached(model, hooks):
        model(torch.tensor([pair.source]), torch.tensor([pair.target]))
    for layer, patterns in enumerate(by_layer):
        for head, pattern in enumerate(patterns.numpy()):
            yield Head(layer, head), pattern


def _aligned(pattern: NDArray[np.float32], pair: Pair) -> list[bool]:
    """For each French content word, whether the strongest English word is a true one."""
    words = _by_word(pattern, pair)
    return [
        int(words[at].argmax()) in word.keys
        for at, word in enumerate(pair.phrase.french)
        if word.content
    ]


def _mass(pattern: NDArray[np.float32], pair: Pair) -> list[float]:
    words = _by_word(pattern, pair)
    return [
        float(words[at, sorted(word.keys)].sum())
        for at, word in enumerate(pair.phrase.french)
        if word.content
    ]


def _by_word(pattern: NDArray[np.float32], pair: Pair) -> NDArray[np.float32]:
    """(French words, English words): the row that predicts a word's first token, keys summed."""
    rows = pattern[[span[0] - 1 for span in pair.target_spans]]  # (French words, n_s)
    return np.stack([rows[:, list(span)].sum(axis=1) for span in pair.spans], axis=1)


def _mean(values: list[bool] | list[float]) -> float:
    return round(float(np.mean(values)), 4)
