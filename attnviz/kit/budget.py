"""The memory of a run: what it takes, what there is, and what would fit instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.errors import option
from attnviz.models.placement import Placement, check_room, model_bytes
from attnviz.records.heads import Head

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

SMALL = 64 << 20
"""Bytes of patterns that are always kept in full."""
LINK_BYTES, PICTURE_BYTES = 40, 2 << 20
"""Bytes of a link, and of the blocks of a picture of one head, at most."""


@dataclass(frozen=True)
class Budget:
    """The memory for one run of a model over `shape` (queries, keys).

    `max_memory` is the user's limit in bytes, the model included; None means a share of what
    is free.
    """

    model: "LoadedModel"
    shape: tuple[int, int]
    max_memory: int | None = None

    def patterns(self, heads: Sequence[Head]) -> int:
        """Bytes of the whole patterns of these heads."""
        return 4 * len(heads) * self.shape[0] * self.shape[1]

    def holds_whole(self, heads: Sequence[Head]) -> bool:
        """Whether the whole patterns of these heads are small, and fit."""
        size = self.patterns(heads)
        return size <= SMALL and self._working + size <= self._room

    def check_patterns(self, heads: Sequence[Head], kept: int) -> None:
        """Check, before a run over these heads, that it fits together with what it keeps, in bytes.

        Raises:
            ModelError: it does not; the hint says what would.
        """
        n_queries, _ = self.shape
        smaller = (
            (option("heads", heads[0]), self.patterns(heads[:1])),
            (
                f"{option('format', 'jsonl')} {option('top', 5)}",
                len(heads) * n_queries * 5 * LINK_BYTES,
            ),
            (option("output", "FILE.png"), len(heads) * PICTURE_BYTES),
        )
        fitting = [what for what, size in smaller if self._working + size <= self._room]
        self.check(kept, f"try {' or '.join(fitting)}" if fitting else "shorten the text")

    def check(self, kept: int, instead: str) -> None:
        """Check, before a run, that there is room for these bytes beside what it works with.

        Raises:
            ModelError: there is not; `instead` says what to do.
        """
        check_room(self._working + kept, self._room, "this", instead)

    @property
    def _working(self) -> int:
        """Bytes of a run beside what is kept; with the model, where the user set a limit."""
        run = self.model.working_bytes(*self.shape)
        return run if self.max_memory is None else run + model_bytes(self.model.identity)

    @property
    def _room(self) -> int:
        return Placement(max_memory=self.max_memory).budget
