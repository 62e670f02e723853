"""Rows of attention computed plainly, where that is what a module does.

Unlike the eager functions of transformers, this makes no copy of keys that heads share, and takes
memory once.
"""

from math import prod
from typing import Any

import torch
from torch import Tensor

from attnviz.models.huggingface.call import AttentionCall


class Room:
    """Memory that is used for block after block.

    Asking the system for new memory takes as long as computing what goes into it.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, torch.device], Tensor] = {}

    def of(self, name: str, shape: tuple[int, int, int], most: int, device: torch.device) -> Tensor:
        """A float32 tensor of this shape, of which the last number will grow to `most`."""
        size, room = prod(shape), prod(shape[:2]) * most
        kept = self._kept.get((name, device))
        if kept is None or len(kept) < size:
            kept = self._kept[name, device] = torch.empty(room, dtype=torch.float32, device=device)
        return kept[:size].view(shape)


class PlainModules:
    """The rows of calls, computed plainly where that is what their modules do.

    Those of one block are good until the next one's are asked for.
    """

    def __init__(self) -> None:
        self._seen: dict[Any, bool] = {}
        self._room = Room()

    def rows(self, call: AttentionCall, queries: Tensor) -> tuple[Tensor, Tensor | None]:
        """The weights of query rows (h, rows, n), and their scores where those are known."""
        if call.module not in self._seen:
            self._seen[call.module] = call.is_plain()
        return (
            call.plain_rows(queries, self._room)
            if self._seen[call.module]
            else (call.weights(queries), None)
        )
