"""A user's own text as training data: a tokenizer learned from it, a held-out part, batches."""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from attnviz.data.train import Plan
from attnviz.errors import InputError, option
from attnviz.models.tokenizer import END
from attnviz.training.data import Batch

HELD_OUT = 0.05
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OwnText:
    """The tokens of a text in two parts; `held_out_bytes` is the second part's size in UTF-8."""

    tokenizer: Tokenizer
    train: IntArray
    held_out: IntArray
    held_out_bytes: int
    digest: str

    @property
    def vocabulary(self) -> int:
        return int(self.tokenizer.get_vocab_size())


@dataclass(frozen=True, eq=False)
class Windows:
    """A source of batches: `rows` random windows of a text, of `context` tokens each."""

    tokens: IntArray
    context: int
    rows: int

    def __call__(self, seed: str, steps: int, done: float) -> list[Batch]:
        digest = hashlib.sha256(seed.encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return [self._batch(draw) for _ in range(steps)]

    def _batch(self, draw: np.random.Generator) -> Batch:
        starts = draw.integers(0, len(self.tokens) - self.context, self.rows)
        spans = starts[:, None] + np.arange(self.context + 1)  # (rows, context + 1)
        ids = torch.from_numpy(self.tokens[spans])
        positions = torch.arange(self.context).expand(self.rows, -1)
        return Batch(ids[:, :-1], positions, torch.zeros_like(positions), ids[:, 1:])


def prepare(text: str, plan: Plan, tokenizer: Tokenizer | None = None) -> OwnText:
    """Split a text, and encode both parts; without a tokenizer, learn one from the first part.

    Raises:
        InputError: the text is too short for a training and a held-out part.
    """
    at = round(len(text) * (1 - HELD_OUT))
    kept, held_out = text[:at], text[at:]
    tokenizer = tokenizer or learn_tokenizer(kept, plan.vocab)
    train_ids, test_ids = (
        np.array(tokenizer.encode(part).ids, np.int64) for part in (kept, held_out)
    )
    needed = 2 * (plan.context + 1)
    if len(train_ids) < 10 * needed or len(test_ids) < needed // 2:
        raise InputError(
            f"the text has {len(train_ids) + len(test_ids):,} tokens, too little to train on",
            f"give some {20 * needed:,} or more, or a smaller {option('context')}",
        )
    return OwnText(tokenizer, train_ids, test_ids, len(held_out.encode()), digest_of(text))


def digest_of(text: str) -> str:
    """The digest by which a resumed training recognises its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def learn_tokenizer(text: str, size: int) -> Tokenizer:
    """A byte-level BPE tokenizer, as GPT-2's, of at most `size` tokens."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=[END],
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer
