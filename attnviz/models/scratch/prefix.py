"""A prompt that is read once, for variants that begin as it does: its keys and values.

What stands in front of a change is the same in every variant, as no token attends to a later one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import torch
from torch import Tensor

from attnviz.models.attention import Hook, attached, kept
from attnviz.models.engine import rows_at_a_time
from attnviz.models.scratch.decoder import Decoder


@dataclass(frozen=True, eq=False)
class ReadPrefix:
    """A prompt of n tokens, none by default: keys and values by hook point (1, g, n, d_k)."""

    model: Decoder
    ids: tuple[int, ...] = ()
    read: Mapping[str, Tensor] = field(default_factory=dict)

    def shared(self, ids: Sequence[int]) -> int:
        """How many tokens of another prompt need no run; its last one does, as it predicts."""
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(self.ids, ids, strict=False))
        return min(sum(1 for _ in alike), len(ids) - 1)

    def hidden(self, ids: Tensor, shared: int) -> Tensor:
        """The stream (B, n - shared, d) of texts (B, n) behind the tokens that they share."""
        n, model = ids.size(1), self.model
        rows = rows_at_a_time(n, model.config.n_head * len(ids))
        if not shared:
            return model.hidden(ids, rows=rows)
        at = torch.arange(shared, n, device=ids.device)
        causal = torch.arange(n, device=ids.device) <= at[:, None]
        with attached(model, {point: self._before(point, shared) for point in self.read}):
            return model.hidden(ids[:, shared:], mask=causal, positions=at, rows=rows)

    def _before(self, point: str, shared: int) -> Hook:
        def join(new: Tensor) -> Tensor:  # (B, g, n - shared, d_k)
            first = self.read[point][:, :, :shared].expand(len(new), -1, -1, -1)
            return torch.cat([first, new], dim=2)

        return join


@torch.inference_mode()
def read_prefix(model: Decoder, ids: Sequence[int]) -> ReadPrefix:
    """Read a prompt, and keep the keys and values of all layers."""
    points = [f"h.{layer}.attn.{name}" for layer in range(len(model.h)) for name in "kv"]
    rows = rows_at_a_time(len(ids), model.config.n_head)
    with kept(model, points, lambda x: x) as read:
        model.hidden(torch.tensor([list(ids)], device=model.device), rows=rows)
    return ReadPrefix(model, tuple(ids), read)
