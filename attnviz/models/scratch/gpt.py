"""A decoder with exactly GPT-2's architecture, from scratch, on attention.py.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners": learned
positions, LayerNorm before each sublayer and at the end, GELU (tanh), output tied to
the token embedding. Module names are those of GPT-2's checkpoints. Letters in the
shape comments:

    B batch   n tokens   d d_model   V vocabulary
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from attnviz.models.attention import Affine, HookPoint, MultiHeadAttention
from attnviz.models.folder.config import GPTConfig


class MLP(nn.Module):
    """The MLP, applied to each position alone: widen, GELU, narrow."""

    def __init__(self, d_model: int, d_mlp: int) -> None:
        super().__init__()
        self.c_fc = Affine(d_model, d_mlp)
        self.c_proj = Affine(d_mlp, d_model)

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.functional.gelu(self.c_fc(x), approximate="tanh")  # (B, n, d_mlp)
        narrowed: Tensor = self.c_proj(hidden)  # (B, n, d)
        return narrowed


class Block(nn.Module):
    """One layer: attention, then MLP, each added to the residual stream.

    Hook points (B, n, d): `resid_pre` (before the layer), `attn_out` and `mlp_out` (what is added),
    `resid_mid` (after attention), `resid_post` (after the layer).
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = MultiHeadAttention(config.n_embd, config.n_head)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config.n_embd, config.d_mlp)
        self.resid_pre, self.resid_mid, self.resid_post = HookPoint(), HookPoint(), HookPoint()
        self.attn_out, self.mlp_out = HookPoint(), HookPoint()

    def forward(self, x: Tensor, mask: Tensor | None, rows: int | None = None) -> Tensor:
        x = self.resid_pre(x)  # (B, n, d)
        attended = self.attn(self.ln_1(x), mask, causal=mask is None, rows=rows)
        x = self.resid_mid(x + self.attn_out(attended))  # (B, n, d)
        out: Tensor = self.resid_post(x + self.mlp_out(self.mlp(self.ln_2(x))))  # (B, n, d)
        return out


class GPT(nn.Module):
    """Token ids in, next-token logits out.

    Hook points are named as in `h.2.attn.pattern` or `h.0.resid_pre`.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self._initialise()

    def _initialise(self) -> None:
        """As in GPT-2: normal 0.02, the two projections into the residual stream scaled down."""
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)
        for name, parameter in self.h.named_parameters():
            if name.endswith(("w_o.weight", "c_proj.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * self.config.n_layer))

    def forward(
        self, ids: Tensor, *, mask: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Logits (B, n, V) of the token that follows each position; arguments as in `hidden`."""
        return self.logits(self.ln_f(self.hidden(ids, mask=mask, positions=positions)))

    def hidden(
        self,
        ids: Tensor,
        *,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        n_layer: int | None = None,
        rows: int | None = None,
    ) -> Tensor:
        """The residual stream (B, n, d) before the last LayerNorm, of ids (B, n).

        `mask`: broadcast to (B, h, n, n), True where a query may attend; None is causal.
        `positions`: (B, n) or (n); None counts from 0. `n_layer`: how many layers to run, from the
        first. `rows`: how many queries form a block. None takes all.
        """
        x = self.embed(ids, positions)
        return self.through(x, range(len(self.h[:n_layer])), mask, rows=rows)

    def embed(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """The input of layer 0 (B, n, d); arguments as in `hidden`."""
        if positions is None:
            positions = torch.arange(ids.size(1), device=ids.device)
        x: Tensor = self.wte(ids) + self.wpe(positions)
        return x

    def through(
        self, x: Tensor, layers: range, mask: Tensor | None = None, *, rows: int | None = None
    ) -> Tensor:
        """The residual stream (B, n, d) after these layers; arguments as in `hidden`."""
        for layer in layers:
            x = self.h[layer](x, mask, rows)  # (B, n, d)
        return x

    def logits(self, normed: Tensor) -> Tensor:
        """(B, n, d) after the last LayerNorm to (B, n, V); the output is tied to `wte`."""
        return nn.functional.linear(normed, self.wte.weight)


# GPT-2 keeps W_Q, W_K and W_V side by side in one matrix (`c_attn`); here they are apart, as the
# formulas have them.

PREFIX = "transformer."


def to_gpt2(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This model's tensors under GPT-2's names: W_Q, W_K, W_V joined side by side."""
    joined = {}
    for name, tensor in state.items():
        if ".attn.w_q." in name:
            parts = [state[name.replace(".w_q.", f".w_{letter}.")] for letter in "qkv"]
            joined[PREFIX + name.replace(".w_q.", ".c_attn.")] = torch.cat(parts, dim=-1)
        elif ".attn.w_k." not in name and ".attn.w_v." not in name:
            joined[PREFIX + name.replace(".attn.w_o.", ".attn.c_proj.")] = tensor.contiguous()
    return joined


def from_gpt2(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """GPT-2's tensors under this model's names: `c_attn` split into W_Q, W_K, W_V."""
    apart = {}
    for name, tensor in state.items():
        bare = name.removeprefix(PREFIX)
        if ".attn.c_attn." in bare:
            for letter, part in zip("qkv", tensor.chunk(3, dim=-1), strict=True):
                apart[bare.replace(".c_attn.", f".w_{letter}.")] = part
        elif bare != "lm_head.weight":  # tied to wte
            apart[bare.replace(".attn.c_proj.", ".attn.w_o.")] = tensor
    return apart
