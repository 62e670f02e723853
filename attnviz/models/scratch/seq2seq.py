"""An encoder-decoder from scratch, on attention.py: it reads one sequence and writes another.

Vaswani et al. 2017, "Attention Is All You Need", with LayerNorm before each sublayer, as
in GPT-2, learned positions, and one embedding for both languages, tied to the output.
The same `MultiHeadAttention` serves three times: the encoder attends both ways, the
decoder only to earlier tokens (masked), and in cross-attention the decoder's queries attend to
keys and values of the encoder. Letters in the shape comments:

    B batch   n_s source tokens   n_t target tokens   d d_model   V vocabulary
"""

import math

import torch
from torch import Tensor, nn

from attnviz.models.attention import HookPoint, MultiHeadAttention, causal_mask
from attnviz.models.folder.config import Seq2SeqConfig
from attnviz.models.scratch.gpt import MLP


class EncoderBlock(nn.Module):
    """One encoder layer: attention over the whole source, then MLP.

    Hook points (B, n_s, d): `resid_pre`, `resid_mid` (after attention), `resid_post`; and those
    of `attn`.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        d, epsilon = config.n_embd, config.layer_norm_epsilon
        self.ln_1 = nn.LayerNorm(d, eps=epsilon)
        self.attn = MultiHeadAttention(d, config.n_head)
        self.ln_2 = nn.LayerNorm(d, eps=epsilon)
        self.mlp = MLP(d, config.n_inner)
        self.resid_pre, self.resid_mid, self.resid_post = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.resid_pre(x)  # (B, n_s, d)
        x = self.resid_mid(x + self.attn(self.ln_1(x), mask))  # (B, n_s, d)
        out: Tensor = self.resid_post(x + self.mlp(self.ln_2(x)))  # (B, n_s, d)
        return out


class DecoderBlock(nn.Module):
    """One decoder layer: masked self-attention, cross-attention to the source, MLP.

    Hook points (B, n_t, d): `resid_pre`, `resid_mid` (after self-attention), `resid_cross` (after
    cross-attention), `resid_post`; and those of `attn` and `cross`.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        d, epsilon = config.n_embd, config.layer_norm_epsilon
        self.ln_1 = nn.LayerNorm(d, eps=epsilon)
        self.attn = MultiHeadAttention(d, config.n_head)
        self.ln_cross = nn.LayerNorm(d, eps=epsilon)
        self.cross = MultiHeadAttention(d, config.n_head)
        self.ln_2 = nn.LayerNorm(d, eps=epsilon)
        self.mlp = MLP(d, config.n_inner)
        self.resid_pre, self.resid_mid = HookPoint(), HookPoint()
        self.resid_cross, self.resid_post = HookPoint(), HookPoint()

    def forward(
        self, x: Tensor, mask: Tensor, source: Tensor, source_mask: Tensor | None
    ) -> Tensor:
        x = self.resid_pre(x)  # (B, n_t, d)
        x = self.resid_mid(x + self.attn(self.ln_1(x), mask))  # (B, n_t, d)
        crossed = self.cross(self.ln_cross(x), source_mask, source=source)  # (B, n_t, d)
        x = self.resid_cross(x + crossed)  # (B, n_t, d)
        out: Tensor = self.resid_post(x + self.mlp(self.ln_2(x)))  # (B, n_t, d)
        return out


class Seq2Seq(nn.Module):
    """Source ids and target ids so far in, logits of each next target token out.

    Hook points are named as in `encoder.0.attn.pattern`, `decoder.1.cross.pattern`.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe_source = nn.Embedding(config.n_positions, config.n_embd)
        self.wpe_target = nn.Embedding(config.n_positions, config.n_embd)
        self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.n_encoder))
        self.ln_encoder = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.decoder = nn.ModuleList(DecoderBlock(config) for _ in range(config.n_decoder))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        for embedding in (self.wte, self.wpe_source, self.wpe_target):
            nn.init.normal_(embedding.weight, std=0.02)
        sublayers = 2 * self.config.n_encoder + 3 * self.config.n_decoder
        for name, parameter in self.named_parameters():
            if name.endswith(("w_o.weight", "c_proj.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(sublayers))

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        """Source ids (B, n_s) to the keys and values of the decoder's cross-attention (B, n_s, d).

        `mask` broadcasts to (B, h, n_s, n_s), True where a query may attend; None: everywhere.
        """
        x: Tensor = self.wte(source) + self.wpe_source(_positions(source))  # (B, n_s, d)
        for block in self.encoder:
            x = block(x, mask)  # (B, n_s, d)
        encoded: Tensor = self.ln_encoder(x)  # (B, n_s, d)
        return encoded

    def decode(self, target: Tensor, encoded: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Target ids so far (B, n_t) to the normalised stream (B, n_t, d) before the output.

        `source_mask` broadcasts to (B, h, n_t, n_s), True where a query may attend.
        """
        x: Tensor = self.wte(target) + self.wpe_target(_positions(target))  # (B, n_t, d)
        mask = causal_mask(target.size(1), target.device)
        for block in self.decoder:
            x = block(x, mask, encoded, source_mask)  # (B, n_t, d)
        normed: Tensor = self.ln_f(x)  # (B, n_t, d)
        return normed

    def logits(self, normed: Tensor) -> Tensor:
        """(..., d) to (..., V); the output is tied to the embedding."""
        return nn.functional.linear(normed, self.wte.weight)

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Logits (B, n_t, V) of the token that follows each target token."""
        return self.logits(self.decode(target, self.encode(source, source_mask), source_mask))

    @torch.inference_mode()
    def translate(self, source: Tensor, begin: int, end: int) -> list[int]:
        """The likeliest target tokens for source ids (n_s), without `begin` and `end`."""
        encoded = self.encode(source[None])
        target = [begin]
        while len(target) < self.config.n_positions:
            normed = self.decode(torch.tensor([target]), encoded)[0, -1]  # (d)
            following = int(self.logits(normed).argmax())
            if following == end:
                break
            target.append(following)
        return target[1:]


def _positions(ids: Tensor) -> Tensor:
    """0, 1, 2, …, one for each token (n)."""
    return torch.arange(ids.size(1), device=ids.device)
