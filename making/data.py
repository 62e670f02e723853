"""Batches of texts: packed rows, a block-diagonal mask, positions and targets.

Letters in the shape comments: B rows, n tokens in a row.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from attnviz.commands.train.loop import IGNORED, PADDING
from making import natural, wordnet
from making.asking import ASKED, N_ASKED, NEW, AskingBatch
from making.tokenizer import WordEncoder
from making.world.contractions import contracted
from making.world.text import Text
from making.world.texts import REPEATS_FROM, texts


@dataclass(frozen=True)
class Packing:
    """The settings of batches; `shapes` are (rows, width), the narrowest first.

    A share of the documents, `natural`, is from the WordNet in the folder `wordnet`; of their
    words, a share of `natural_counts` counts in the loss.

    A document starts at a random position with probability `shifted`. Words that the text
    determines always count in the loss; the others, which are noise, count with probability
    `others`. Documents are random repeated tokens with probability `random_tokens`, from the
    time on at which texts repeat words. A share of the texts, `contracted`, has contractions.
    """

    n_positions: int
    shapes: tuple[tuple[int, int], ...] = ((32, 64), (16, 128), (8, 256))
    shifted: float = 0.15
    others: float = 0.08
    natural: float = 0.4
    natural_counts: float = 0.2
    wordnet: Path = wordnet.FOLDER
    random_tokens: float = 0.06
    contracted: float = 0.3


@dataclass(frozen=True)
class Document:
    """Token ids with BOS in front; `counts` says which tokens are worth predicting.

    `asked`: at some tokens, the id of another that a head is to name there, by the head's place in
    `asking.HEADS` and the token. `free`: the first token whose stream may differ from that of the
    model that training goes on from, None if all are kept.
    """

    ids: Sequence[int]
    counts: Sequence[bool]
    asked: Mapping[tuple[int, int], int] = field(default_factory=dict)
    free: int | None = None


@dataclass(frozen=True)
class WorldBatches:
    """A source of batches of the little world; `tokenizer` is JSON, which can be pickled."""

    tokenizer: str
    packing: Packing

    def __call__(self, seed: str, steps: int, done: float) -> list[AskingBatch]:
        return batches(seed, steps, _encoder(self.tokenizer), self.packing, done)


@cache
def _encoder(tokenizer: str) -> WordEncoder:
    """One encoder for all batches, because it remembers how each word is cut."""
    return WordEncoder(Tokenizer.from_str(tokenizer))


def document(text: Text, encoder: WordEncoder, rng: random.Random, others: float) -> Document:
    """The ids of a text; which of its undetermined words count is drawn at random."""
    ids, positions = encoder.text(text)
    determined = {answer.word for answer in text.answers}
    counts = [False]
    for word, pieces in enumerate(positions):
        counted = word in determined
        counts += [counted or rng.random() < others for _ in pieces]
    asked = {
        (ASKED[link.behaviour], positions[link.query][-1]): ids[
            positions[rng.choice(sorted(link.keys))][0]
        ]
        for link in text.links
        if link.behaviour in ASKED
    }
    told = [link.query for link in text.links if link.behaviour == NEW]
    return Document(ids, counts, asked, positions[min(told)][0] if told else None)


def random_tokens(encoder: WordEncoder, rng: random.Random) -> Document:
    """A block of random tokens, pieces and bytes included, that occurs two or three times."""
    block = [rng.randrange(encoder.bos) for _ in range(rng.choice((4, 8, 16, 32, 50, 80, 100)))]
    times = 2 if len(block) > 16 else rng.choice((2, 3))
    counts = [False] * (len(block) + 2) + [True] * ((times - 1) * len(block) - 1)
    return Document([encoder.bos, *block * times], counts)


def batches(
    seed: int | str, steps: int, encoder: WordEncoder, packing: Packing, done: float = 1.0
) -> list[AskingBatch]:
    """`steps` batches, a pure function of the seed; short and long rows are mixed.

    `done`: the share of the training that is done.
    """
    rng = random.Random(f"batches {seed}")
    repeats = done >= REPEATS_FROM
    stream = texts(seed, done=done)
    natural_texts = natural.texts(seed, packing.wordnet)
    waiting: list[list[Document]] = [[] for _ in packing.shapes]
    made: list[AskingBatch] = []
    while len(made) < steps:
        for text in itertools.islice(stream, 400):
            if rng.random() < packing.natural:
                text, counted = next(natural_texts), packing.natural_counts
            else:
                counted = packing.others
            text = contracted(text) if rng.random() < packing.contracted else text
            item = document(text, encoder, rng, counted)
            if repeats and rng.random() < packing.random_tokens:
                item = random_tokens(encoder, rng)
            fitting = (n for n, (_, width) in enumerate(packing.shapes) if len(item.ids) <= width)
            place = next(fitting, None)
            if place is not None:
                waiting[place].append(item)
        for documents, shape in zip(waiting, packing.shapes, strict=True):
            made += _take(documents, shape, rng, packing)
    rng.shuffle(made)
    return made[:steps]


def _take(
    waiting: list[Document], shape: tuple[int, int], rng: random.Random, packing: Packing
) -> list[AskingBatch]:
    """Full batches from the waiting documents; the documents taken leave `waiting`."""
    rows, width = shape
    made: list[AskingBatch] = []
    while sum(len(d.ids) for d in waiting) > rows * width * 1.3:
        packed = pack(waiting, rows, width)
        made.append(_batch(packed, width, rng, packing))
    return made


def pack(waiting: list[Document], rows: int, width: int) -> list[list[Document]]:
    """First fit: each row takes documents in order as long as they fit; they leave `waiting`."""
    packed: list[list[Document]] = [[] for _ in range(rows)]
    free = [width] * rows
    left: list[Document] = []
    for item in waiting:
        row = next((r for r in range(rows) if free[r] >= len(item.ids)), None)
        if row is None:
            left.append(item)
        else:
            packed[row].append(item)
            free[row] -= len(item.ids)
    waiting[:] = left
    return packed


def _batch(
    packed: list[list[Document]], width: int, rng: random.Random, packing: Packing
) -> AskingBatch:
    shape = (len(packed), width)
    ids, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    documents = np.full(shape, PADDING)
    targets, asked = np.full(shape, IGNORED), np.full((shape[0], N_ASKED, width), IGNORED)
    kept = np.zeros(shape, bool)
    for row, items in enumerate(packed):
        at = 0
        for number, item in enumerate(items):
            n = len(item.ids)
            room = packing.n_positions - n
            offset = rng.randint(0, room) if rng.random() < packing.shifted else 0
            span = slice(at, at + n)
            ids[row, span] = item.ids
            positions[row, span] = np.arange(offset, offset + n)
            documents[row, span] = number
            targets[row, at : at + n - 1] = _targets(item)
            kept[row, at : at + (n if item.free is None else item.free)] = True
            for (head, token), named in item.asked.items():
                asked[row, head, at + token] = named
            at += n
    arrays = (ids, positions, documents, targets, asked, kept)
    return AskingBatch(*(torch.from_numpy(a) for a in arrays))


def _targets(item: Document) -> NDArray[np.int64]:
    """Each token's successor where it counts, (n - 1)."""
    return np.where(item.counts[1:], item.ids[1:], IGNORED)
