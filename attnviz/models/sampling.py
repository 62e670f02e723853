"""The next token from its logits, in the order of transformers: temperature, then top-p."""

import torch
from torch import Tensor

from attnviz.records.prompt import Sampling


def chosen(logits: Tensor, sampling: Sampling) -> int:
    """The id of the next token; drawn from the global generator of torch, if at all.

    Args:
        logits: (V).
        sampling: how it is chosen.
    """
    if sampling.greedy:
        return int(logits.argmax())
    scaled = logits.float() / sampling.temperature
    return int(torch.multinomial(torch.softmax(_nucleus(scaled, sampling.top_p), dim=-1), 1))


def _nucleus(logits: Tensor, top_p: float) -> Tensor:
    """The logits (V), −∞ outside the nucleus (Holtzman et al. 2020, arXiv 1904.09751)."""
    if top_p == 1:
        return logits
    rising, order = logits.sort()
    outside = torch.softmax(rising, dim=-1).cumsum(dim=-1) <= 1 - top_p
    outside[-1] = False  # the likeliest stays
    return logits.masked_fill(torch.zeros_like(outside).scatter(0, order, outside), -torch.inf)
