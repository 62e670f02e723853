"""Why a head attends where it does: scores and logits as sums over parts of the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError, option
from attnviz.records.capture import Capture, FloatArray, ModelIdentity, OverText
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate, descending

PartKind: TypeAlias = Literal["embedding", "position", "head", "mlp", "biases", "layer", "token"]
Side: TypeAlias = Literal["query", "key"]
Group: TypeAlias = Literal["part", "head", "layer", "source"]
"""Parts as they are; without the token that they are from; by layer; by that token alone."""


class Part(NamedTuple):
    """Something that wrote into the residual stream.

    `layer` and `head`: of a head, an MLP or a layer. `source`: the position of the token that it is
    from: an embedding's own, the one that a head took it from, the one at which an MLP worked; None
    where several are summed up.
    """

    kind: PartKind
    layer: int | None = None
    head: int | None = None
    source: int | None = None


def grouped(part: Part, group: Group) -> Part:
    """The part that this one is summed up in."""
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
    """A sum over parts: `values` (..., parts), which add up to `total` (...) but for rounding."""

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
        """The indices of the parts whose values are farthest from 0, on the mean over all sums."""
        sizes = np.abs(self.values.reshape(-1, len(self.parts))).mean(axis=0)
        order: list[int] = np.argsort(-sizes, kind="stable")[:most].tolist()
        return order

    @property
    def means(self) -> list[tuple[Part, Estimate]]:
        """Each part with the mean of what it adds over all sums, the farthest from 0 first."""
        values = self.values.reshape(-1, len(self.parts)).T
        means = zip(self.parts, map(Estimate.of, values.tolist()), strict=True)
        return sorted(means, key=lambda each: -abs(each[1].mean))

    @property
    def error(self) -> float:
        """The largest distance of a sum from its total, as a share of its terms' sizes."""
        sizes = np.abs(self.values).sum(axis=-1)
        distance = np.abs(self.values.sum(axis=-1) - self.total)
        return float((distance / np.maximum(sizes, 1e-30)).max())


@lru_cache(maxsize=8)
def _places(parts: tuple[Part, ...], group: Group) -> tuple[tuple[Part, ...], NDArray[np.int64]]:
    """The parts that these are summed up in, and for each which of them it belongs to."""
    numbers: dict[Part, int] = {}
    places = [numbers.setdefault(grouped(part, group), len(numbers)) for part in parts]
    return tuple(numbers), np.array(places)


def aligned(
    each: Sequence[Shares], roles: Sequence[Sequence[str]]
) -> tuple[Shares, tuple[str, ...]]:
    """The one sum of each of several texts, over the same parts: values (texts, parts).

    `roles`: of each text the role of every token (n), or nothing. The source of a part is then the
    number of a role, whose names are returned, too; without roles, parts are summed up over their
    tokens. A part that a text lacks adds 0 to its sum, so that the means still add up.
    """
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


@dataclass(frozen=True, eq=False)
class ScoreRow:
    """One head's row at a query, as it was.

    raw (n): q·k·scale; scores (n): with the soft cap and the position bias, as the softmax takes
    them; added (n): the position bias; weights (n); seen (n): which keys the mask allows. `sink`:
    the score of a learned sink that is no token; None where there is none.
    """

    raw: FloatArray
    scores: FloatArray
    added: FloatArray
    weights: FloatArray
    seen: NDArray[np.bool_]
    sink: float | None = None

    @property
    def sink_weight(self) -> float:
        """The share of the row on the sink."""
        return 0.0 if self.sink is None else max(0.0, 1.0 - float(self.weights.sum()))

    @property
    def entropy(self) -> float:
        """−Σ A ln A of the row in nats, with a sink as one more key."""
        weights = np.append(self.weights, self.sink_weight).astype(float)
        weights = weights[weights > 0]
        return float(-(weights * np.log(weights)).sum())


