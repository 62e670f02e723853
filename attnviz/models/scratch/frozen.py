"""A run of the from-scratch GPT, held fixed.

Letters in the shape comments as in `models/frozen/sums.py`.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnviz.models.attention import causal_mask, kept, split_heads
from attnviz.models.frozen.sums import FrozenAttention, FrozenNorm, FrozenRun, frozen_norm
from attnviz.models.scratch.gpt import GPT

POINTS = ("resid_pre", "resid_mid", "attn.q", "attn.k", "attn.v", "attn.pattern")


@dataclass(frozen=True)
class GPTLayer:
    """A block held fixed."""

    block: Any
    norm: FrozenNorm
    attention: FrozenAttention
    normed: bool = True

    def passes(self, x: Tensor, attended: Tensor) -> Tensor:
        return x + attended

    def asks(self, x: Tensor, *, free: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        attn, read = self.block.attn, self.block.ln_1(x) if free else self.norm(x)
        q, k, v = (split_heads(w(read), attn.n_head) for w in (attn.w_q, attn.w_k, attn.w_v))
        return q, k, v


@dataclass(frozen=True)
class GPTOutput:
    """The last norm, held fixed, and the tied output layer, which has no bias."""

    norm: FrozenNorm
    weight: Tensor
    bias: None = None

    def reads(self, x: Tensor) -> Tensor:
        return self.norm(x)


def freeze_gpt(model: GPT, ids: Tensor) -> FrozenRun:
    """Run a GPT over ids (1, n), and hold the run fixed."""
    n_layer = len(model.h)
    names = [f"h.{layer}.{point}" for layer in range(n_layer) for point in POINTS]
    with torch.no_grad(), kept(model, names, lambda value: value[0]) as seen:
        final = model.hidden(ids)[0]  # (n, d)
        positions = model.wpe.weight.detach()[: ids.size(1)]
        return FrozenRun(
            embedded={"embedding": model.wte(ids[0]), "position": positions},
            constant=torch.zeros_like(final),
            layers=[_layer(model.h[i], f"h.{i}.", seen) for i in range(n_layer)],
            streams=[*(seen[f"h.{i}.resid_pre"] for i in range(n_layer)), final],
            vocabulary=model.wte.weight.detach(),
            output=GPTOutput(_norm(model.ln_f, final), model.wte.weight.detach()),
        )


def _layer(block: Any, path: str, seen: dict[str, Tensor]) -> GPTLayer:
    q, k, v, pattern = (seen[f"{path}attn.{name}"] for name in ("q", "k", "v", "pattern"))
    before, w_o = seen[f"{path}resid_pre"], block.attn.w_o
    attention = FrozenAttention(
        q=q,
        k=k,
        v=v,
        pattern=pattern,
        scaling=1 / math.sqrt(q.size(2)),
        w_o=w_o.weight.detach().unflatten(0, (q.size(0), -1)),
        b_o=w_o.bias.detach(),
        attended=seen[f"{path}resid_mid"] - before,
        seen=causal_mask(len(before), before.device),
    )
    return GPTLayer(block, _norm(block.ln_1, before), attention)


def _norm(module: Any, x: Tensor) -> FrozenNorm:
    found = frozen_norm(module, x, module(x))
    assert found is not None  # a LayerNorm is one
    return found
