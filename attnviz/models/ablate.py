"""Ablation: a model run without the output of some heads, many ablations in a batch.

A head's output is z = pattern·v, its slice of the input of the layer's output projection
W_O. It is replaced there, and everything after is computed as the model does. Letters in the
shape comments:

    B ablations in the batch   n tokens   h heads   d_v width of a head's values   V vocabulary
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from attnviz.data.ablate import Ablated, Replacement


def of_layer(ablations: Sequence[Ablated], layer: int) -> list[list[int]]:
    """The heads of one layer that each ablation removes."""
    return [[head.head for head in heads if head.layer == layer] for heads in ablations]


def replaced(z: Tensor, heads: Sequence[Sequence[int]], replacement: Replacement) -> Tensor:
    """The outputs (B, h, n, d_v) of a layer's heads, those of the ablated heads replaced.

    Args:
        z: pattern·v of every head.
        heads: the ablated heads of each of the B runs.
        replacement: zero, or the mean over the n positions.
    """
    changed = z.clone()
    for run, ablated in enumerate(heads):
        outputs = z[run, list(ablated)]  # (heads, n, d_v)
        mean = outputs.mean(dim=1, keepdim=True)
        changed[run, list(ablated)] = mean if replacement == "mean" else 0.0
    return changed


def log_probability(logits: Tensor, ids: Tensor) -> Tensor:
    """The log-probability, in nats, of one token a row: (rows, V) and (rows) give (rows)."""
    logits = logits.float()
    chosen = logits.gather(1, ids[:, None])[:, 0]
    return torch.sub(chosen, logits.logsumexp(dim=1))


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """The items in order, `size` at a time."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
