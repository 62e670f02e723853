"""Heads by how alike their scores are: groups of them, and the heads that are most like one.

A head is a point of its scores, each in standard deviations over all heads that are compared; a
score that a head lacks is put at the mean. The distance is that of Euclid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.atlas.record import SCORES, Atlas, FloatArray64, MeanOver, head_of
from attnviz.commands.atlas.views import corpus_differs, one_head
from attnviz.errors import UsageError, missing, option
from attnviz.kit.result import Form
from attnviz.records.heads import Head
from attnviz.records.rows import Field, Fields, head_fields

SAME = 1e-9
"""A score with a smaller spread over heads tells them not apart."""


@dataclass(frozen=True)
class LikeHead:
    """A head, another one, and how far their scores are apart, in standard deviations.

    `mutual`: each is the nearest to the other. `score`: in which they differ most, and both values.
    """

    head: Head
    other: Head
    distance: float
    mutual: bool
    score: str
    value: float | None
    other_value: float | None


@dataclass(frozen=True, eq=False)
class AlikeHeads:
    """Pairs of heads, of one model or of two; `asked`: the head whose like are wanted.

    `best`: the pairs are of each head with the nearest one; else of heads of the same name.
    """

    model: str
    other: str
    mean_over: MeanOver
    size: tuple[int, int]
    pairs: Sequence[LikeHead]
    asked: Head | None = None
    best: bool = True


def standardised(atlases: Sequence[Atlas]) -> tuple[tuple[str, ...], list[FloatArray64]]:
    """The scores by which heads differ, and the heads of each scan as points (heads, scores)."""
    whole = [np.column_stack([atlas.values(name) for name in SCORES]) for atlas in atlases]
    every = np.concatenate(whole)
    known = [i for i in range(len(SCORES)) if (~np.isnan(every[:, i])).sum() > 1]
    spread = {i: float(np.nanstd(every[:, i])) for i in known}
    used = [i for i in known if spread[i] > SAME]
    if not used:
        raise UsageError("the scores of these heads do not differ", "scan more heads")
    means, deviations = np.nanmean(every[:, used], axis=0), np.array([spread[i] for i in used])
    points = [np.nan_to_num((values[:, used] - means) / deviations) for values in whole]
    return tuple(list(SCORES)[i] for i in used), points


def like_head(atlases: Sequence[Atlas], name: str) -> AlikeHeads:
    """The heads of the last of one scan or two, the nearest to a head of the first one first."""
    first, last = atlases[0], atlases[-1]
    _check_corpus(first, last)
    asked = head_of(one_head(first, name, "like"))
    scores, points = standardised(atlases)
    apart = _distances(points[0], points[-1])
    own = first.heads.index(asked)
    pair = partial(_pair, first, last, scores, points, apart)
    order = np.argsort(apart[own], kind="stable").tolist()
    pairs = [pair(own, j) for j in order if len(atlases) > 1 or j != own]
    return AlikeHeads(first.model, last.model, first.mean_over, first.size, pairs, asked)


def matched(first: Atlas, other: Atlas, *, best: bool) -> AlikeHeads:
    """Each head of a scan with the nearest head of another, or with that of its name.

    Nearest pairs come nearest first; those of the same name, which changed most first.
    """
    _check_corpus(first, other)
    scores, points = standardised([first, other])
    apart = _distances(points[0], points[1])
    nearest = apart.argmin(axis=1).tolist()
    if not best:
        if set(first.heads) != set(other.heads):
            raise UsageError("these scans are of different heads", f"take {option('pair', 'best')}")
        nearest = [other.heads.index(head) for head in first.heads]
    pairs = [_pair(first, other, scores, points, apart, i, j) for i, j in enumerate(nearest)]
    pairs.sort(key=lambda each: (each.distance if best else -each.distance, each.head))
    return AlikeHeads(first.model, other.model, first.mean_over, first.size, pairs, best=best)


def _check_corpus(first: Atlas, other: Atlas) -> None:
    if difference := corpus_differs(first, other):
        raise UsageError(
            f"{first.folder!r} and {other.folder!r} cannot be compared: {difference}",
            "scan both models over the same files with the same options",
        )


def _distances(ours: FloatArray64, theirs: FloatArray64) -> FloatArray64:
    """(ours, theirs), the distances of points."""
    apart: FloatArray64 = np.sqrt(((ours[:, None] - theirs[None]) ** 2).sum(axis=-1))
    return apart


def _pair(
    first: Atlas,
    other: Atlas,
    scores: Sequence[str],
    points: Sequence[FloatArray64],
    apart: FloatArray64,
    i: int,
    j: int,
) -> LikeHead:
    of_one = apart + np.diag(np.full(len(apart), np.inf)) if first is other else apart
    score = scores[int(np.abs(points[0][i] - points[-1][j]).argmax())]
    return LikeHead(
        head=first.heads[i],
        other=other.heads[j],
        distance=float(apart[i, j]),
        mutual=bool(of_one[i].argmin() == j and of_one[:, j].argmin() == i),
        score=score,
        value=first.rows[i][score],
        other_value=other.rows[j][score],
    )


ALIKE = Fields[LikeHead](
    "LikeHeadRow",
    "A head, and another one that it is compared with.",
    (
        *head_fields(lambda row: row.head),
        *head_fields(lambda row: row.other, "other_"),
        Field("distance", float, "Of their scores, in standard deviations over all heads."),
        Field("mutual", bool, "Whether each of them is the nearest to the other."),
        Field("score", str, "The score in which they differ most."),
        Field("value", float | None, "Of the head."),
        Field("other_value", float | None, "Of the other one."),
    ),
)


# Groups of heads.


@dataclass(frozen=True)
class HeadGroup:
    """A group: its heads, the nearest to its centre first, and what makes it stand out.

    `scores`: the mean of each score in the group, and how far it is from that of all heads, in
    standard deviations over heads, the farthest first.
    """

    number: int
    heads: tuple[Head, ...]
    scores: Sequence[tuple[str, float, float]]


@dataclass(frozen=True, eq=False)
class HeadGroups:
    """All heads in groups, the largest first, by Ward's method.

    `tree` (heads - 1, 4): as scipy's `linkage` has it: the two that are joined, their distance, and
    how many heads that makes; heads are numbered as in `heads`.
    """

    model: str
    mean_over: MeanOver
    size: tuple[int, int]
    heads: tuple[Head, ...]
    groups: Sequence[HeadGroup]
    tree: NDArray[np.float64]

    @property
    def group_of(self) -> Mapping[Head, int]:
        return {head: group.number for group in self.groups for head in group.heads}


def groups_of(atlas: Atlas, most: int) -> HeadGroups:
    """The heads of a scan in so many groups: Ward's method joins what adds least to the spread.

    Ward 1963, "Hierarchical Grouping to Optimize an Objective Function".

    Raises:
        UsageError: scipy is not installed, or there are fewer heads than groups.
    """
    try:
        from scipy.cluster.hierarchy import fcluster, linkage
    except ImportError:
        raise missing("groups of heads need scipy", "cluster") from None
    if len(atlas.rows) < max(most, 2):
        raise UsageError(
            f"{option('cluster', str(most))} is more than there are heads",
            f"give at most {len(atlas.rows)}",
        )
    scores, (points,) = standardised([atlas])
    tree = linkage(points, "ward")
    numbers = fcluster(tree, most, "maxclust")
    members = [np.flatnonzero(numbers == number) for number in sorted(set(numbers.tolist()))]
    members.sort(key=lambda own: (-len(own), own.tolist()))
    groups = [_group(atlas, scores, points, n, own) for n, own in enumerate(members, start=1)]
    return HeadGroups(atlas.model, atlas.mean_over, atlas.size, atlas.heads, groups, tree)


def _group(
    atlas: Atlas, scores: Sequence[str], points: FloatArray64, number: int, own: NDArray[np.int64]
) -> HeadGroup:
    centre = points[own].mean(axis=0)
    nearest = own[np.argsort(np.linalg.norm(points[own] - centre, axis=1), kind="stable")]
    far = np.argsort(-np.abs(centre), kind="stable").tolist()
    means = [float(np.nanmean(atlas.values(scores[i])[own])) for i in far]
    stand = [(scores[i], mean, float(centre[i])) for i, mean in zip(far, means, strict=True)]
    return HeadGroup(number, tuple(atlas.heads[i] for i in nearest), stand)


@dataclass(frozen=True)
class GroupedHead:
    """A head, its group, and the score by which the group stands out most."""

    head: Head
    group: HeadGroup

    @property
    def score(self) -> tuple[str, float, float]:
        return self.group.scores[0]


GROUPED = Fields[GroupedHead](
    "GroupedHeadRow",
    "A head, and the group of heads that it is in.",
    (
        *head_fields(lambda row: row.head),
        Field("group", int, "Numbered from 1, the largest group.", lambda row: row.group.number),
        Field("heads", int, "How many heads the group has.", lambda row: len(row.group.heads)),
        Field("score", str, "By which the group stands out most.", lambda row: row.score[0]),
        Field("mean", float, "Of this score in the group.", lambda row: row.score[1]),
        Field(
            "from_mean",
            float,
            "How far that is from the mean of all heads, in standard deviations over heads.",
            lambda row: row.score[2],
        ),
    ),
)


LIKE = Form[AlikeHeads](
    "atlas",
    ALIKE,
    lambda alike, top, line: alike.pairs[:top],
    lambda alike: alike.model,
    terminal="attnviz.commands.atlas.alike_shown:render_alike",
    top=20,
)
IN_GROUPS = Form[HeadGroups](
    "atlas",
    GROUPED,
    lambda groups, top, line: (
        GroupedHead(head, group) for group in groups.groups for head in group.heads[:top]
    ),
    lambda groups: groups.model,
    terminal="attnviz.commands.atlas.alike_shown:render_groups",
    picture="attnviz.commands.atlas.alike_shown:draw_groups",
    top=12,
)