@dataclass(frozen=True)
class Pair:
    """A term of a contrast: a part at the query, a part at the keys; None: all that are left."""

    query: Part | None
    key: Part | None
    value: float


@dataclass(frozen=True)
class Node:
    """A part of the tree, what it adds to the contrast, and what it is made of.

    `part` is None for all others of its level. `query` and `key`: of a head, the row and the key
    whose score lets it take this.
    """

    part: Part | None
    value: float
    children: tuple["Node", ...] = ()
    query: int | None = None
    key: int | None = None


@dataclass(frozen=True)
class Removal:
    """A part taken away from what the head's query, or its keys, read.

    `predicted`: the contrast then, by the sum; `fixed`: computed with norms held fixed; `free`:
    with the norms recomputed, and `weight`: the key's weight then. Both are None where no norm
    stands between the stream and the head.
    """

    side: Side
    part: Part
    predicted: float
    fixed: float
    free: float | None
    weight: float | None


@dataclass(frozen=True)
class Lead:
    """The part that adds most to a contrast on one side.

    `part`: a head with the token that it took at least half of this from, where there is one.
    `value`: what it adds; `share`: its share of all parts with the sign of the contrast.
    """

    part: Part
    value: float
    share: float

    @classmethod
    def of(cls, shares: Shares) -> "Lead":
        """The lead of one sum over the parts as they are."""
        whole, sign = shares.by("head"), 1 if shares.total[0] >= 0 else -1
        along = sign * whole.values[0]
        most = int(along.argmax())
        part, value = whole.parts[most], float(whole.values[0, most])
        own = [i for i, each in enumerate(shares.parts) if grouped(each, "head") == part]
        source = max(own, key=lambda i: sign * shares.values[0, i])
        if part.kind == "head" and sign * shares.values[0, source] >= sign * value / 2:
            part = shares.parts[source]
        return cls(part, value, sign * value / (float(along[along > 0].sum()) or 1.0))


@dataclass(frozen=True)
class Moved:
    """A token of the vocabulary, and by how much a head moves its logit; also by source (n)."""

    id: int
    effect: float
    by_source: tuple[float, ...]


@dataclass(frozen=True)
class Reader:
    """A later head that reads what a head wrote, through its query, its key or its value.

    `query` and `key`: the row and the key of its score. `value`: what the addition contributes to
    `total`, that score's contrast with what its row expects; through the value, both lengths.
    """

    head: Head
    through: Literal["query", "key", "value"]
    query: int
    key: int
    value: float
    total: float


@dataclass(frozen=True, eq=False, repr=False)
class Write(OverText):
    """The output of a head at a query.

    weights (n): its row; lengths (n): of what it takes from each token, times W_O. `moved`: the
    tokens whose logits it raises most and lowers most, with their labels; none where the model
    has no logits that are affine in its stream. `readers`: of all later heads.
    """

    capture: Capture
    head: Head
    query: int
    weights: FloatArray
    lengths: FloatArray
    moved: tuple[tuple[str, Moved], ...]
    readers: tuple[Reader, ...]

    @property
    def about(self) -> str:
        return f"{self.model.name}, {self.head} at {self.tokens[self.query].label}"

    def __repr__(self) -> str:
        return f"<Write {self.about}>"


