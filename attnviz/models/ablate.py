"""Heads ablated: a model run without the output of some of them, many ablations in a batch.

A head's output is z = pattern·v, its slice of what the layer's output projection W_O is
given. Taken away there, everything behind it is computed as the model does. Letters in the
shape comments:

    B ablations in the batch   n tokens   h heads   d_v width of a head's values   V vocabulary
"""

from collections.abc import Iterator, Sequence

from torch import Tensor

from attnviz.data.ablate import Ablated, Replacement


def of_layer(ablations: Sequence[Ablated], layer: int) -> list[list[int]]:
    """The heads of one layer that each ablation takes away."""
    return [[head.head for head in heads if head.layer == layer] for heads in ablations]


def replaced(z: Tensor, heads: Sequence[Sequence[int]], replacement: Replacement) -> Tensor:
    """The outputs (B, h, n, d_v) of a layer's heads, those of each run replaced.

    Args:
        z: pattern·v of every head.
        heads: which heads each of the B runs is without.
        replacement: zero, or the mean over the n positions.
    """
    left = z.clone()
    for run, of_run in enumerate(heads):
        some = z[run, list(of_run)]  # (heads, n, d_v)
        left[run, list(of_run)] = some.mean(dim=1, keepdim=True) if replacement == "mean" else 0.0
    return left


def log_probability(logits: Tensor, ids: Tensor) -> Tensor:
    """The log-probability, in nats, of one token a row: (rows, V) and (rows) give (rows)."""
    logits = logits.float()
    said = logits.gather(1, ids[:, None])[:, 0]
    found: Tensor = said - logits.logsumexp(dim=1)
    return found


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """So many at a time, in order."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
