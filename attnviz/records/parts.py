"""Parts of a model: sums over them, and heads by the weights alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError, option
from attnviz.records.capture import FloatArray, ModelIdentity
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate, descending

PartKind: TypeAlias = Literal[
    "embedding", "position", "head", "mlp", "biases", "layer", "token", "feature", "unexplained"
]
Group: TypeAlias = Literal["part", "head", "layer", "source"]
"""Parts as they are; without their token; by layer; or only by their token."""


class Part(NamedTuple):
    """A part of the model that wrote into the residual stream; or the stream before a layer.

    `layer` and `head`: of a head, an MLP or a layer. `source`: the position of its token: an
    embedding's own, the key of a head, or the position of an MLP; None for a sum over several.
    `feature`: the number of a feature in a dictionary of the stream that arrives at `layer`, or of
    what its MLP writes; what the dictionary leaves is "unexplained".
    """

    kind: PartKind | Literal["residual"]
    layer: int | None = None
    head: int | None = None
    source: int | None = None
    feature: int | None = None


FEATURE = "The number of the feature in a dictionary, where the part is one."
"""The field of a part in every output."""


@dataclass(frozen=True)
class Explained:
    """A dictionary, what it is of, and the share of this one's variance over the tokens of a text
    that its features explain: the stream that arrives at `layer`, or what the MLP there writes."""

    dictionary: str
    layer: int
    mlp: bool
    share: float

    @property
    def what(self) -> str:
        """What it is of, in words."""
        return f"{'what the MLP of' if self.mlp else 'the stream before'} layer {self.layer}" + (
            " writes" if self.mlp else ""
        )


def grouped(part: Part, group: Group) -> Part:
    """The part to which this one is summed up."""
    if part.kind == "biases" or group == "part":
        return part
    if group == "head":
        return part._replace(source=None)
    if group == "source":
        return Part("token", source=part.source)
    if part.layer is None:
        return part._replace(source=None)
    return Part("layer", part.layer)


@dataclass(frozen=True, eq=False)
class Shares:
    """A sum over parts: `values` (..., parts), which add up to `total` (...), to rounding."""

    parts: tuple[Part, ...]
    values: NDArray[np.float64]
    total: NDArray[np.float64]

    def by(self, group: Group) -> "Shares":
        if group == "part":
            return self
        parts, places = _places(self.parts, group)
        rows = self.values.reshape(-1, len(self.parts))
        values = np.array([np.bincount(places, row, len(parts)) for row in rows], np.float64)
        return Shares(parts, values.reshape(*self.values.shape[:-1], len(parts)), self.total)

    def strongest(self, most: int) -> list[int]:
        """The indices of the parts whose mean absolute values are largest over all sums."""
        sizes = np.abs(self.values.reshape(-1, len(self.parts))).mean(axis=0)
        order: list[int] = np.argsort(-sizes, kind="stable")[:most].tolist()
        return order

    @property
    def means(self) -> list[tuple[Part, Estimate]]:
        """Each part with the mean of its values over all sums, the farthest from 0 first."""
        values = self.values.reshape(-1, len(self.parts)).T
        means = zip(self.parts, map(Estimate.of, values.tolist()), strict=True)
        return sorted(means, key=lambda each: -abs(each[1].mean))

    @property
    def sums(self) -> list[int]:
        """The number of sums in which each part is not 0."""
        sums: list[int] = (self.values.reshape(-1, len(self.parts)) != 0).sum(axis=0).tolist()
        return sums

    @property
    def error(self) -> float:
        """The largest distance of a sum from its total, as a share of its terms' sizes."""
        sizes = np.abs(self.values).sum(axis=-1)
        distance = np.abs(self.values.sum(axis=-1) - self.total)
        return float((distance / np.maximum(sizes, 1e-30)).max())


@lru_cache(maxsize=8)
def _places(parts: tuple[Part, ...], group: Group) -> tuple[tuple[Part, ...], NDArray[np.int64]]:
    """The parts to which these are summed up, and the index of its sum for each part."""
    numbers: dict[Part, int] = {}
    places = [numbers.setdefault(grouped(part, group), len(numbers)) for part in parts]
    return tuple(numbers), np.array(places)


def aligned(
    each: Sequence[Shares], roles: Sequence[Sequence[str]], *, by_position: bool = False
) -> tuple[Shares, tuple[str, ...]]:
    """Align the sums of several texts over the same parts: values (texts, parts).

    `roles`: for each text the role of every token (n), or nothing. The source of a part is then the
    number of a role, whose names are returned, too; without roles, parts are summed up over their
    tokens. A part that a text lacks adds 0 to its sum, so that the means still add up.
    `by_position`: roles are the positions of tokens.

    Raises:
        InputError: roles are positions, and the texts have several lengths.
    """
    lengths = {len(own) for own in roles}
    if by_position and len(lengths) > 1:
        raise InputError(
            f"the texts have {min(lengths)} to {max(lengths)} tokens, so that positions do not "
            "correspond",
            f"use {option('roles', 'word')}, or name parts of the texts with {option('segments')}",
        )
    numbers, names, rows = dict[Part, int](), dict[str, int](), []
    for shares, own in zip(each, roles, strict=True):
        of_token = [names.setdefault(role, len(names)) for role in own]
        places = [
            numbers.setdefault(part._replace(source=source), len(numbers))
            for part in shares.parts
            for source in [of_token[part.source] if own and part.source is not None else None]
        ]
        rows.append(np.bincount(places, shares.values[0]))
    values = np.array([np.pad(row, (0, len(numbers) - len(row))) for row in rows])
    return Shares(tuple(numbers), values, np.concatenate([s.total for s in each])), tuple(names)


# Properties of heads by a model's weights, without any text.

Through: TypeAlias = Literal["query", "key", "value"]


@dataclass(frozen=True)
class Copying:
    """Whether a head's OV circuit makes the token that it attends to likelier.

    `eigenvalues`: Σλ / Σ|λ| over the circuit's eigenvalues λ (Elhage et al. 2021), from -1 (all
    negative) to 1 (all positive). `top`: the share of `tokens` that, attended to, raise their own
    logit most of all. Both are NaN if the circuit is 0 except for rounding.
    """

    head: Head
    eigenvalues: float
    top: float
    tokens: int


@dataclass(frozen=True)
class Composition:
    """The share of a head's output that another one reads through its query, key or value.

    ‖W_OV · W‖ / (‖W_OV‖ · ‖W‖), where W is the reader's matrix; NaN if one of the two is 0
    except for rounding.
    """

    writer: Head
    reader: Head
    through: Through
    score: float


@dataclass(frozen=True, eq=False)
class Circuits:
    """The copying of each head, and the composition of heads.

    `expected`: the mean score over random matrices of the same shapes, for each way. `composed`:
    for each way the scores (heads, heads), writers down; NaN if the reader is not later. Queries
    and keys are left out if rotary position embeddings turn them.
    """

    model: ModelIdentity
    heads: tuple[Head, ...]
    copying: Sequence[Copying]
    composed: Mapping[Through, FloatArray]
    expected: Mapping[Through, float]

    @property
    def compositions(self) -> Sequence[Composition]:
        """Every pair, the largest ratio of score to expected score first; unscored ones last."""
        pairs = [
            Composition(writer, reader, through, float(scores[i, j]))
            for through, scores in self.composed.items()
            for i, writer in enumerate(self.heads)
            for j, reader in enumerate(self.heads)
            if writer.layer < reader.layer
        ]
        return sorted(pairs, key=lambda each: descending(each.score - self.expected[each.through]))