@dataclass(frozen=True, eq=False, repr=False)
class Why(OverText):
    """Why a query attends to a key rather than to another one, or than its row expects.

    `versus`: the other key; None: the mean of the row's scores by its own weights. `contrast`: the
    difference of raw scores, which the parts add up to; `added`: that of the position bias and of
    a sink, which belong to no part. `query_shares` and `key_shares`: the contrast by what the
    query asks with, and by what the keys answer with, of which `query_lead` and `key_lead` add
    most; `pairs`: the strongest terms of both. `roles` (n): what each token is among those of other
    texts, where wanted.
    """

    capture: Capture
    head: Head
    query: int
    key: int
    versus: int | None
    group: Group
    row: ScoreRow
    contrast: float
    added: float
    query_shares: Shares
    key_shares: Shares
    query_lead: Lead
    key_lead: Lead
    query_parts: tuple[Part | None, ...]
    key_parts: tuple[Part | None, ...]
    table: FloatArray
    error: float
    trees: Sequence[tuple[Side, tuple[Node, ...]]] = ()
    removals: Sequence[Removal] = ()
    roles: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        query, key = self.tokens[self.query].label, self.tokens[self.key].label
        return f"{self.model.name}, {self.head}, {query} → {key}, {self.full:+.3f}"

    def __repr__(self) -> str:
        return f"<Why {self.about}>"

    @property
    def full(self) -> float:
        """The contrast of the scores that the softmax takes."""
        return self.contrast + self.added

    @property
    def pairs(self) -> Sequence[Pair]:
        """The terms of the table, the largest first."""
        rows = [
            Pair(query, key, float(self.table[i, j]))
            for i, query in enumerate(self.query_parts)
            for j, key in enumerate(self.key_parts)
        ]
        return sorted(rows, key=lambda pair: -abs(pair.value))


@dataclass(frozen=True, eq=False, repr=False)
class WhyMean:
    """Why queries of several texts attend to their keys, on the mean over the texts.

    `capture`: the first run. `query`, `key`, `versus`: their labels, where all texts have the same;
    `expected`: the keys are contrasted with the means of their rows. `weight`: of the keys;
    `contrast`, `added`: as of a `Why`. `query_shares`, `key_shares`: values (texts, parts); the
    source of a part numbers the `roles`.
    """

    capture: Capture
    head: Head
    texts: int
    query: str | None
    key: str | None
    versus: str | None
    expected: bool
    weight: Estimate
    contrast: Estimate
    added: Estimate
    query_shares: Shares
    key_shares: Shares
    roles: tuple[str, ...]

    @property
    def about(self) -> str:
        return f"{self.capture.model.name}, {self.head}, mean of {self.texts} texts"

    def __repr__(self) -> str:
        return f"<WhyMean {self.about}>"


def mean_of(each: Sequence[Why]) -> WhyMean:
    """The mean over several texts, with standard errors.

    Raises:
        InputError: the texts were asked about different heads, or by tokens without roles.
    """
    if each[0].group in ("part", "source") and not each[0].roles:
        raise InputError(
            "the tokens of several texts have no roles by which parts could be added up",
            f"add {option('roles', 'position')}, or take {option('group', 'head')}",
        )
    heads = sorted({why.head for why in each})
    if len(heads) > 1:
        raise InputError(
            f"the strongest head is {heads[0]} on one text and {heads[1]} on another",
            f"name it with {option('head')}",
        )
    roles = [why.roles for why in each]
    sides = [[why.query_shares for why in each], [why.key_shares for why in each]]
    (query_shares, names), (key_shares, _) = (aligned(side, roles) for side in sides)
    return WhyMean(
        capture=each[0].capture,
        head=heads[0],
        texts=len(each),
        query=_same([why.tokens[why.query].label for why in each]),
        key=_same([why.tokens[why.key].label for why in each]),
        versus=_same([why.tokens[why.versus].label for why in each if why.versus is not None]),
        expected=each[0].versus is None,
        weight=Estimate.of([float(why.row.weights[why.key]) for why in each]),
        contrast=Estimate.of([why.contrast for why in each]),
        added=Estimate.of([why.added for why in each]),
        query_shares=query_shares,
        key_shares=key_shares,
        roles=names,
    )


def _same(labels: Sequence[str]) -> str | None:
    return labels[0] if len(set(labels)) == 1 else None


# Heads by the weights of a model, without any text.

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
        pairs = [
            Composition(writer, reader, through, float(scores[i, j]))
            for through, scores in self.composed.items()
            for i, writer in enumerate(self.heads)
            for j, reader in enumerate(self.heads)
            if writer.layer < reader.layer
        ]
        return sorted(pairs, key=lambda each: descending(each.score - self.expected[each.through]))
