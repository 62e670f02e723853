"""Statistics of every head from whole matrices, in a loop over heads."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

Sums = dict[tuple[int, int], Tensor]


def no_sums() -> Sums:
    """Nothing counted yet: layer and head to the six sums."""
    return defaultdict(lambda: torch.zeros(6))


def add_metrics(sums: Sums, batch: Tensor, attentions: Sequence[Tensor]) -> None:
    """Self, previous token, entropy, distance, its square and induction of every head."""
    n = batch.size(1)
    apart = (torch.arange(n)[:, None] - torch.arange(n)).abs().float()
    pairs = [tuple(zip(*_followers(row), strict=True)) for row in batch.tolist()]
    padded = torch.zeros(len(batch), n, n, dtype=torch.bool)  # as texts of other lengths would be
    for layer, weights in enumerate(attentions):
        for head in range(weights.size(1)):
            own = weights[:, head].float()
            induction = sum(
                own[i, list(pair[0]), list(pair[1])].sum() for i, pair in enumerate(pairs) if pair
            )
            sums[layer, head] += torch.stack(
                [
                    own.diagonal(dim1=1, dim2=2).sum(),
                    own.diagonal(-1, dim1=1, dim2=2).sum(),
                    -(own * own.clamp_min(1e-38).log()).masked_fill(padded, 0).sum(),
                    own.masked_fill(padded, 0).mul(apart).sum(),
                    own.masked_fill(padded, 0).mul(apart.square()).sum(),
                    torch.as_tensor(induction),
                ]
            )


def _followers(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Queries, and the keys that followed an earlier copy of their token."""
    seen: dict[int, list[int]] = defaultdict(list)
    found = []
    for query, token in enumerate(tokens):
        found += [(query, key + 1) for key in seen[token]]
        seen[token].append(query)
    return found
