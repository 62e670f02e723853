"""The next token from its logits, in the order of transformers: temperature, then top-p."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from attnviz.models.attention import Hook
from attnviz.records.capture import Consumer, FloatArray, PatternBlock, Wanted
from attnviz.records.tokens import Sampling


def chosen(logits: Tensor, sampling: Sampling) -> int:
    """The next token by its logits (V); drawn from the global generator of torch, if at all."""
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


def log_probability(logits: Tensor, ids: Tensor) -> Tensor:
    """The log-probability, in nats, of one token a row: (rows, V) and (rows) give (rows)."""
    logits = logits.float()
    return torch.sub(logits.gather(1, ids[:, None])[:, 0], logits.logsumexp(dim=1))


# The edge of `models/`: blocks of a layer's query rows arrive as tensors and leave as numpy.

ENTRIES = 1 << 20
"""Weights of all heads to compute at a time, in at least LEAST_ROWS rows: 4 MiB, which stay in a
processor's cache."""
LEAST_ROWS, MOST_ROWS = 32, 128
LOGIT_ROWS = 128
"""Positions whose logits are handed over at a time."""


@dataclass(frozen=True)
class Handover:
    """Takes the computed rows of a run, and hands over the wanted ones."""

    wanted: Wanted
    consume: Consumer
    last: dict[int, Tensor] = field(default_factory=dict)
    """The last row (h, 1, n_k) of each wanted layer, while a model writes token by token."""

    def rows(self, n_queries: int, n_keys: int, n_heads: int) -> Iterator[Tensor]:
        """The query positions to compute (rows), in blocks that take little memory."""
        wanted = self.wanted.queries
        queries = torch.arange(n_queries) if wanted is None else torch.tensor(wanted)
        return iter(torch.split(queries, rows_at_a_time(n_keys, n_heads)))

    def take(self, layer: int, queries: Tensor, weights: Tensor) -> None:
        """Hand over computed rows of a wanted layer, at these positions (rows).

        `weights`: those of all heads (h, rows, n) on the first n keys; none of these queries
        attends to a later key.
        """
        heads = self.wanted.heads[layer]
        kept = weights if len(heads) == len(weights) else weights[list(heads)]
        self.consume(PatternBlock(layer, heads, queries.numpy(), kept.float().cpu().numpy()))

    def take_rows(self, layer: int, first: int, pattern: Tensor) -> None:
        """Hand over the wanted rows of a pattern (h, rows, n) that begins at the query `first`."""
        wanted, after = self.wanted.queries, first + pattern.size(1)
        if wanted is None:
            queries = torch.arange(first, after)
        else:
            here = slice(bisect_left(wanted, first), bisect_left(wanted, after))
            queries = torch.tensor(wanted[here], dtype=torch.long)
            pattern = pattern[:, queries - first]
        if len(queries):
            self.take(layer, queries, pattern)

    def hook(self, layer: int) -> Hook:
        """What hands over the patterns (1, h, rows, n) that pass a hook point, in their order."""
        after = 0  # the query behind the rows that are handed over already

        def hand_over(pattern: Tensor) -> None:
            nonlocal after
            self.take_rows(layer, after, pattern[0])
            after += pattern.size(2)

        return hand_over

    def last_rows(self, points: str) -> dict[str, Hook]:
        """Hooks at the patterns (1, h, n_q, n_k) of the wanted layers that keep the last row."""

        def keeping(layer: int) -> Hook:
            def keep(pattern: Tensor) -> None:
                self.last[layer] = pattern[0, :, -1:].clone()  # not the whole block

            return keep

        return {points.format(layer): keeping(layer) for layer in self.wanted.heads}

    def take_last(self, step: int) -> None:
        """Hand over the last rows as those of a new token, numbered `step`."""
        for layer in self.wanted.heads:
            self.take(layer, torch.tensor([step]), self.last[layer])


def rows_at_a_time(n_keys: int, n_heads: int) -> int:
    """How many query rows to compute at a time."""
    return max(LEAST_ROWS, min(MOST_ROWS, ENTRIES // max(1, n_heads * n_keys)))


def numbers(tensor: Tensor) -> FloatArray:
    """A tensor as float32 numpy."""
    return np.asarray(tensor.detach().float().cpu().numpy(), dtype=np.float32)
