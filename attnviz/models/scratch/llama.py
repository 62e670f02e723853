"""A decoder of the Llama family, from scratch: what most open language models are today.

Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models" (arXiv 2302.13971), and
what its descendants changed: RMSNorm in front, behind or both; positions as rotations of queries
and keys; fewer heads of keys and values; normalised queries and keys; windows; scores and logits
bounded by tanh; gated MLPs. `LlamaConfig` says which of them a model has. Letters in the shape
comments:

    B batch   n tokens   d d_model   h heads   g heads of keys and values   d_k width of one head
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad, scaled_dot_product_attention, silu

from attnviz.models.attention import HookPoint, merge_heads, rows_of_mask, split_heads
from attnviz.models.folder.llama import Activation, LlamaConfig, Norm, Rotary
from attnviz.models.frozen.layer import norm_held
from attnviz.models.frozen.run import Embedded
from attnviz.models.scratch.decoder import CausalBlock, Decoder, Project, without_memory

ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": partial(gelu, approximate="tanh"),
}


class Linear(nn.Module):
    """x·Wᵀ + b; weights keep their own precision, and products have that of x."""

    def __init__(self, d_in: int, d_out: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        self.bias = nn.Parameter(torch.empty(d_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return linear(x, self.weight.to(x.dtype), bias)


class RMSNorm(nn.Module):
    """x / rms(x) times a weight, computed in float32 (Zhang and Sennrich 2019, arXiv 1910.07467).

    The kinds differ in half precision: where the result is rounded, and to what weights are added.
    """

    def __init__(self, width: int, epsilon: float, kind: Norm) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.epsilon, self.kind = epsilon, kind

    def forward(self, x: Tensor) -> Tensor:
        long = x.float()
        unit = long * torch.rsqrt(long.pow(2).mean(dim=-1, keepdim=True) + self.epsilon)
        if self.kind == "rms":
            return self.weight.to(x.dtype) * unit.to(x.dtype)
        weight = self.weight.float()
        return (unit * (1 + weight if self.kind == "rms plus one" else weight)).to(x.dtype)


class LayerNorm(nn.LayerNorm):
    """As PyTorch has it, with weights of another precision than x."""

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        return nn.functional.layer_norm(x, self.normalized_shape, weight, bias, self.eps)


def norm_of(config: LlamaConfig, width: int) -> nn.Module:
    """A norm of this model, over vectors of this width."""
    if config.norm == "layer":
        return LayerNorm(width, eps=config.epsilon)
    return RMSNorm(width, config.epsilon, config.norm)


class Rotation:
    """Turns queries and keys by their positions: the first half of a pair is `width` / 2 away."""

    def __init__(self, settings: Rotary) -> None:
        self.settings = settings
        self._last: tuple[Any, tuple[Tensor, Tensor]] | None = None

    def __call__(self, x: Tensor, positions: Tensor | None) -> Tensor:
        """Turned vectors (B, h, n, d_k), for positions (n); None counts from 0."""
        cos, sin = self._tables(x, positions)
        width = self.settings.width
        turned, rest = x[..., :width], x[..., width:]
        first, second = turned.chunk(2, dim=-1)
        turned = turned * cos + torch.cat([-second, first], dim=-1) * sin
        return torch.cat([turned, rest], dim=-1) if rest.size(-1) else turned

    def _tables(self, x: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Cosines and sines (n, width); those of the last positions are kept for all layers."""
        at = range(x.size(-2)) if positions is None else positions.tolist()
        key = at, x.dtype, x.device
        if self._last is None or self._last[0] != key:
            with torch.inference_mode(False):  # a later run may take gradients
                inverse, factor = frequencies(self.settings, at[-1] + 1)
                angles = torch.tensor(at).float()[:, None] * inverse  # (n, width / 2)
                angles = torch.cat([angles, angles], dim=-1)
                tables = (factor * angles.cos()).to(x), (factor * angles.sin()).to(x)
            self._last = key, tables
        return self._last[1]


