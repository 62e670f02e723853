"""A head's trace on its way to a sheet: what every step of the calculation looks up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from attnviz.data.blocks import FloatArray
from attnviz.data.explain import HeadTrace, OtherRow
from attnviz.renderers.calculation.sheet import Sheet, strongest_keys

TOLERANCE = 1e-5


@dataclass(frozen=True)
class Explained:
    """A trace on a sheet, with the labels of its tokens, which tell repeated ones apart."""

    trace: HeadTrace
    sheet: Sheet
    labels: tuple[str, ...]
    other: OtherRow | None = None

    @property
    def query(self) -> str:
        return self.labels[self.trace.query]

    @property
    def seen(self) -> list[int]:
        """The keys that the query may attend to, or the strongest of very many."""
        return strongest_keys(self.trace.scores[self.trace.query])

    @property
    def head(self) -> str:
        return f"L{self.trace.layer}H{self.trace.head}"

    def vectors(self, name: str, array: FloatArray, of: Sequence[int]) -> Iterator[Text]:
        """`k(fluffy) [...]` for each of these tokens."""
        yield from self.sheet.vectors([(f"{name}({self.labels[i]})", array[i]) for i in of])


def left_out(e: Explained) -> Iterator[Text]:
    """How many keys are not told, where there are very many."""
    allowed = int(np.isfinite(e.trace.scores[e.trace.query]).sum())
    if allowed > len(e.seen):
        more = allowed - len(e.seen)
        every = e.sheet.display.speller("format", "json")
        yield from e.sheet.say(f"… and {more} weaker keys; {every} has all of them.")
