"""Log-probabilities of given tokens, from logits."""

import torch
from torch import Tensor


def log_probability(logits: Tensor, ids: Tensor) -> Tensor:
    """The log-probability, in nats, of one token a row: (rows, V) and (rows) give (rows)."""
    logits = logits.float()
    chosen = logits.gather(1, ids[:, None])[:, 0]
    return torch.sub(chosen, logits.logsumexp(dim=1))