def frequencies(rotary: Rotary, length: int) -> tuple[Tensor, float]:
    """Angles by position (width / 2) for a text of this length, and the factor on their cosines."""
    exponents = torch.arange(0, rotary.width, 2).float() / rotary.width
    inverse: Tensor = 1 / rotary.theta**exponents
    settings, factor = rotary.settings, rotary.factor
    if rotary.kind == "linear":  # Chen et al. 2023, arXiv 2306.15595
        return inverse / factor, 1.0
    if rotary.kind == "dynamic":  # "NTK": the base grows with the text
        stretch = factor * max(length, rotary.longest) / rotary.longest - (factor - 1)
        theta = rotary.theta * stretch ** (rotary.width / (rotary.width - 2))
        return 1 / theta**exponents, 1.0
    if rotary.kind == "longrope":  # Ding et al. 2024, arXiv 2402.13753
        name = "long_factor" if length > rotary.trained else "short_factor"
        growth = math.log(factor) / math.log(rotary.trained) if factor > 1 else 0.0
        own = torch.tensor(settings[name], dtype=torch.float32)
        given = settings.get("attention_factor")
        return inverse / own, math.sqrt(1 + growth) if given is None else float(given)
    if rotary.kind == "yarn":
        return _yarn(rotary, inverse)
    return (_by_wavelength(rotary, inverse) if rotary.kind == "llama3" else inverse), 1.0


def _by_wavelength(rotary: Rotary, inverse: Tensor) -> Tensor:
    """Llama 3.1: long waves are stretched, short ones not, and those between in part."""
    low, high = (rotary.settings[f"{end}_freq_factor"] for end in ("low", "high"))
    turns = rotary.trained * inverse / (2 * math.pi)  # of a wave in the texts of the training
    share: Tensor = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - share) * inverse / rotary.factor + share * inverse


def _yarn(rotary: Rotary, inverse: Tensor) -> tuple[Tensor, float]:
    """Peng et al. 2023, "YaRN" (arXiv 2309.00071)."""
    settings, factor, half = rotary.settings, rotary.factor, rotary.width // 2

    def dimension(turns: float) -> float:
        """The one that turns so many times in a text of the training."""
        length = rotary.trained / (turns * 2 * math.pi)
        return rotary.width * math.log(length) / (2 * math.log(rotary.theta))

    low = dimension(settings.get("beta_fast") or 32)
    high = dimension(settings.get("beta_slow") or 1)
    if settings.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotary.width - 1)
    high += 0.001 * (low == high)
    stretched = ((torch.arange(half).float() - low) / (high - low)).clamp(0, 1)
    inverse = inverse / factor * stretched + inverse * (1 - stretched)

    def growth(by: float) -> float:
        return 0.1 * by * math.log(factor) + 1 if factor > 1 else 1.0

    by, by_all = settings.get("mscale"), settings.get("mscale_all_dim")
    given = settings.get("attention_factor")
    if given is None:
        given = growth(by) / growth(by_all) if by and by_all else growth(1.0)
    return inverse, float(given)


UNREAD_ROWS = 512  # queries at a time whose weights nobody reads: they take a mask, and no matrix

QKNorms: TypeAlias = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]


