"""A head's trace on its way to a sheet: what every step of the calculation looks up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from attnviz.records.capture import FloatArray
from attnviz.records.trace import HeadTrace, OtherRow
from attnviz.renderers.calculation.sheet import Sheet, strongest_keys

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Explained:
    """A trace on a sheet, with the labels of its tokens, which tell repeated ones apart.

    `labels`: of the queries; `key_labels`: of the keys, which are the same for one sequence.
    """

    trace: HeadTrace
    sheet: Sheet
    labels: tuple[str, ...]
    key_labels: tuple[str, ...]
    other: OtherRow | None = None

    @property
    def query(self) -> str:
        return self.labels[self.trace.query]

    @property
    def n_queries(self) -> int:
        return len(self.labels)

    @property
    def n_keys(self) -> int:
        return len(self.key_labels)

    @property
    def cross(self) -> bool:
        """Whether keys and values are made of another text than the queries."""
        return self.trace.kind == "cross"

    @property
    def queried(self) -> str:
        """The letter of what queries are made of: behind the norm it wears a hat."""
        return "x̂" if self.trace.kinds.norm else "x"

    @property
    def read(self) -> str:
        """The letter of what keys and values are made of."""
        return "m" if self.cross else self.queried

    @property
    def seen(self) -> list[int]:
        """The keys that the query may attend to, or the strongest of very many."""
        return strongest_keys(self.trace.scores[self.trace.query])

    @property
    def head(self) -> str:
        return f"L{self.trace.layer}H{self.trace.head}"

    def vectors(self, name: str, array: FloatArray, of: Sequence[int]) -> Iterator[Text]:
        """`q(fluffy) [...]` for each of these queries."""
        yield from self.sheet.vectors([(f"{name}({self.labels[i]})", array[i]) for i in of])

    def key_vectors(self, name: str, array: FloatArray) -> Iterator[Text]:
        """`k(fluffy) [...]` for each key that the query may attend to."""
        yield from self.sheet.vectors(
            [(f"{name}({self.key_labels[i]})", array[i]) for i in self.seen]
        )


def left_out(e: Explained) -> Iterator[Text]:
    """How many keys are not told, where there are very many."""
    allowed = int(np.isfinite(e.trace.scores[e.trace.query]).sum())
    if allowed > len(e.seen):
        more = allowed - len(e.seen)
        every = e.sheet.display.speller("format", "json")
        yield from e.sheet.say(f"… and {more} weaker keys; {every} has all of them.")
