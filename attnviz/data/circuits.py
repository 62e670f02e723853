"""What the weights of a model say of its heads, without any text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from attnviz.data.blocks import FloatArray
from attnviz.data.capture import ModelIdentity
from attnviz.data.head import Head
from attnviz.data.heads import descending

Through: TypeAlias = Literal["query", "key", "value"]


@dataclass(frozen=True)
class Copying:
    """Whether a head's OV circuit makes the token that it attends to likelier.

    `eigenvalues`: Σλ / Σ|λ| over the circuit's eigenvalues λ (Elhage et al. 2021), from -1 (all
    negative) to 1 (all positive). `top`: the share of `tokens` that, attended to, raise themselves
    most of all. Both are NaN where the circuit is 0 but for rounding.
    """

    head: Head
    eigenvalues: float
    top: float
    tokens: int


@dataclass(frozen=True)
class Composition:
    """How much of what a head writes another one reads through its query, key or value.

    ‖W_OV · W‖ / (‖W_OV‖ · ‖W‖), where W is what the reader does with it; NaN where one of the two
    is 0 but for rounding.
    """

    writer: Head
    reader: Head
    through: Through
    score: float


@dataclass(frozen=True, eq=False)
class Circuits:
    """The copying of each head, and how heads compose.

    `expected`: the mean score over random matrices of the same shapes, for each way. `composed`:
    for each way the scores (heads, heads), writers down; NaN where the reader is not later. Without
    queries and keys where these are turned by their positions (rotary).
    """

    model: ModelIdentity
    heads: tuple[Head, ...]
    copying: Sequence[Copying]
    composed: Mapping[Through, FloatArray]
    expected: Mapping[Through, float]

    @property
    def compositions(self) -> Sequence[Composition]:
        """Every pair, the largest score over what is expected first; those without one last."""
        found = [
            Composition(writer, reader, through, float(scores[i, j]))
            for through, scores in self.composed.items()
            for i, writer in enumerate(self.heads)
            for j, reader in enumerate(self.heads)
            if writer.layer < reader.layer
        ]
        return sorted(found, key=lambda each: descending(each.score - self.expected[each.through]))
