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

from attnviz.models.attention import (
    Affine,
    MultiHeadAttention,
    attention_pattern,
    attention_scores,
    merge_heads,
    split_heads,
)
from attnviz.models.folder.config import GPTConfig
from attnviz.models.frozen.run import Embedded
from attnviz.models.scratch.decoder import CausalBlock, Decoder, without_memory


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


class Block(CausalBlock):
    """One layer: a LayerNorm in front of attention, and one in front of the MLP."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = MultiHeadAttention(config.n_embd, config.n_head)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config.n_embd, config.d_mlp)

    def projected(
        self, normed: Tensor, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        attn = self.attn
        q, k, v = (split_heads(w(normed), attn.n_head) for w in (attn.w_q, attn.w_k, attn.w_v))
        return q, k, v

    def weights(self, q: Tensor, k: Tensor, queries: Tensor) -> Tensor:
        return attention_pattern(
            attention_scores(q, k), self.visible(queries.to(k.device), k.size(-2))
        )

    def joined(self, z: Tensor) -> Tensor:
        joined: Tensor = self.attn.w_o(merge_heads(z))  # (B, n, d)
        return joined

    def attended(
        self, x: Tensor, mask: Tensor | None, rows: int | None, positions: Tensor | None
    ) -> Tensor:
        attended: Tensor = self.attn(self.ln_1(x), mask, causal=mask is None, rows=rows)
        return attended

    def fed(self, x: Tensor) -> Tensor:
        added: Tensor = self.mlp(self.ln_2(x))  # (B, n, d)
        return added

    @property
    def scaling(self) -> float:
        return 1 / math.sqrt(self.output[0].size(1))

    @property
    def output(self) -> tuple[Tensor, Tensor | None]:
        weight, bias = self.attn.w_o.weight.detach(), self.attn.w_o.bias.detach()
        return weight.view(self.attn.n_head, -1, weight.size(1)), bias


class GPT(Decoder):
    """Token ids in, next-token logits out; the output is tied to the token embedding."""

    config: GPTConfig

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)
        for name, parameter in self.h.named_parameters():
            if name.endswith(("w_o.weight", "c_proj.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * self.config.n_layer))

    def embedded(self, ids: Tensor, positions: Tensor | None = None) -> Mapping[Embedded, Tensor]:
        if positions is None:
            positions = torch.arange(ids.size(1), device=ids.device)
        return {"embedding": self.wte(ids), "position": self.wpe(positions)}

    @property
    def unembedding(self) -> Tensor:
        return self.wte.weight

    def published(self) -> dict[str, Tensor]:
        return to_gpt2(self.state_dict())

    def dense(self) -> "GPT":
        """W_Q, W_K and W_V lie apart, as parts of one matrix are read slowly."""
        with without_memory():
            model = GPT(self.config)
        state = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        model.load_state_dict(state, assign=True)
        return model.eval().requires_grad_(False)


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
