"""The causes of a head's weights, and its output: one contrast, and its mean over texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError, option
from attnviz.records.capture import Capture, FloatArray, OverText
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Explained, Group, Part, Shares, aligned, grouped
from attnviz.records.positions import last_word

Side: TypeAlias = Literal["query", "key"]


@dataclass(frozen=True, eq=False)
class ScoreRow:
    """One head's row at a query, as it was computed.

    raw (n): q·k·scale; scores (n): with the soft cap and the position bias, the softmax's input;
    added (n): the position bias; weights (n); seen (n): True for keys that the mask allows. `sink`:
    the score of a learned sink that is not a token, or None without one.
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
    """A term of a contrast: a part at the query, a part at the keys; None for all others."""

    query: Part | None
    key: Part | None
    value: float


@dataclass(frozen=True)
class Node:
    """A part of the tree, its addition to the contrast, and its own parts.

    `part` is None for all others of its level. `query` and `key`: for a head, the row and the key
    of the score by which it takes this.
    """

    part: Part | None
    value: float
    children: tuple["Node", ...] = ()
    query: int | None = None
    key: int | None = None


@dataclass(frozen=True)
class Removal:
    """A part removed from the input of the head's query, or of its keys.

    `predicted`: the contrast then, by the sum; `fixed`: computed with norms held fixed; `free`:
    with the norms recomputed, and `weight`: the key's weight then. Both are None if there is no
    norm between the stream and the head.
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

    `part`: a head with the token that it took at least half of this from, if there is one.
    `value`: its addition; `share`: its share of all parts with the sign of the contrast.
    """

    part: Part
    value: float
    share: float

    @classmethod
    def of(cls, shares: Shares) -> "Lead":
        """The lead of one sum over ungrouped parts."""
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
    """A token of the vocabulary, and the change of its logit by a head; also by source (n)."""

    id: int
    effect: float
    by_source: tuple[float, ...]


@dataclass(frozen=True)
class Reader:
    """A later head that reads a head's output, through its query, its key or its value.

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

    weights (n): its row; lengths (n): of its output from each token, after W_O. `moved`: the
    tokens whose logits it raises most and lowers most, with their labels; empty if the model's
    logits are not affine in its stream. `readers`: among all later heads.
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

    `versus`: the other key, or None for the mean of the row's scores by its own weights.
    `contrast`: the difference of raw scores, the sum over the parts; `added`: that of the position
    bias and of a sink, which belong to no part. `query_shares` and `key_shares`: the contrast by
    parts of the query's input, and of the keys', of which `query_lead` and `key_lead` add most;
    `pairs`: the strongest terms of both. `roles` (n): each token's role, shared with other texts,
    if wanted; `by_position`: roles are positions. `query_name`, `key_name`: the names asked for,
    or None.
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
    by_position: bool = False
    query_name: str | None = None
    key_name: str | None = None
    explained: Explained | None = None

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
    """The mean over texts of the reasons why queries attend to their keys.

    `capture`: the first run. `query`, `key`, `versus`: their labels, if all texts have the same;
    `expected`: the keys are contrasted with the means of their rows. `weight`: of the keys;
    `contrast`, `added`: as in `Why`. `query_shares`, `key_shares`: values (texts, parts); the
    source of a part is the number of a role. `query_names`, `key_names`: the names asked for, each
    once, or empty; `last_words`: the queries are then the last words.
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
    query_names: tuple[str, ...] = ()
    key_names: tuple[str, ...] = ()
    last_words: bool = False
    explained: Explained | None = None

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
            "the tokens of several texts have no roles by which to add up parts",
            f"add {option('roles', 'position')}, or use {option('group', 'head')}",
        )
    heads = sorted({why.head for why in each})
    if len(heads) > 1:
        raise InputError(
            f"the strongest head is {heads[0]} on one text and {heads[1]} on another",
            f"name it with {option('head')}",
        )
    roles = [why.roles for why in each]
    sides = [[why.query_shares for why in each], [why.key_shares for why in each]]
    (query_shares, names), (key_shares, _) = (
        aligned(side, roles, by_position=each[0].by_position) for side in sides
    )
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
        query_names=_names([why.query_name for why in each]),
        key_names=_names([why.key_name for why in each]),
        last_words=all(why.query == last_word(why.tokens) for why in each),
        explained=each[0].explained and replace(each[0].explained, share=nan),  # of each text
    )


def _names(names: Sequence[str | None]) -> tuple[str, ...]:
    """The names, each once, with "" for a text without one; () if no text has one."""
    return tuple(dict.fromkeys(name or "" for name in names)) if any(names) else ()


def _same(labels: Sequence[str]) -> str | None:
    return labels[0] if len(set(labels)) == 1 else None
