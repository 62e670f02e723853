"""Runs of a checkpoint over texts of the little world: patterns and predictions."""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from attnviz.models.attention import attached
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import load_checkpoint
from making.tokenizer import WordEncoder
from making.world.text import Text
from making.world.texts import texts


@dataclass(frozen=True)
class Seen:
    """A text, and the model's run over it.

    `patterns` is (layer, head, query, key); `predicted` is the likeliest successor of each
    token; `positions` and `pieces` are the token positions and ids of each word.
    """

    text: Text
    positions: Sequence[Sequence[int]]
    pieces: Sequence[Sequence[int]]
    patterns: NDArray[np.float32]
    predicted: Sequence[int]


@dataclass(frozen=True)
class WorldProbe:
    """A model with its encoder, to run over texts."""

    model: GPT
    encoder: WordEncoder

    @classmethod
    def open(cls, folder: Path) -> "WorldProbe":
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.encode_special_tokens = True
        return cls(load_checkpoint(folder), WordEncoder(tokenizer))

    def see(self, text: Text) -> Seen:
        ids, positions = self.encoder.text(text)
        patterns, predicted = self.run(ids)
        pieces = [self.encoder.word(word) for word in text.words]
        return Seen(text, positions, pieces, patterns, predicted)

    def run(self, ids: Sequence[int]) -> tuple[NDArray[np.float32], list[int]]:
        """Patterns (layer, head, n, n) and the likeliest successors (n)."""
        patterns: list[torch.Tensor] = []
        hooks = {
            f"h.{n}.attn.pattern": lambda p: patterns.append(p[0])
            for n in range(self.model.config.n_layer)
        }
        with torch.inference_mode(), attached(self.model, hooks):
            logits = self.model(torch.tensor([list(ids)]))[0]  # (n, V)
        return torch.stack(patterns).numpy(), logits.argmax(-1).tolist()

    def see_kind(
        self, kind: str, seed: str, count: int, wanted: Callable[[Text], bool] = lambda _: True
    ) -> Iterator[Seen]:
        """Held-out texts of one kind that fit into the context."""
        stream = filter(wanted, texts(seed, kind, held_out=True))
        fitting = (t for t in stream if len(self.encoder.text(t)[0]) <= 256)
        return (self.see(text) for text in itertools.islice(fitting, count))

    def see_repeated(self, seed: str, count: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Runs over BOS and 20 to 100 random tokens, twice: (number of tokens, patterns)."""
        rng = random.Random(seed)
        for _ in range(count):
            period = rng.randint(20, 100)
            block = [rng.randrange(self.model.config.vocab_size - 1) for _ in range(period)]
            yield period, self.run([self.encoder.bos, *block, *block])[0]
