"""The tokens that a model writes, each as soon as it is there, with its rows."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

from attnviz.records.capture import FloatArray, PatternBlock
from attnviz.records.heads import Head
from attnviz.records.transforms import How


@dataclass
class KeepRows:
    """Keeps each new token's row: of the heads joined, or of each one.

    `rows`: for each new token (1 or heads, keys). `how`: None keeps each head. `keys` says how many
    keys the row of a new token has. `first`: the query that is the row of the first one.
    """

    heads: tuple[Head, ...]
    how: How | None
    keys: Callable[[int], int]
    first: int = 0
    rows: list[FloatArray] = field(default_factory=list)

    def __call__(self, block: PatternBlock) -> None:
        places, kept = self._kept(block)
        for i, query in enumerate((block.queries - self.first).tolist()):
            seen = kept[:, i, : self.keys(query)]
            if query == len(self.rows):
                size = 1 if self.how else len(self.heads)
                self.rows.append(np.zeros((size, seen.shape[1]), np.float32))
            row = self.rows[query]
            row[places] = np.maximum(row[places], seen) if self.how == "max" else row[places] + seen

    def _kept(self, block: PatternBlock) -> tuple[list[int], FloatArray]:
        """Where the rows of a block belong, and these (1 or heads, queries, keys)."""
        if self.how is None:
            return [self.heads.index(Head(block.layer, h)) for h in block.heads], block.weights
        if self.how == "max":
            return [0], block.weights.max(axis=0, keepdims=True)
        return [0], block.weights.sum(axis=0, keepdims=True) / len(self.heads)


@dataclass(frozen=True)
class NewToken:
    """A token that was written, and its row: the weights (1 or heads, keys)."""

    id: int
    row: FloatArray


Tell: TypeAlias = Callable[[NewToken], bool]
"""Is told of each new token; says whether the model is to write another one."""


def streamed(write: Callable[[Tell], object]) -> Iterator[NewToken]:
    """What `write` tells of, each token as soon as it is there.

    It runs in a thread of its own, which ends with this iterator. There, allocating is slower: who
    wants the whole answer calls `write` without.
    """
    said, stopped = SimpleQueue[NewToken | BaseException | None](), False

    def tell(new: NewToken) -> bool:
        said.put(new)
        return not stopped

    def work() -> None:
        try:
            write(tell)
            said.put(None)
        except BaseException as error:  # a panic of a compiled library is no Exception
            said.put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (new := said.get()) is not None:
            if isinstance(new, BaseException):
                raise new
            yield new
    finally:
        stopped = True
        thread.join()
