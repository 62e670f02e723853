"""Attention, against formulas in float64 and PyTorch's own module."""

import math

import numpy as np
import pytest
import torch

from attnviz.models.attention import (
    MultiHeadAttention,
    attached,
    attention_pattern,
    attention_scores,
    causal_mask,
    hook_names,
    weighted_sum,
)

B, H, N_Q, N_K, D_K, D_V = 2, 3, 5, 7, 11, 13


def _plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The textbook formula, one number at a time, in float64."""
    z = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        scores = [q[i] @ k[j] / math.sqrt(q.shape[1]) for j in range(len(k)) if mask[i, j]]
        values = [v[j] for j in range(len(k)) if mask[i, j]]
        exponentials = [math.exp(s) for s in scores]
        for e, value in zip(exponentials, values, strict=True):
            z[i] += e / sum(exponentials) * value
    return z


def test_scaled_dot_product_attention_is_the_textbook_formula() -> None:
    torch.manual_seed(1)
    q, k, v = torch.randn(N_Q, D_K), torch.randn(N_K, D_K), torch.randn(N_K, D_V)
    mask = torch.rand(N_Q, N_K) > 0.4
    mask[:, 0] = True
    z = weighted_sum(attention_pattern(attention_scores(q, k), mask), v)
    expected = _plain(*(t.double().numpy() for t in (q, k, v)), mask.numpy())
    np.testing.assert_allclose(z.numpy(), expected, atol=1e-5)


def test_rows_sum_to_one_and_forbidden_keys_get_exactly_nothing() -> None:
    pattern = attention_pattern(torch.randn(B, H, N_K, N_K) * 30, causal_mask(N_K))
    torch.testing.assert_close(pattern.sum(-1), torch.ones(B, H, N_K))
    assert (pattern[..., ~causal_mask(N_K)] == 0).all()


def test_a_causal_mask_lets_a_query_see_itself_and_what_stands_before_it() -> None:
    mask = causal_mask(3)
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def _pytorch_twin(ours: MultiHeadAttention, d_model: int) -> torch.nn.MultiheadAttention:
    """PyTorch's module with the same weights."""
    twin = torch.nn.MultiheadAttention(d_model, ours.n_head, batch_first=True)
    with torch.no_grad():
        names = (ours.w_q, ours.w_k, ours.w_v)
        twin.in_proj_weight.copy_(torch.cat([w.weight.t() for w in names]))
        twin.in_proj_bias.copy_(torch.cat([w.bias for w in names]))
        twin.out_proj.weight.copy_(ours.w_o.weight.t())
        twin.out_proj.bias.copy_(ours.w_o.bias)
    return twin


def _seeded(d_model: int) -> MultiHeadAttention:
    torch.manual_seed(2)
    ours = MultiHeadAttention(d_model, H)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return ours


@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
def test_many_heads_agree_with_pytorchs_module(cross: bool) -> None:
    d_model = H * D_K
    ours = _seeded(d_model)
    x, other = torch.randn(B, N_Q, d_model), torch.randn(B, N_K, d_model)
    source = other if cross else x
    mask = None if cross else causal_mask(N_Q)
    patterns: list[torch.Tensor] = []
    with torch.no_grad(), attached(ours, {"pattern": patterns.append}):
        z = ours(x, mask, source=source if cross else None)
        expected, weights = _pytorch_twin(ours, d_model)(
            x, source, source, attn_mask=None if mask is None else ~mask, average_attn_weights=False
        )
    torch.testing.assert_close(z, expected, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(patterns[0], weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_queries_in_blocks_attend_as_all_at_once_whatever_the_mask(rows: int) -> None:
    ours = _seeded(H * D_K)
    x, source = torch.randn(B, N_Q, H * D_K), torch.randn(B, N_K, H * D_K)
    each_row = torch.rand(B, 1, N_Q, N_K) > 0.4
    each_row[..., 0] = True
    for mask in (each_row, each_row[..., :1, :]):  # of each query, and one for all of them
        whole, blocks = ours(x, mask, source=source), ours(x, mask, source=source, rows=rows)
        torch.testing.assert_close(blocks, whole, atol=1e-5, rtol=1e-5)


def test_every_hook_point_can_be_read_per_head_with_its_shape() -> None:
    ours, seen = _seeded(H * D_K), {}

    def keep(name: str, value: torch.Tensor) -> None:
        seen[name] = tuple(value.shape)

    hooks = {name: lambda value, name=name: keep(name, value) for name in hook_names(ours)}
    with torch.no_grad(), attached(ours, hooks):
        ours(torch.randn(B, N_Q, H * D_K), source=torch.randn(B, N_K, H * D_K))
    assert seen == {
        "q": (B, H, N_Q, D_K),
        "k": (B, H, N_K, D_K),
        "v": (B, H, N_K, D_K),
        "scores": (B, H, N_Q, N_K),
        "pattern": (B, H, N_Q, N_K),
        "z": (B, H, N_Q, D_K),
    }


def test_what_a_hook_returns_replaces_the_value() -> None:
    ours = _seeded(H * D_K)
    x = torch.randn(1, N_Q, H * D_K)
    with torch.no_grad(), attached(ours, {"z": torch.zeros_like}):
        silenced = ours(x)
    torch.testing.assert_close(silenced, ours.w_o.bias.expand_as(silenced))


def test_hooks_are_detached_also_after_an_error() -> None:
    ours = _seeded(H * D_K)
    calls: list[torch.Tensor] = []
    with pytest.raises(RuntimeError, match="stop"), attached(ours, {"z": calls.append}):
        raise RuntimeError("stop")
    ours(torch.randn(1, N_Q, H * D_K))
    assert calls == []


def test_an_unknown_hook_point_is_refused_and_nothing_stays_attached() -> None:
    ours = _seeded(H * D_K)
    calls: list[torch.Tensor] = []
    with pytest.raises(KeyError, match="pattern"), attached(ours, {"z": calls.append, "zz": print}):
        pass
    ours(torch.randn(1, N_Q, H * D_K))
    assert calls == []


def test_a_width_that_the_heads_cannot_share_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="10 is not divisible by 3 heads"):
        MultiHeadAttention(10, 3)
