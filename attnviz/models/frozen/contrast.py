"""The contrast of a head's scores between keys, as sums over the parts of the model.

A term that is the same for all keys changes no weight, so only differences of scores say why. The
contrast of key j with what its row expects is s_j - Σ_m A_m s_m = ln A_j + H, with the entropy H of
the row in nats.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnviz.models.engine import numbers
from attnviz.models.frozen.layer import FrozenAttention, FrozenLayer
from attnviz.models.frozen.run import FrozenRun, Walk
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.parts import Group, Part, grouped
from attnviz.records.why import Moved, Node, Reader, Removal, ScoreRow, Side

ROWS = 256
"""Vectors to multiply at a time."""
FAINT = 0.01
"""Parts of a tree that are less than this share of the contrast are left out."""


class Contrast:
    """The contrast of a key with another one (`versus`), or with the row's mean by its weights."""

    def __init__(
        self, run: FrozenRun, head: Head, query: int, key: int, versus: int | None
    ) -> None:
        self._run, self._head, self._query, self._key = run, head, query, key
        self._expected = versus is None
        self._attention = run.attention(head)
        self.row: ScoreRow = run.row(head, query)
        if versus is None:
            coefficients = -torch.from_numpy(self.row.weights).to(self._attention.q)
        else:
            coefficients = self._attention.q.new_zeros(len(self.row.weights))
            coefficients[versus] = -1
        coefficients[key] += 1
        self._coefficients: Tensor = coefficients  # (n)

    def _of_scores(self, scores: np.ndarray) -> float:
        """The contrast of some scores (n)."""
        return float(self._coefficients.cpu().double().numpy() @ scores.astype(float))

    @property
    def total(self) -> float:
        """The contrast of raw scores, which the parts add up to."""
        return self._of_scores(self.row.raw)

    @property
    def added(self) -> float:
        """The share of the soft cap, the position bias and a sink in the contrast."""
        more = self._of_scores(self.row.scores - self.row.raw)
        if self._expected and self.row.sink is not None:
            more -= self.row.sink_weight * self.row.sink
        return more

    @cached_property
    def _vectors(self) -> tuple[Tensor, Tensor]:
        """The query, and the sum of keys by their coefficients, each (d_k)."""
        a, head = self._attention, self._head.head
        return a.q[head, self._query], a.scaling * (self._coefficients @ a.k[head // a.group])

    @cached_property
    def query_walk(self) -> Walk:
        """The contrast by what wrote the stream at the query."""
        return self._run.of_query(self._head, self._query, self._vectors[1][None])

    @cached_property
    def key_walk(self) -> Walk:
        """The contrast by what wrote the stream at the keys."""
        return self._run.of_keys(self._head, self._vectors[0][None], self._coefficients)

    def table(
        self, group: Group, most: int
    ) -> tuple[tuple[Part | None, ...], tuple[Part | None, ...], FloatArray]:
        """The parts of the largest terms, and the terms of each two (query parts, key parts).

        Sides have `most` parts, of which the others are the strongest; the last row and the last
        column, None, are all that are left.
        """
        added = self._added(group)
        largest = largest_products(added[0], added[1], most)
        parts, vectors = list[tuple[Part | None, ...]](), list[NDArray[np.float64]]()
        for side, walk in enumerate((self.query_walk, self.key_walk)):
            shares = walk.shares.by(group)
            own = dict.fromkeys([*(pair[side] for pair in largest), *shares.strongest(most)])
            kept = sorted([*own][:most], key=lambda i: -abs(shares.values[0, i]))
            chosen = added[side][:, kept]
            left = self._vectors[side].cpu().double().numpy() - chosen.sum(axis=1)
            parts.append((*(shares.parts[i] for i in kept), None))
            vectors.append(np.column_stack([chosen, left]))
        return parts[0], parts[1], (vectors[0].T @ vectors[1]).astype(np.float32)

    def _added(self, group: Group) -> NDArray[np.float64]:
        """The addition of each part to the query, and to the sum of keys (2, d_k, parts).

        Parts from single tokens are many: for these, the vectors are followed back instead.
        """
        run, head, query, of = self._run, self._head, self._query, self._coefficients
        if group in ("head", "layer"):
            members = defaultdict[Part, list[Part]](list)
            for part in self.query_walk.shares.parts:
                members[grouped(part, group)].append(part)
            both = run.asked_by(head, query, of, [*members.values()])
            return both.transpose(1, 2).cpu().double().numpy()
        axes = torch.eye(self._attention.q.size(-1)).to(self._attention.q)
        walks = (
            (run.of_query(head, query, some), run.of_keys(head, some, of))
            for some in torch.split(axes, run.at_once)
        )
        each = ([walk.shares.by(group).values for walk in both] for both in walks)
        return np.concatenate([*map(np.stack, each)], axis=1)

    def tree(self, side: Side, depth: int, branches: int) -> tuple[Node, ...]:
        """The strongest parts of a side, and what earlier heads among them are made of."""
        return self._nodes(self.query_walk if side == "query" else self.key_walk, depth, branches)

    def _nodes(self, walk: Walk, depth: int, branches: int) -> tuple[Node, ...]:
        """For each of the strongest heads, MLPs and embeddings: the token that contributes most."""
        shares, by_head = walk.shares, walk.shares.by("head")
        nodes = []
        for group in (by_head.parts[i] for i in by_head.strongest(branches)):
            own = [i for i, part in enumerate(shares.parts) if grouped(part, "head") == group]
            most = max(own, key=lambda i: abs(shares.values[0, i]))
            value = float(shares.values[0, most])
            if abs(value) < FAINT * abs(self.total):
                continue
            nodes.append(self._node(walk, shares.parts[most], value, depth, branches))
        rest = float(shares.total[0]) - sum(node.value for node in nodes)
        return (*nodes, Node(None, rest))

    def _node(self, walk: Walk, part: Part, value: float, depth: int, branches: int) -> Node:
        if part.kind != "head":
            return Node(part, value)
        assert part.layer is not None
        assert part.head is not None
        assert part.source is not None
        below, row = self._run.of_taken(walk, Head(part.layer, part.head), part.source)
        children = self._nodes(below, depth - 1, branches) if depth > 1 else ()
        return Node(part, value, children, row, part.source)

    def without(self, side: Side, part: Part) -> Removal:
        """Take a part away from what the head's query, or its keys, read, and compute anew.

        `part`: an embedding, a head or an MLP, from whatever token; no biases.
        """
        shares = (self.query_walk if side == "query" else self.key_walk).shares.by("head")
        value = float(shares.values[0, shares.parts.index(part)])
        with torch.no_grad():
            fixed = self._of_scores(self._scores_without(side, part, free=False))
            if not self._run.layers[self._head.layer].normed:
                return Removal(side, part, self.total - value, fixed, None, None)
            free = self._scores_without(side, part, free=True)
        # the key's weight with these raw scores
        cap, row = self._attention.cap, self.row
        scores = (free if cap is None else cap * np.tanh(free / cap)) + row.added
        seen = np.append(scores[row.seen], [] if row.sink is None else [row.sink])
        weight = float(np.exp(scores[self._key] - seen.max()) / np.exp(seen - seen.max()).sum())
        return Removal(side, part, self.total - value, fixed, self._of_scores(free), weight)

    def _scores_without(self, side: Side, part: Part, *, free: bool) -> np.ndarray:
        """The raw scores (n) of the row, with a part taken away from one side."""
        a, (layer, head) = self._attention, self._head
        stream, shares = self._run.streams[layer], self.query_walk.shares
        parts = [each for each in shares.parts if grouped(each, "head") == part]
        less = stream - self._run.vector(parts, layer)
        q, k, _ = self._run.layers[layer].asks(less[None], free=free)
        keys, query = a.k[head // a.group], a.q[head, self._query]
        if side == "query":
            query = q[0, head, self._query]
        else:
            keys = k[0, head // a.group]
        return (a.scaling * (keys @ query)).cpu().double().numpy()


def largest_products(
    rows: NDArray[np.float64], columns: NDArray[np.float64], most: int
) -> list[tuple[int, int]]:
    """The indices of the largest products, by size, of vectors (d, m) and (d, n).

    None is larger than the product of both lengths, so that most need not be computed.
    """
    lengths, others = np.linalg.norm(rows, axis=0), np.linalg.norm(columns, axis=0)
    order, found = np.argsort(-lengths), list[tuple[float, int, int]]()
    for some in np.split(order, range(ROWS, len(order), ROWS)):
        least = found[-1][0] if len(found) == most else 0.0
        (near,) = np.nonzero(others * lengths[some[0]] > least)
        sizes = np.abs(rows[:, some].T @ columns[:, near])
        few = min(most, sizes.size)
        for place in np.argpartition(-sizes, few - 1, axis=None)[:few].tolist() if few else ():
            i, j = divmod(place, len(near))
            found.append((float(sizes[i, j]), int(some[i]), int(near[j])))
        found = sorted(found, reverse=True)[:most]
    return [(i, j) for _, i, j in found]


class HeadOutput:
    """The addition of one head to the stream at one position, with everything else held fixed."""

    def __init__(self, run: FrozenRun, head: Head, query: int) -> None:
        self._run, self._head, self._query = run, head, query
        a = run.attention(head)
        weights = a.weights(torch.tensor([query]))[head.head, 0]  # (n)
        values = a.values[head.head]  # (n, d_v)
        taken = (weights[:, None] * values) @ a.w_o[head.head]  # (n, d)
        self.lengths: FloatArray = numbers(taken.norm(dim=-1))
        """The length of each token's part of the addition (n)."""
        self._added = taken.sum(dim=0)  # (d)

    @torch.no_grad()
    def moved(self, most: int) -> tuple[Moved, ...]:
        """The tokens whose logits it raises most, then those that it lowers most.

        Its mean effect on all tokens is taken away, as it changes no probability.
        """
        output = self._run.output
        if output is None:
            return ()
        *_, (_, final) = self._arriving()
        read = (output.reads(final[None]) - output.reads(torch.zeros_like(final)[None]))[0]
        logits = output.weight @ read[self._query]  # (V)
        centred = logits - logits.mean()
        most = min(most, len(centred) // 2)
        ids = (*centred.topk(most).indices.tolist(), *(-centred).topk(most).indices.tolist())
        rows = output.weight[list(ids)] - output.weight.mean(dim=0)
        by_source = list[FloatArray]()  # (ids, n)
        for some in torch.split(rows, self._run.at_once):
            shares = self._run.of_logits(self._query, some).shares
            own = [i for i, each in enumerate(shares.parts) if each[1:3] == self._head]
            by_source += [*shares.values[:, own].astype(np.float32)]
        return tuple(
            Moved(id_, float(centred[id_]), tuple(effects.tolist()))
            for id_, effects in zip(ids, by_source, strict=True)
        )

    @torch.no_grad()
    def readers(self) -> list[Reader]:
        """The later heads that it can reach: by their queries, their keys and their values.

        By its query, a head reads the addition in the row of this position, in the contrast of its
        strongest key with what the row expects. By its keys, in the row that attends most to this
        position, in this key's contrast. By its values, as a share of this position's value.
        """
        readers, layers = list[Reader](), self._run.layers
        for layer, at in self._arriving():
            if layer < len(layers) and (attention := layers[layer].attention) is not None:
                readers += self._read_in(layer, layers[layer], attention, at)
        return readers

    def _read_in(
        self, layer: int, frozen: FrozenLayer, a: FrozenAttention, at: Tensor
    ) -> Iterator[Reader]:
        i, both = self._query, torch.stack([at, torch.zeros_like(at)])
        q, k, v = (vectors[0] - vectors[1] for vectors in frozen.asks(both))
        (own,), on_it = a.weights(torch.tensor([i])).unbind(1), a.column(i)  # (h, n), (h, n)
        strongest = on_it.argmax(dim=1).cpu()  # (h)
        for h in range(a.q.size(0)):
            g = h // a.group
            coefficients = -own[h]
            key = int(own[h].argmax())
            coefficients[key] += 1
            value = a.scaling * float(coefficients @ (a.k[g] @ q[h, i]))
            head, total = Head(layer, h), a.scaling * float(coefficients @ (a.k[g] @ a.q[h, i]))
            yield Reader(head, "query", i, key, value, total)
            row = int(strongest[h])
            coefficients = -a.weights(strongest[h : h + 1])[h, 0]
            coefficients[i] += 1
            value = a.scaling * float(coefficients[i] * (k[g, i] @ a.q[h, row]))
            total = a.scaling * float(coefficients @ (a.k[g] @ a.q[h, row]))
            yield Reader(head, "key", row, i, value, total)
            yield Reader(head, "value", row, i, float(v[g, i].norm()), float(a.v[g, i].norm()))

    def _arriving(self) -> Iterator[tuple[int, Tensor]]:
        """The addition as it arrives at each later layer, and behind the last one (n, d)."""
        run, zeros = self._run, torch.zeros_like(self._run.constant)
        attended = zeros.clone()
        attended[self._query] = self._added
        at = zeros
        for layer in range(self._head.layer, len(run.layers)):
            x = torch.stack([at, zeros])
            passed, nothing = run.layers[layer].passes(x, torch.stack([attended, zeros]))
            at, attended = passed - nothing, zeros
            yield layer + 1, at