class GroupedAttention(nn.Module):
    """h heads of queries, of which h / g share a head of keys and values.

    Ainslie et al. 2023, "GQA" (arXiv 2305.13245). Hook points as those of `MultiHeadAttention`: `q`
    and `z` (B, h, n, d_k), `k` and `v` (B, g, n, d_k), `scores` and `pattern` (B, h, rows, keys).
    """

    def __init__(self, config: LlamaConfig, layer: int, rotation: Rotation | None) -> None:
        super().__init__()
        self.config, self.window, self.rotation = config, config.windows[layer], rotation
        wide, narrow = config.n_head * config.d_head, config.n_group * config.d_head
        self.w_q = Linear(config.n_embd, wide, bias=config.qkv_bias)
        self.w_k = Linear(config.n_embd, narrow, bias=config.qkv_bias)
        self.w_v = Linear(config.n_embd, narrow, bias=config.qkv_bias)
        self.w_o = Linear(wide, config.n_embd, bias=config.output_bias)
        by_head = config.qk_norm == "head"
        self.norm_q = norm_of(config, config.d_head if by_head else wide)
        self.norm_k = norm_of(config, config.d_head if by_head else narrow)
        if not config.qk_norm:
            self.norm_q, self.norm_k = nn.Identity(), nn.Identity()
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.scores, self.pattern, self.z = HookPoint(), HookPoint(), HookPoint()

    def projected(
        self, x: Tensor, positions: Tensor | None = None, norms: QKNorms | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, h, n, d_k), keys and values (B, g, n, d_k) of normed vectors (B, n, d).

        `norms`: of queries and keys, where they are not the model's own.
        """
        config, (norm_q, norm_k) = self.config, norms or (self.norm_q, self.norm_k)
        q, k = self.w_q(x), self.w_k(x)
        if config.qk_norm == "whole":
            q, k = norm_q(q), norm_k(k)
        q, k = split_heads(q, config.n_head), split_heads(k, config.n_group)
        if config.qk_norm == "head":
            q, k = norm_q(q), norm_k(k)
        if self.rotation is not None:
            q, k = self.rotation(q, positions), self.rotation(k, positions)
        return q, k, split_heads(self.w_v(x), config.n_group)

    def forward(
        self, x: Tensor, mask: Tensor | None, rows: int | None, positions: Tensor | None
    ) -> Tensor:
        """The heads' results (B, h, n, d_k) for normed vectors x (B, n, d)."""
        q, k, v = self.projected(x, positions)
        q, k, v = self.q(q), self.k(k), self.v(v)  # a cache puts earlier keys in front
        if self.unread and mask is None and self.window is None and k.size(2) == x.size(1):
            z: Tensor = self.z(self._unwritten(q, k, v, None))
        else:
            z = self.z(torch.cat([*self._blocks(q, k, v, mask, rows)], dim=2))
        return z

    def _blocks(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rows: int | None
    ) -> Iterator[Tensor]:
        """The results of `rows` queries after the other (B, h, rows, d_k)."""
        n, before = q.size(2), k.size(2) - q.size(2)
        at_once = max(rows or n, UNREAD_ROWS * self.unread)
        for first in range(0, n, at_once):
            here = slice(first, min(first + at_once, n))
            queries = range(before + first, before + here.stop)
            yield self._rows(q[:, :, here], k, v, queries, rows_of_mask(mask, here))

    def _rows(self, q: Tensor, k: Tensor, v: Tensor, queries: range, mask: Tensor | None) -> Tensor:
        """The results of some queries; no key is computed that none of them sees."""
        stop, first = queries.stop, 0
        if self.window is not None and not self.scores._forward_hooks:
            first = max(0, queries.start + 1 - self.window)
        at = torch.arange(queries.start, stop, device=q.device)
        visible = self.visible(at, stop)[:, first:]
        if mask is not None:
            visible = visible & mask[..., first:stop]
        k, v = k[:, :, first:stop], v[:, :, first:stop]
        if self.unread and len(at) > 1:
            return self._unwritten(q, k, v, visible)
        scores = self.scores(self.compared(q, k))
        pattern = self.pattern(pad(softmax(scores, visible), (first, 0)))  # (B, h, rows, stop)
        return shared(pattern[..., first:], v)

    @property
    def unread(self) -> bool:
        """Nothing reads or changes its scores and pattern, which need not be written anywhere."""
        hooked = self.scores._forward_hooks or self.pattern._forward_hooks
        return not hooked and self.config.score_cap is None

    def _unwritten(self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
        """The results without scores and pattern: five times faster on 4,096 tokens.

        `visible` (rows, m): None is causal.
        """
        grouped, scale = k.size(1) != q.size(1), self.config.scaling
        return scaled_dot_product_attention(
            q, k, v, visible, is_causal=visible is None, scale=scale, enable_gqa=grouped
        )

    def compared(self, q: Tensor, k: Tensor) -> Tensor:
        """Scores (B, h, rows, m) of q (B, h, rows, d_k) and k (B, g, m, d_k), before the mask."""
        scores = shared(q, k.transpose(-2, -1)) * self.config.scaling
        cap = self.config.score_cap
        return scores if cap is None else torch.tanh(scores / cap) * cap

    def visible(self, queries: Tensor, n_keys: int) -> Tensor:
        """(rows, n_keys), True where the query at each position (rows) may attend."""
        keys = torch.arange(n_keys, device=queries.device)
        seen = keys <= queries[:, None]
        return seen if self.window is None else seen & (keys > queries[:, None] - self.window)


def shared(rows: Tensor, of_group: Tensor) -> Tensor:
    """Products (..., h, rows, m) of (..., h, rows, k) with those of their group (..., g, k, m)."""
    if rows.dim() == 2:
        return rows @ of_group
    groups, each = of_group.size(-3), rows.size(-3) // of_group.size(-3)
    if each == 1:
        return rows @ of_group
    outer, n = rows.shape[:-3], rows.size(-2)
    together = rows.reshape(*outer, groups, each * n, -1)  # (..., g, h / g · rows, k)
    return (together @ of_group).reshape(*outer, groups * each, n, -1)


def softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """The weights of scores (..., rows, m), in float32, rounded to their precision."""
    hidden = torch.zeros_like(visible, dtype=scores.dtype).masked_fill_(~visible, -math.inf)
    return torch.softmax(scores + hidden, dim=-1, dtype=torch.float32).to(scores.dtype)


class GatedMLP(nn.Module):
    """(f(x·W_gate) ∘ x·W_up)·W_down (Shazeer 2020, "GLU Variants", arXiv 2002.05202)."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        d, wide, bias = config.n_embd, config.d_mlp, config.mlp_bias
        self.gate, self.up = Linear(d, wide, bias=bias), Linear(d, wide, bias=bias)
        self.down = Linear(wide, d, bias=bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down(self.activation(self.gate(x)) * self.up(x))
        return down


class LlamaBlock(CausalBlock):
    """One layer; each of its two parts has a norm before it, behind it, or both."""

    def __init__(self, config: LlamaConfig, layer: int, rotation: Rotation | None) -> None:
        super().__init__()
        norms = [config.before, config.behind, config.before, config.behind]
        self.ln_1, self.ln_1_out, self.ln_2, self.ln_2_out = (
            norm_of(config, config.n_embd) if there else nn.Identity() for there in norms
        )
        self.factor, self.score_cap = config.residual, config.score_cap
        self.config = config
        self.attn = GroupedAttention(config, layer, rotation)
        self.mlp = GatedMLP(config)

    def projected(
        self, normed: Tensor, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self.attn.projected(normed, positions)

    def held(self, normed: Tensor) -> Project:
        attn, kind = self.attn, self.config.qk_norm
        if not kind:
            return self.projected
        q, k = attn.w_q(normed), attn.w_k(normed)
        if kind == "head":
            q, k = split_heads(q, self.config.n_head), split_heads(k, self.config.n_group)
        norms = norm_held(attn.norm_q, q), norm_held(attn.norm_k, k)
        return partial(attn.projected, norms=norms)

    def weights(self, q: Tensor, k: Tensor, queries: Tensor) -> Tensor:
        visible = self.visible(queries.to(k.device), k.size(-2))
        return softmax(self.attn.compared(q, k), visible)

    def joined(self, z: Tensor) -> Tensor:
        joined: Tensor = self.attn.w_o(merge_heads(z))  # (B, n, d)
        return joined

    def added(self, joined: Tensor) -> Tensor:
        added: Tensor = self.ln_1_out(joined)
        return added * self.factor

    def attended(
        self, x: Tensor, mask: Tensor | None, rows: int | None, positions: Tensor | None
    ) -> Tensor:
        return self.written(self.attn(self.ln_1(x), mask, rows, positions))

    def fed(self, x: Tensor) -> Tensor:
        added: Tensor = self.ln_2_out(self.mlp(self.ln_2(x)))
        return added * self.factor

    def visible(self, queries: Tensor, n_keys: int) -> Tensor:
        return self.attn.visible(queries, n_keys)

    @property
    def behind(self) -> nn.Module | None:
        return self.ln_1_out if self.config.behind else None

    @property
    def scaling(self) -> float:
        return self.config.scaling

    @property
    def output(self) -> tuple[Tensor, Tensor | None]:
        weight, bias = self.attn.w_o.weight.detach().float(), self.attn.w_o.bias
        split = weight.t().view(self.config.n_head, -1, len(weight))  # (h, d_v, d)
        return split, None if bias is None else bias.detach().float()


class Llama(Decoder):
    """Token ids in, next-token logits out; computed in `dtype`, whatever the weights are in."""

    config: LlamaConfig

    def __init__(self, config: LlamaConfig, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.config, self.dtype = config, dtype
        self.logit_factor, self.logit_cap = config.logits, config.logit_cap
        kinds = {each.kind for each in config.rotary if each is not None}
        self.fixed_positions = kinds.isdisjoint(("dynamic", "longrope"))
        rotations = {id(each): Rotation(each) for each in config.rotary if each is not None}
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.h = nn.ModuleList(
            LlamaBlock(config, layer, rotations.get(id(config.rotary[layer])))
            for layer in range(config.n_layer)
        )
        self.ln_f = norm_of(config, config.n_embd)
        if not config.tied:
            self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False)

    def embedded(self, ids: Tensor, positions: Tensor | None = None) -> Mapping[Embedded, Tensor]:
        tokens = self.wte(ids).to(self.dtype)
        return {"embedding": tokens * torch.tensor(self.config.embedding).to(tokens)}

    @property
    def unembedding(self) -> Tensor:
        return self.wte.weight if self.config.tied else self.lm_head.weight

    def published(self) -> dict[str, Tensor]:
        return to_transformers(self.config, self.state_dict())

    def dense(self) -> "Llama":
        if self.wte.weight.dtype == self.dtype:
            return self
        with without_memory():
            model = Llama(self.config, self.dtype)
        state = {name: each.to(self.dtype) for name, each in self.state_dict().items()}
        model.load_state_dict(state, assign=True)
        return model.eval().requires_grad_(False)


# The names of its tensors in transformers, and in the files of such models.

LAYER = {
    **{f"attn.w_{letter}": f"self_attn.{letter}_proj" for letter in "qkvo"},
    **{f"attn.norm_{letter}": f"self_attn.{letter}_norm" for letter in "qk"},
    **{f"mlp.{name}": f"mlp.{name}_proj" for name in ("gate", "up", "down")},
}


def published(config: LlamaConfig) -> Iterator[tuple[str, str]]:
    """Each module with weights, and its name in transformers; parts of one name follow in order."""
    norms = {"ln_1": "input_layernorm", "ln_2": "post_attention_layernorm"}
    if config.behind:
        norms = {
            "ln_1": "input_layernorm",
            "ln_1_out": "post_attention_layernorm",
            "ln_2": "pre_feedforward_layernorm",
            "ln_2_out": "post_feedforward_layernorm",
        }
    fused = {f"attn.w_{letter}": "self_attn.qkv_proj" for letter in "qkv" * config.fused}
    fused |= {f"mlp.{name}": "mlp.gate_up_proj" for name in ("gate", "up") * config.fused}
    yield "wte", "model.embed_tokens"
    for layer in range(config.n_layer):
        for own, name in {**LAYER, **norms, **fused}.items():
            yield f"h.{layer}.{own}", f"model.layers.{layer}.{name}"
    yield "ln_f", "model.norm"
    if not config.tied:
        yield "lm_head", "lm_head"


def to_transformers(config: LlamaConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This model's tensors under the names of transformers."""
    joined: dict[str, list[Tensor]] = {}
    for own, name in published(config):
        for part in ("weight", "bias"):
            if f"{own}.{part}" in state:
                joined.setdefault(f"{name}.{part}", []).append(state[f"{own}.{part}"])
    return {
        name: parts[0] if len(parts) == 1 else torch.cat(parts) for name, parts in joined.items()
    }


def from_transformers(
    config: LlamaConfig, shapes: Mapping[str, tuple[int, ...]], state: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors of a file under this model's names; `shapes`: of the model's own tensors."""
    apart = dict[str, Tensor]()
    left = dict(state)
    parts_left = Counter(name for _, name in published(config))
    for own, name in published(config):
        parts_left[name] -= 1
        for part in ("weight", "bias"):
            wanted, whole = shapes.get(f"{own}.{part}"), left.get(f"{name}.{part}")
            if wanted is None or whole is None:
                continue
            rows = wanted[0] if parts_left[name] else len(whole)
            apart[f"{own}.{part}"], left[f"{name}.{part}"] = whole[:rows], whole[rows:]
    return apart
