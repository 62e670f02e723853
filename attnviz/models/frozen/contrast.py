"""Why one key and not another: a contrast of a head's scores, as sums over the parts of the model.

A term that is the same for all keys changes no weight, so only differences of scores say why. The
contrast of key j with what its row expects is s_j - Σ_m A_m s_m = ln A_j + H, with the entropy H of
the row in nats.
"""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attnviz.models.frozen.sums import Sums, Walk
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.parts import Group, Node, Part, Removal, ScoreRow, Shares, Side, grouped

AT_ONCE = 16
"""Sums that are walked back at a time."""
FAINT = 0.01
"""Parts of a tree that are less than this share of the contrast are left out."""


class Contrast:
    """The contrast of a key with another one, or with what the row expects.

    Args:
        sums: of the run.
        head: the head.
        query: the row.
        key: the key that is asked about.
        versus: the other key; None: the mean of the row's scores by its own weights.
    """

    def __init__(self, sums: Sums, head: Head, query: int, key: int, versus: int | None) -> None:
        self._sums, self._head, self._query, self._key = sums, head, query, key
        self._expected = versus is None
        self.row: ScoreRow = sums.row(head, query)
        attention = sums.attention(head)
        like = attention.q
        if versus is None:
            coefficients = -torch.from_numpy(self.row.weights).to(like)
        else:
            coefficients = like.new_zeros(len(self.row.weights))
            coefficients[versus] = -1
        coefficients[key] += 1
        self._coefficients: Tensor = coefficients  # (n)

    @property
    def total(self) -> float:
        """The contrast of raw scores, which the parts add up to."""
        return float(self._coefficients.cpu().double().numpy() @ self.row.raw.astype(float))

    @property
    def added(self) -> float:
        """What the soft cap, the position bias and a sink add to the contrast."""
        beside = (self.row.scores - self.row.raw).astype(float)
        more = float(self._coefficients.cpu().double().numpy() @ beside)
        if self._expected and self.row.sink is not None:
            more -= self.row.sink_weight * self.row.sink
        return more

    @cached_property
    def query_walk(self) -> Walk:
        """The contrast by what wrote the stream at the query."""
        return self._sums.of_query(self._head, self._query, self._coefficients)

    @cached_property
    def key_walk(self) -> Walk:
        """The contrast by what wrote the stream at the keys."""
        query = self._sums.attention(self._head).q[self._head.head, self._query]
        return self._sums.of_keys(self._head, query[None], self._coefficients)

    def table(
        self, group: Group, most: int
    ) -> tuple[tuple[Part | None, ...], tuple[Part | None, ...], FloatArray]:
        """The strongest parts of both sides, and the terms of each two (query parts, key parts).

        The last row and the last column, None, are all other parts.
        """
        by_part = self.query_walk.shares.by(group)
        kept = by_part.strongest(most)
        members = [self._members(by_part.parts[i], group) for i in kept]
        told = self._sums.query_of(self._head, self._query, members)  # (parts, d_k)
        whole = self._sums.attention(self._head).q[self._head.head, self._query]
        queries = torch.cat([told, whole[None] - told.sum(dim=0, keepdim=True)])
        shares = self._by_keys(queries).by(group)
        columns = shares.strongest(most)
        others = shares.total - shares.values[:, columns].sum(axis=1)
        values = np.concatenate([shares.values[:, columns], others[:, None]], axis=1)
        query_parts = *(by_part.parts[i] for i in kept), None
        return query_parts, (*(shares.parts[i] for i in columns), None), values.astype(np.float32)

    def _by_keys(self, queries: Tensor) -> Shares:
        """The contrasts of several query vectors by what wrote the keys, some at a time."""
        some = [
            self._sums.of_keys(self._head, each, self._coefficients).shares
            for each in torch.split(queries, AT_ONCE)
        ]
        values = np.concatenate([each.values for each in some])
        return Shares(some[0].parts, values, np.concatenate([each.total for each in some]))

    def _members(self, group_part: Part, group: Group) -> list[Part]:
        """The parts that are summed up in one."""
        every = self.query_walk.shares.parts
        return [part for part in every if grouped(part, group) == group_part]

    # ---- the tree ----

    def tree(self, side: Side, depth: int, branches: int) -> tuple[Node, ...]:
        """The strongest parts of a side, and what earlier heads among them are made of."""
        return self._nodes(self.query_walk if side == "query" else self.key_walk, depth, branches)

    def _nodes(self, walk: Walk, depth: int, branches: int) -> tuple[Node, ...]:
        """Of the strongest heads, MLPs and embeddings each, the token that most of it is from."""
        shares, by_head = walk.shares, walk.shares.by("head")
        found = []
        for group in (by_head.parts[i] for i in by_head.strongest(branches)):
            own = [i for i, part in enumerate(shares.parts) if grouped(part, "head") == group]
            most = max(own, key=lambda i: abs(shares.values[0, i]))
            value = float(shares.values[0, most])
            if abs(value) < FAINT * abs(self.total):
                continue
            found.append(self._node(walk, shares.parts[most], value, depth, branches))
        rest = float(shares.total[0]) - sum(node.value for node in found)
        return (*found, Node(None, rest))

    def _node(self, walk: Walk, part: Part, value: float, depth: int, branches: int) -> Node:
        if part.kind != "head":
            return Node(part, value)
        assert part.layer is not None
        assert part.head is not None
        assert part.source is not None
        below, row = self._sums.of_taken(walk, Head(part.layer, part.head), part.source)
        children = self._nodes(below, depth - 1, branches) if depth > 1 else ()
        return Node(part, value, children, row, part.source)

    # ---- the check ----

    def without(self, side: Side, part: Part) -> Removal:
        """Take a part away from what the head's query, or its keys, read, and compute anew.

        `part`: an embedding, a head or an MLP, from whatever token; no biases.
        """
        shares = (self.query_walk if side == "query" else self.key_walk).shares.by("head")
        value = float(shares.values[0, shares.parts.index(part)])
        numbers = self._coefficients.cpu().double().numpy()
        with torch.no_grad():
            fixed = float(numbers @ self._scores_without(side, part, free=False))
            if not self._sums.run.layers[self._head.layer].normed:
                return Removal(side, part, self.total - value, fixed, None, None)
            free = self._scores_without(side, part, free=True)
        weight = self._weight(free)
        return Removal(side, part, self.total - value, fixed, float(numbers @ free), weight)

    def _scores_without(self, side: Side, part: Part, *, free: bool) -> np.ndarray:
        """The raw scores (n) of the row, with a part taken away from one side."""
        a, layer, head = self._sums.attention(self._head), self._head.layer, self._head.head
        stream = self._sums.run.streams[layer]
        less = stream - self._sums.vector(self._members(part, "head"), layer)
        q, k, _ = self._sums.run.layers[layer].asks(less[None], free=free)
        keys, query = a.k[head // a.group], a.q[head, self._query]
        if side == "query":
            query = q[0, head, self._query]
        else:
            keys = k[0, head // a.group]
        return (a.scaling * (keys @ query)).cpu().double().numpy()

    def _weight(self, raw: np.ndarray) -> float:
        """The key's weight with other raw scores (n)."""
        row, cap = self.row, self._sums.attention(self._head).cap
        scores = (raw if cap is None else cap * np.tanh(raw / cap)) + row.added
        seen = np.append(scores[row.seen], [] if row.sink is None else [row.sink])
        return float(np.exp(scores[self._key] - seen.max()) / np.exp(seen - seen.max()).sum())
