"""How the scores of every head develop over the checkpoints of one model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.heads import Head

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A score of a head at every checkpoint, NaN where it could not be measured.

    `error`: the standard error of the change, with the first and the last scan taken as
    independent.
    """

    score: str
    head: Head
    means: Sequence[float]
    error: float | None

    @property
    def change(self) -> float:
        """The last mean minus the first; NaN where one is missing."""
        return self.means[-1] - self.means[0]


@dataclass(frozen=True, eq=False)
class Development:
    """The scores of the same heads at several checkpoints, in order.

    `names`, `steps` (checkpoints): their folders' names, and their training steps, None where their
    names carry none. `means`, `errors`: by score, (heads, checkpoints), NaN where there is nothing.
    `size`: how many documents and tokens each was measured over.
    """

    names: tuple[str, ...]
    steps: tuple[int, ...] | None
    heads: tuple[Head, ...]
    means: Mapping[str, Numbers]
    errors: Mapping[str, Numbers]
    size: tuple[int, int]

    def changes(self, score: str) -> list[Change]:
        """Every head whose change can be measured, the largest change first."""
        found = []
        for head, means, errors in zip(
            self.heads, self.means[score], self.errors[score], strict=True
        ):
            error = float(np.hypot(errors[0], errors[-1]))
            change = Change(score, head, tuple(means.tolist()), None if isnan(error) else error)
            if not isnan(change.change):
                found.append(change)
        return sorted(found, key=lambda each: -abs(each.change))

    def only(self, heads: Sequence[Head], scores: Sequence[str]) -> "Development":
        """The same of these heads and scores."""
        rows = [self.heads.index(head) for head in heads]
        means, errors = (
            {score: values[score][rows] for score in scores} for values in (self.means, self.errors)
        )
        return replace(self, heads=tuple(heads), means=means, errors=errors)

    def records(self) -> Iterator[Mapping[str, Any]]:
        """A row for each head, score and checkpoint."""
        for n, head in enumerate(self.heads):
            for score, means in self.means.items():
                errors = self.errors[score]
                for i, name in enumerate(self.names):
                    yield {
                        "layer": head.layer,
                        "head": head.head,
                        "score": score,
                        "checkpoint": name,
                        "step": None if self.steps is None else self.steps[i],
                        "mean": _or_none(means[n, i]),
                        "error": _or_none(errors[n, i]),
                    }


def _or_none(value: float) -> float | None:
    return None if isnan(value) else float(value)
