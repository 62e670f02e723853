"""What stands out in the result of a scan: one head of it, and outliers among all heads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.atlas.development import Development
from attnviz.commands.atlas.record import SCORES, Atlas
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option, readable
from attnviz.records.heads import Head, head_named, listed

# Two scores of every head beside each other, and how far each head stands from the others.


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


SAME = 1e-6
"""Scores that are nearer than this differ by rounding alone."""
MAD_OF_NORMAL = 1.4826
"""The standard deviation of a normal distribution, in median absolute deviations."""
MEAN_OF_NORMAL = 1.2533
"""The same in mean absolute deviations."""


def one_head(atlas: Atlas, name: str) -> Head:
    """The head that a user names, as in `L1H2` or `1.2`.

    Raises:
        UsageError: it names no single head, or one that was not scanned.
    """
    head, scanned = head_named(name), atlas.heads
    if head is None:
        raise UsageError(
            f"{option('head', repr(name))} names no single head",
            f"name one as in {option('head', scanned[0])}",
        )
    if head not in scanned:
        raise UsageError(f"the scan has no head {head}", f"it has {listed(scanned)}")
    return head


def two_scores(names: str) -> tuple[str, str]:
    """The two scores that a user names, as in `previous,induction`.

    Raises:
        UsageError: these are not two scores.
    """
    given = [re.sub(r"[\s-]", "_", name.strip().lower()) for name in names.split(",")]
    wrong = [name for name in given if name not in SCORES]
    if len(given) == 2 and not wrong and given[0] != given[1]:
        return given[0], given[1]
    said = f"{option('plot', repr(names))} does not name two scores"
    if wrong and wrong[0]:
        near = get_close_matches(wrong[0], [*SCORES], 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        said = f"{option('plot', repr(names))}: there is no score {wrong[0]!r}{meant}"
    raise UsageError(said, f"name two of {', '.join(SCORES)}, as in previous,induction")


def scatter_of(atlas: Atlas, x: str, y: str) -> Scatter:
    """The heads by two scores, with their distance from the median of all heads.

    The distance along a score is |v − median| / (1.4826 · MAD), with MAD the median of |v −
    median| over the heads (Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers). Where
    more than half of the heads have the same value, 1.2533 times the mean absolute deviation
    stands in for it. A head's distance is the larger of the two.

    Raises:
        UsageError: no head has both scores.
    """
    rows = [row for row in atlas.rows if row[x] is not None and row[y] is not None]
    if not rows:
        raise UsageError(f"no head of this scan has both {x} and {y}", "choose other scores")
    away = np.maximum(*(_away([row[name] for row in rows]) for name in (x, y)))
    points = [
        HeadPoint(
            Head(row["layer"], row["head"]),
            *(row[x], row[y], row[f"{x}_error"], row[f"{y}_error"]),
            float(distance),
        )
        for row, distance in zip(rows, away, strict=True)
    ]
    points.sort(key=lambda point: (-point.distance, point.head))
    return Scatter(x, y, points, len(atlas.rows) - len(rows))


def _away(values: Sequence[float]) -> NDArray[np.float64]:
    """(n), the distances from the median in robust standard deviations."""
    apart = np.abs(np.array(values) - np.median(values))
    apart[apart < SAME] = 0
    spread = MAD_OF_NORMAL * float(np.median(apart)) or MEAN_OF_NORMAL * float(apart.mean())
    return apart / spread if spread else apart


# Sentences on a scan and its views: one head, two scores, and several checkpoints.


def atlas_title(atlas: Atlas, head: str = "") -> str:
    """What was scanned with what; `head`: of which head."""
    model = f"{readable(atlas.model)} {head}".rstrip()
    return f"{model}, scan of {_size(*atlas.size)}: means over documents"


def _size(documents: int, tokens: int) -> str:
    return f"{amount(documents, 'document')}, {amount(tokens, 'token')}"


def development_title(development: Development) -> str:
    """How many heads are followed over how many checkpoints."""
    heads, size = amount(len(development.heads), "head"), _size(*development.size)
    return f"{heads} at {len(development.names)} checkpoints, each a scan of {size}"


def scatter_title(atlas: Atlas, scatter: Scatter) -> str:
    """Which scores of how many heads."""
    heads = amount(len(scatter.points), "head")
    x, y = SCORES[scatter.x].label, SCORES[scatter.y].label
    return f"{readable(atlas.model)}, {y} by {x}, {heads}: means over documents"


def outliers_said(scatter: Scatter, named: int) -> str:
    """The rule by which heads are named, and how many there are."""
    rule = (
        f"more than {FAR:g} robust standard deviations (1.4826 × the median absolute deviation) "
        "from the median of all heads in one of the scores"
    )
    outliers = len(scatter.outliers)
    if not outliers:
        said = f"no head lies {rule}"
    elif named < outliers:
        said = f"named: {named} of the {amount(outliers, 'head')} {rule}"
    else:
        said = f"named: heads {rule}"
    if scatter.missing:
        said += f"; {amount(scatter.missing, 'head')} without both scores left out"
    return said
