"""What a head writes at a position: how it moves the prediction, and which later heads read it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from attnviz.models.frozen.run import Attention, FrozenLayer
from attnviz.models.frozen.sums import Sums
from attnviz.models.tracing import numbers
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.parts import Moved, Reader


class Writes:
    """What one head adds to the stream at one position, with everything else held fixed."""

    def __init__(self, sums: Sums, head: Head, query: int) -> None:
        self._sums, self._head, self._query = sums, head, query
        a = sums.attention(head)
        weights, values = a.pattern[head.head, query], a.values[head.head]  # (n), (n, d_v)
        taken = (weights[:, None] * values) @ a.w_o[head.head]  # (n, d)
        self.lengths: FloatArray = numbers(taken.norm(dim=-1))
        """How long each token's part of the addition is (n)."""
        self._added = taken.sum(dim=0)  # (d)

    @torch.no_grad()
    def moved(self, most: int) -> tuple[Moved, ...]:
        """The tokens whose logits it raises most, then those that it lowers most.

        Its mean effect on all tokens is taken away, as it changes no probability.
        """
        output, n_layers = self._sums.run.output, len(self._sums.run.layers)
        if output is None:
            return ()
        (final,) = (at for layer, at in self._arriving() if layer == n_layers)
        read = (output.reads(final[None]) - output.reads(torch.zeros_like(final)[None]))[0]
        logits = output.weight @ read[self._query]  # (V)
        centred = logits - logits.mean()
        most = min(most, len(centred) // 2)
        ids = (*centred.topk(most).indices.tolist(), *(-centred).topk(most).indices.tolist())
        by_source = self._by_source(ids)
        return tuple(
            Moved(id_, float(centred[id_]), tuple(by_source[i].tolist()))
            for i, id_ in enumerate(ids)
        )

    def _by_source(self, ids: tuple[int, ...]) -> FloatArray:
        """What each token's part of the addition does to some logits (ids, n)."""
        output = self._sums.run.output
        assert output is not None
        rows = output.weight[list(ids)] - output.weight.mean(dim=0)
        shares = self._sums.of_logits(self._query, rows).shares
        own = [i for i, part in enumerate(shares.parts) if (part.layer, part.head) == self._head]
        made: FloatArray = shares.values[:, own].astype("float32")
        return made

    @torch.no_grad()
    def readers(self) -> list[Reader]:
        """The later heads that it can reach: by their queries, their keys and their values.

        By its query, a head reads the addition in the row of this position, in the contrast of its
        strongest key with what the row expects. By its keys, in the row that attends most to this
        position, in this key's contrast. By its values, as a share of this position's value.
        """
        found, layers = list[Reader](), self._sums.run.layers
        for layer, at in self._arriving():
            if layer < len(layers) and (attention := layers[layer].attention) is not None:
                found += self._read_in(layer, layers[layer], attention, at)
        return found

    def _read_in(
        self, layer: int, frozen: FrozenLayer, a: Attention, at: Tensor
    ) -> Iterator[Reader]:
        i, both = self._query, torch.stack([at, torch.zeros_like(at)])
        q, k, v = (made[0] - made[1] for made in frozen.asks(both))
        for h in range(a.q.size(0)):
            g, pattern = h // a.group, a.pattern[h]
            scores = a.scaling * a.k[g] @ a.q[h].T  # (n_k, n_q)
            coefficients = -pattern[i]
            key = int(pattern[i].argmax())
            coefficients[key] += 1
            value = a.scaling * float(coefficients @ (a.k[g] @ q[h, i]))
            head, total = Head(layer, h), float(coefficients @ scores[:, i])
            yield Reader(head, "query", i, key, value, total)
            row = int(pattern[:, i].argmax())
            coefficients = -pattern[row]
            coefficients[i] += 1
            value = a.scaling * float(coefficients[i] * (k[g, i] @ a.q[h, row]))
            yield Reader(head, "key", row, i, value, float(coefficients @ scores[:, row]))
            yield Reader(head, "value", row, i, float(v[g, i].norm()), float(a.v[g, i].norm()))

    def _arriving(self) -> Iterator[tuple[int, Tensor]]:
        """The addition as it arrives at each later layer, and behind the last one (n, d)."""
        run, zeros = self._sums.run, torch.zeros_like(self._sums.run.constant)
        attended = zeros.clone()
        attended[self._query] = self._added
        at = zeros
        for layer in range(self._head.layer, len(run.layers)):
            both = torch.stack([at, zeros]), torch.stack([attended, zeros])
            made, nothing = run.layers[layer].passes(*both)
            at, attended = made - nothing, zeros
            yield layer + 1, at
