"""The edge of `models/`: query rows of a layer as tensors, handed over as numpy, some at a time.

Only the heads and rows that are wanted cross it.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.data.capture import Consumer, PatternBlock, Wanted

ENTRIES = 1 << 20
"""Weights of all heads that are computed at a time, where that is LEAST_ROWS rows or more: 4 MiB,
which stay in a processor's cache."""
LEAST_ROWS, MOST_ROWS = 32, 128
LOGIT_ROWS = 128
"""Positions whose logits are handed over at a time."""


@dataclass(frozen=True)
class Handover:
    """Takes the computed rows of a run, and hands over what is wanted of them."""

    wanted: Wanted
    consume: Consumer

    def rows(self, n_queries: int, n_keys: int, n_heads: int) -> Iterator[Tensor]:
        """The query positions to compute, so many at a time as keep memory small: (rows)."""
        asked = self.wanted.queries
        queries = torch.arange(n_queries) if asked is None else torch.tensor(asked)
        return iter(torch.split(queries, rows_at_a_time(n_keys, n_heads)))

    def take(self, layer: int, queries: Tensor, weights: Tensor) -> None:
        """Hand over computed rows.

        Args:
            layer: one of those that are wanted.
            queries: their positions (rows).
            weights: of all heads, (h, rows, n): on the first n keys; none of these queries
                sees a later one.
        """
        heads = self.wanted.heads[layer]
        kept = weights if len(heads) == len(weights) else weights[list(heads)]
        self.consume(PatternBlock(layer, heads, queries.numpy(), kept.float().cpu().numpy()))

    def take_rows(self, layer: int, first: int, pattern: Tensor) -> None:
        """Hand over those asked for of a pattern's rows (h, rows, n) from the query `first` on."""
        asked = self.wanted.queries
        if asked is None:
            queries = torch.arange(first, first + pattern.size(1))
        else:
            of_these = slice(bisect_left(asked, first), bisect_left(asked, first + pattern.size(1)))
            queries = torch.tensor(asked[of_these], dtype=torch.long)
            pattern = pattern[:, queries - first]
        if len(queries):
            self.take(layer, queries, pattern)


def rows_at_a_time(n_keys: int, n_heads: int) -> int:
    """How many query rows to compute at a time, so that they take little memory."""
    return max(LEAST_ROWS, min(MOST_ROWS, ENTRIES // max(1, n_heads * n_keys)))
