"""The result of a scan: a row for each head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attnviz.data.heads import METRICS

SCORES = (*METRICS, "distance_variance")


@dataclass(frozen=True, eq=False)
class Atlas:
    """The scores of every head, as `heads.parquet` has them; `model` is its name."""

    model: str
    rows: Sequence[Mapping[str, Any]]

    def sorted_by(self, score: str | None, top: int | None) -> "Atlas":
        """The same heads in this order, the largest first; heads without the score last."""
        rows = list(self.rows)
        if score is not None:
            rows.sort(key=lambda row: (row[score] is None, -(row[score] or 0.0)))
        return replace(self, rows=rows[:top])

    @property
    def size(self) -> tuple[int, int]:
        """How many documents and tokens were counted."""
        return int(self.rows[0]["documents"]), int(self.rows[0]["tokens"])
