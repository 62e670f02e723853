"""A batch of the training: packed rows, a block-diagonal mask, positions and targets."""

from dataclasses import dataclass

import torch
from torch import Tensor

IGNORED = -1
PADDING = -1


@dataclass(frozen=True)
class Batch:
    """Ids, positions, document numbers and targets, each (B, n).

    Padding has document `PADDING`; where no target counts, there is `IGNORED`.
    """

    ids: Tensor
    positions: Tensor
    documents: Tensor
    targets: Tensor

    def mask(self) -> Tensor:
        """(B, 1, n, n), True where a query may attend: the same document, and not the future.

        Padding attends to itself, so that no row is empty.
        """
        n = self.ids.size(1)
        same = self.documents[:, :, None] == self.documents[:, None, :]  # (B, n, n)
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        return (same & causal).unsqueeze(1)

    def predictions(self) -> tuple[Tensor, Tensor]:
        """The flat indices of the tokens whose successor counts, and those successors."""
        flat = self.targets.flatten()
        where = (flat != IGNORED).nonzero().squeeze(1)
        return where, flat[where]
