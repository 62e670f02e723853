"""Cross-entropy over a large vocabulary, in chunks, without all logits in memory at once."""

from typing import Any

import torch
from torch import Tensor

CHUNK = 256


def fast_bfloat16() -> bool:
    """Whether this processor computes in bfloat16; others emulate it, many times slower."""
    return torch.cpu._is_avx512_bf16_supported()


class ChunkedCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of hidden·Eᵀ; the forward pass computes the gradients, chunk by chunk.

    Args of `apply`: hidden (n, d), embedding E (V, d), targets (n). The products are
    computed in bfloat16, the softmax in float32.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, embedding: Tensor, targets: Tensor) -> Tensor:
        n = targets.numel()
        dtype = torch.bfloat16 if fast_bfloat16() else torch.float32
        low, weights = hidden.to(dtype), embedding.to(dtype)
        d_hidden = torch.empty_like(low)
        d_embedding = torch.zeros_like(embedding)
        loss = torch.zeros(())
        for a in range(0, n, CHUNK):
            b = min(a + CHUNK, n)
            logits = (low[a:b] @ weights.t()).float()  # (chunk, V)
            rows = torch.arange(b - a)
            highest = logits.amax(-1, keepdim=True)  # (chunk, 1)
            true = logits[rows, targets[a:b]] - highest.squeeze(1)  # (chunk)
            error = logits.sub_(highest).exp_()  # (chunk, V), in place: memory is the bottleneck
            z = error.sum(-1, keepdim=True)  # (chunk, 1)
            loss += (z.squeeze(1).log() - true).sum()
            error.div_(z)  # softmax
            error[rows, targets[a:b]] -= 1
            low_error = error.to(dtype)
            d_hidden[a:b] = low_error @ weights
            d_embedding += low_error.t() @ low[a:b]
        ctx.save_for_backward(d_hidden, d_embedding)
        ctx.n = n
        return loss / n

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        d_hidden, d_embedding = ctx.saved_tensors
        scale = grads[0] / ctx.n
        return d_hidden.float() * scale, d_embedding * scale, None


def chunked_cross_entropy(hidden: Tensor, embedding: Tensor, targets: Tensor) -> Tensor:
    """Mean over n targets of −log softmax(hidden·Eᵀ)[target], in nats."""
    loss: Tensor = ChunkedCrossEntropy.apply(hidden, embedding, targets)  # type: ignore[no-untyped-call]
    return loss
