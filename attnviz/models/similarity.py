"""Four measures of how alike a query and a key are; models use one of them.

Luong et al. 2015, arXiv 1508.04025, section 3.1 (dot, general); Vaswani et al. 2017
(scaled dot); Nadaraya 1964 and Watson 1964 (a kernel, each row normalised).
"""

import math

import numpy as np
import torch
from torch import Tensor

from attnviz.errors import UsageError, option
from attnviz.models.attention import attention_pattern, attention_scores, dot_products, masked
from attnviz.records.trace import HeadTrace, OtherRow, Similarity


def similarity_scores(kind: Similarity, q: Tensor, k: Tensor) -> Tensor:
    """Scores before mask and softmax: q (..., n_q, d_k) and k (..., n_k, d_k) give (..., n_q, n_k).

    `rbf` gives the exponent −‖q − k‖² / (2·√d_k), whose softmax is the kernel with each row
    normalised. `general` is `dot` of vectors that were projected without biases.
    """
    if kind == "scaled-dot":
        return attention_scores(q, k)
    if kind == "rbf":
        # not torch.cdist, whose shortcut for distances loses digits where q and k are near
        squares = (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)
        return -squares / (2 * math.sqrt(q.size(-1)))
    return dot_products(q, k)


def general_scores(x_q: Tensor, w_q: Tensor, w_k: Tensor, x_k: Tensor) -> Tensor:
    """x·(W_Q·W_Kᵀ)·xᵀ: one bilinear form, biases left out; (n_q, n_k)."""
    form = w_q @ w_k.transpose(-2, -1)  # (d, d), of rank d_k
    return torch.as_tensor(x_q @ form @ x_k.transpose(-2, -1))


def other_row(trace: HeadTrace, kind: Similarity) -> OtherRow:
    """The trace's query row by another similarity of the same vectors, under the same mask.

    Raises:
        UsageError: `general` where queries and keys are changed after their projections.
    """
    mask = torch.as_tensor(np.isfinite(trace.scores[trace.query]))
    if kind == "general":
        if trace.kinds.changed:
            raise UsageError(
                "here queries and keys are changed after their projections "
                f"({trace.kinds.changed}), which no single matrix W_Q·W_Kᵀ expresses",
                f"use {option('similarity', 'dot')}, scaled-dot or rbf",
            )
        w_q, w_k = torch.as_tensor(trace.w_q.weight), torch.as_tensor(trace.w_k.weight)
        x_q, x_k = torch.as_tensor(trace.normed), torch.as_tensor(trace.read)
        scores = general_scores(x_q[trace.query : trace.query + 1], w_q, w_k, x_k)[0]
    else:
        q, k = torch.as_tensor(trace.q), torch.as_tensor(trace.k)
        scores = similarity_scores(kind, q[trace.query : trace.query + 1], k)[0]
    scores = masked(scores, mask)
    weights = attention_pattern(scores)
    return OtherRow(kind, np.asarray(scores.numpy()), np.asarray(weights.numpy()))
