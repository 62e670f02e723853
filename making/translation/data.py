"""Batches of sentence pairs: ids of both languages, padded to the longest sentence."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from making.tokenizer import WordEncoder
from making.translation.grammar import Phrase, pairs

IGNORED = -1
BLOCK = 16


@dataclass(frozen=True)
class Pair:
    """A sentence pair as ids; `spans` and `target_spans` are the tokens of each word.

    Both sentences begin with the beginning token, which also ends the target.
    """

    phrase: Phrase
    source: tuple[int, ...]
    target: tuple[int, ...]
    spans: tuple[range, ...]
    target_spans: tuple[range, ...]


@dataclass(frozen=True)
class PairBatch:
    """Source (B, n_s), target (B, n_t) and the successor of each target token (B, n_t);
    mask (B, 1, 1, n_s), False on padding."""

    source: Tensor
    target: Tensor
    following: Tensor
    mask: Tensor


def encoded(phrase: Phrase, encoder: WordEncoder) -> Pair:
    """A sentence pair as ids."""
    source, spans = _ids(phrase.english, encoder)
    target, target_spans = _ids([word.word for word in phrase.french], encoder)
    return Pair(phrase, source, target, spans, target_spans)


def _ids(words: Sequence[str], encoder: WordEncoder) -> tuple[tuple[int, ...], tuple[range, ...]]:
    ids = [encoder.bos]
    spans = []
    for word in words:
        pieces = encoder.word(word)
        spans.append(range(len(ids), len(ids) + len(pieces)))
        ids += pieces
    return tuple(ids), tuple(spans)


def batches(
    seed: int | str, size: int, encoder: WordEncoder, longest: int, start: int = 0
) -> Iterator[PairBatch]:
    """Batches without end, from number `start` on; the pairs of 16 batches are grouped by length.

    What a batch holds is a function of the seed and of its number.
    """
    for block in itertools.count(start // BLOCK):
        first = start % BLOCK if block == start // BLOCK else 0
        yield from itertools.islice(_block(f"{seed} {block}", size, encoder, longest), first, None)


def _block(seed: str, size: int, encoder: WordEncoder, longest: int) -> Iterator[PairBatch]:
    stream = (encoded(phrase, encoder) for phrase in pairs(seed))
    fitting = (p for p in stream if max(len(p.source), len(p.target)) <= longest)
    many = sorted(itertools.islice(fitting, BLOCK * size), key=lambda p: len(p.source))
    starts = list(range(0, len(many), size))
    random.Random(f"batches {seed}").shuffle(starts)
    return (_batch(many[i : i + size], encoder.bos) for i in starts)


def _batch(items: Sequence[Pair], bos: int) -> PairBatch:
    source = _padded([p.source for p in items], 0)
    target = _padded([p.target for p in items], 0)
    following = _padded([(*p.target[1:], bos) for p in items], IGNORED)
    lengths = torch.tensor([len(p.source) for p in items])
    mask = torch.arange(source.size(1))[None] < lengths[:, None]  # (B, n_s)
    return PairBatch(source, target, following, mask[:, None, None, :])


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows])
