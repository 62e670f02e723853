"""Two scores of every head beside each other, and how far each head stands from the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.records.heads import Head

FAR = 3.5
"""Robust standard deviations; Iglewicz and Hoaglin (1993) call what is farther an outlier."""


@dataclass(frozen=True)
class HeadPoint:
    """A head's two scores with their standard errors.

    `distance`: the larger of how far the two lie from the median of all heads, in robust standard
    deviations.
    """

    head: Head
    x: float
    y: float
    x_error: float | None
    y_error: float | None
    distance: float

    @property
    def far(self) -> bool:
        """Whether one of the scores is an outlier."""
        return self.distance > FAR


@dataclass(frozen=True, eq=False)
class Scatter:
    """Two scores, `x` and `y` by name, of all heads that have both, the farthest head first.

    `missing`: how many heads lack one of them.
    """

    x: str
    y: str
    points: Sequence[HeadPoint]
    missing: int = 0

    @property
    def outliers(self) -> Sequence[HeadPoint]:
        """The heads with an outlying score, the farthest first."""
        return [point for point in self.points if point.far]

    def records(self) -> list[Mapping[str, Any]]:
        """A row for each head."""
        return [
            {
                "layer": point.head.layer,
                "head": point.head.head,
                self.x: point.x,
                f"{self.x}_error": point.x_error,
                self.y: point.y,
                f"{self.y}_error": point.y_error,
                "distance_from_median": point.distance,
                "outlier": point.far,
            }
            for point in self.points
        ]
