"""Contribution weights: how much of what a head writes comes from each key.

Cunningham & Muca Cirone 2026, "Contribution Weights: A Geometrical Analysis of Self-Attention
Transformers", arXiv 2606.07604: a token's weight, the length of its value and the direction of it
beside the output, in one number. Here, for one head with its own output projection:

    c_ij = a_ij ⟨f_ij, o_i⟩ / ‖o_i‖²,  f_ij = (g_i ∘ v_j) W_O,  o_i = Σ_j a_ij f_ij

Each row sums to 1, as ⟨o_i, o_i⟩ = ‖o_i‖². A key whose vector points away from what the head
writes in all is below 0. g_i is the gate behind the softmax, 1 where there is none.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnviz.models.attention import Hook

NOTHING = 1e-6
"""A head whose output is this small beside what it is summed from writes nothing."""


@dataclass(frozen=True)
class Writing:
    """The values of a layer's heads, and how they are written into the stream.

    v (kv_heads, n_k, d_v); w_o (h, d_v, d); gate (n_q, h, d_v or 1) is None where there is none.
    """

    v: Tensor
    w_o: Tensor
    gate: Tensor | None = None

    def contributions(self, weights: Tensor, queries: Tensor) -> Tensor:
        """The contribution weights of these query rows, for weights (h, rows, n); 0 of nothing.

        n: the first keys, those that any of these queries attends to.
        """
        v, w_o = self._values(weights.size(2)), self.w_o.float()
        metric = w_o @ w_o.transpose(1, 2)  # (h, d_v, d_v): x·metric·y = ⟨x W_O, y W_O⟩
        z = weights @ v  # (h, rows, d_v)
        gate = self._gate(queries)
        direction = ((gate * z) @ metric) * gate
        size = (z * direction).sum(dim=-1, keepdim=True)  # ‖o‖²
        lengths = ((v @ metric) * v).sum(dim=-1).clamp_min(0).sqrt()  # (h, n)
        summed = (weights * lengths[:, None]).sum(dim=-1, keepdim=True)
        written = size > (NOTHING * summed) ** 2
        shares = weights * (direction @ v.transpose(1, 2)) / size
        return shares.masked_fill(~written, 0)

    def along(self, direction: Tensor) -> Tensor:
        """(h, n): how far each key's value, as it is written, goes along a direction (d).

        In float64, and without a gate.
        """
        v = self._values(self.v.size(1)).double()
        return (v @ (self.w_o.double() @ direction)[..., None]).squeeze(-1)

    def passed(self, z: Tensor) -> Tensor:
        """The share that the gate lets through of the heads' outputs z (n_q, h, d_v): (2, h, n_q).

        Its mean, and ‖(g ∘ z) W_O‖ / ‖z W_O‖; its mean, too, where nothing is to be written.
        """
        gate, z = self._gate(torch.arange(z.size(0))), z.float().transpose(0, 1)  # (h, n_q, d_v)
        written, whole = ((x @ self.w_o.float()).norm(dim=-1) for x in (gate * z, z))
        mean = gate.mean(dim=-1).expand_as(whole)
        return torch.stack([mean, torch.where(whole > 0, written / whole, mean)])

    def _values(self, n: int) -> Tensor:
        return self.v[:, :n].float().repeat_interleave(self.w_o.size(0) // self.v.size(0), dim=0)

    def _gate(self, queries: Tensor) -> Tensor:
        """(h, rows, d_v or 1)."""
        if self.gate is None:
            return torch.ones((1, 1, 1), device=self.v.device)
        return self.gate[queries].float().transpose(0, 1)


@dataclass
class HeadsWriting:
    """Hooks on the values and patterns of an attention whose output projection is (h, d_v, d).

    They give the contribution weights of its patterns (1, h, rows, n) to another hook.
    """

    w_o: Tensor
    give: Hook = lambda _: None
    _values: Tensor = field(init=False)

    def v(self, v: Tensor) -> None:  # (1, g, n, d_v)
        self._values = v[0]

    def pattern(self, pattern: Tensor) -> None:
        self.give(self.of(pattern[0])[None])

    def of(self, weights: Tensor) -> Tensor:
        """(h, rows, n)."""
        queries = torch.arange(weights.size(1))
        return Writing(self._values, self.w_o).contributions(weights, queries)
