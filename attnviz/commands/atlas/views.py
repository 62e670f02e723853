"""Views of a scan beside its table: one head, two scores of every head, several checkpoints."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from attnviz.corpus.record import SCORES, FloatArray64
from attnviz.corpus.result import one_head, size_of
from attnviz.corpus.tables import Atlas, HeadAtlas, MeanOver, head_of, partial_of
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, nearest, option, readable
from attnviz.records.heads import Head
from attnviz.records.rows import measured

# Two scores of every head beside each other, and how far each head stands from the others.


FAR = 3.5
"""Robust standard deviations; Iglewicz and Hoaglin (1993) call what is farther an outlier."""
SAME = 1e-6
"""Scores that are nearer than this differ only by rounding."""
MAD_OF_NORMAL, MEAN_OF_NORMAL = 1.4826, 1.2533
"""The standard deviation of a normal distribution, in median and in mean absolute deviations."""


@dataclass(frozen=True)
class HeadPoint:
    """A head's two scores with their standard errors; `mean_over`: the items of the means.

    `distance_from_median`: the larger distance of the two from that of all heads, in robust
    standard deviations; `partial`: the part of the corpus that is counted, if not all.
    """

    head: Head
    x: float
    y: float
    x_error: float | None
    y_error: float | None
    mean_over: MeanOver
    distance_from_median: float
    partial: str = ""

    @property
    def outlier(self) -> bool:
        return self.distance_from_median > FAR


@dataclass(frozen=True, eq=False)
class Scatter:
    """Two scores, `x` and `y` by name, of all heads that have both, the farthest head first.

    `missing`: the number of heads that lack one of them; `mean_over`: the items of the means.
    """

    model: str
    x: str
    y: str
    mean_over: MeanOver
    points: Sequence[HeadPoint]
    missing: int = 0

    @property
    def outliers(self) -> Sequence[HeadPoint]:
        """The heads with an outlying score, the farthest first."""
        return [point for point in self.points if point.outlier]


def two_scores(names: str) -> tuple[str, str]:
    """The two scores that a user names, as in `previous,induction`.

    Raises:
        UsageError: these are not two scores.
    """
    scores = [re.sub(r"[\s-]", "_", name.strip().lower()) for name in names.split(",")]
    wrong = [name for name in scores if name not in SCORES]
    if len(scores) == 2 and not wrong and scores[0] != scores[1]:
        return scores[0], scores[1]
    problem = f"{option('plot', repr(names))} does not name two scores"
    if wrong and wrong[0]:
        meant = f" ({near})" if (near := nearest(wrong[0], SCORES)) else ""
        problem = f"{option('plot', repr(names))}: there is no score {wrong[0]!r}{meant}"
    raise UsageError(problem, f"name two of {', '.join(SCORES)}, as in previous,induction")


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
    measured_heads, over = replace(atlas, rows=rows), atlas.mean_over
    away = np.maximum(*(_from_median(measured_heads.values(name)) for name in (x, y)))
    points = [
        HeadPoint(
            head=head_of(row),
            x=row[x],
            y=row[y],
            x_error=row[f"{x}_error"],
            y_error=row[f"{y}_error"],
            mean_over=over,
            distance_from_median=float(distance),
            partial=partial_of(row),
        )
        for row, distance in zip(rows, away, strict=True)
    ]
    # two heads may lie as far on either side of the median: rounding must not decide
    points.sort(key=lambda point: (-round(point.distance_from_median, 6), point.head))
    return Scatter(atlas.model, x, y, over, points, len(atlas.rows) - len(rows))


def _from_median(values: FloatArray64) -> FloatArray64:
    """(n), the distances in robust standard deviations."""
    apart = np.abs(values - np.median(values))
    apart[apart < SAME] = 0
    spread = MAD_OF_NORMAL * float(np.median(apart)) or MEAN_OF_NORMAL * float(apart.mean())
    return apart / spread if spread else apart


# How the scores of every head develop over the checkpoints of one model.


STEP = re.compile(r"(?:step|steps|ckpt|checkpoint|iter|iteration)[-_= ]?(\d{1,15})(?!\d)", re.I)
ASKED = "split", "field", "key", "length", "documents"
MOST_NAMED = 3


@dataclass(frozen=True)
class Change:
    """A score of a head at every checkpoint, NaN where it could not be measured.

    `error`: that of the change, with the first and the last scan taken as independent.
    """

    score: str
    head: Head
    means: Sequence[float]
    error: float | None

    @property
    def change(self) -> float:
        """The last mean minus the first; NaN where one is missing."""
        return self.means[-1] - self.means[0]


@dataclass(frozen=True, eq=False)
class Development:
    """The scores of the same heads at several checkpoints, in order.

    `names`, `steps` (checkpoints): their folders' names, and their training steps, None where their
    names carry none. `means`, `errors`: by score, (heads, checkpoints), NaN where there is nothing;
    only means over documents have errors. `size`: the documents and tokens that each was measured
    over; `mean_over`: the items of the means.
    """

    names: tuple[str, ...]
    steps: tuple[int, ...] | None
    heads: tuple[Head, ...]
    means: Mapping[str, FloatArray64]
    errors: Mapping[str, FloatArray64]
    size: tuple[int, int]
    mean_over: MeanOver

    def changes(self, score: str) -> list[Change]:
        """Every head whose change can be measured, the largest change first."""
        first, last = self.errors[score].T[[0, -1]]
        errors = map(measured, np.hypot(first, last).tolist())
        means = self.means[score].tolist()
        every = map(Change, [score] * len(means), self.heads, means, errors)
        known = (each for each in every if not isnan(each.change))
        return sorted(known, key=lambda each: -abs(each.change))


def develop(
    atlases: Sequence[Atlas], head: str | None = None, score: str | None = None
) -> Development:
    """The scores of every head over the checkpoints, by step where names carry one.

    `atlases`: at least two, of the same heads over the same corpus. `head`, `score`: the only one
    that is followed, as a user names it, or None for all.
    """
    names, first = [atlas.folder for atlas in atlases], atlases[0]
    for other in atlases[1:]:
        difference = _difference(first, other)
        if difference:
            raise UsageError(
                f"{first.folder!r} and {other.folder!r} cannot be compared: {difference}",
                "scan every checkpoint over the same files with the same options",
            )
    steps, short = _steps(atlases), _told_apart(names)
    order = sorted(range(len(names)), key=lambda i: steps[i] if steps else i)
    heads = set(first.heads if head is None else [head_of(one_head(first, head))])
    by_head = [
        replace(atlas, rows=sorted((r for r in atlas.rows if head_of(r) in heads), key=head_of))
        for atlas in (atlases[i] for i in order)
    ]
    means, errors = (
        {
            name: np.column_stack([atlas.values(name + end) for atlas in by_head])
            for name in ([score] if score else SCORES)
        }
        for end in ("", "_error")
    )
    return Development(
        tuple(short[i] for i in order),
        None if steps is None else tuple(steps[i] for i in order),
        by_head[0].heads,
        means,
        errors,
        first.size,
        first.mean_over,
    )


def step_in(name: str) -> int | None:
    """The training step that a name ends with or holds: 400 of `pythia/step-400`."""
    steps = STEP.findall(name)
    return int(steps[-1]) if steps else None


def _steps(atlases: Sequence[Atlas]) -> list[int] | None:
    """A step for each, from the folders' names, the models' or their revisions; None without."""
    ways: tuple[Callable[[Atlas], str], ...] = (
        lambda atlas: _parts(atlas.folder)[-1],
        lambda atlas: _parts(atlas.model)[-1],
        lambda atlas: str(atlas.manifest.get("revision") or ""),
        lambda atlas: atlas.folder,
    )
    for way in ways:
        steps = [step for step in map(step_in, map(way, atlases)) if step is not None]
        if len(set(steps)) == len(atlases):
            return steps
    return None


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").rstrip("/").split("/")


def _told_apart(names: Sequence[str]) -> Sequence[str]:
    """The last part of each path, or as many as distinguish them."""
    parts = list(map(_parts, names))
    for n in range(1, max(map(len, parts)) + 1):
        short = ["/".join(part[-n:]) for part in parts]
        if len(set(short)) == len(short):
            return short
    return names


def _difference(first: Atlas, other: Atlas) -> str:
    """The reason why two scans cannot be compared; empty if they can be."""
    if len(first.rows) != len(other.rows):
        return f"their numbers of heads differ ({len(first.rows)}, {len(other.rows)})"
    heads, others = dict.fromkeys(first.heads), dict.fromkeys(other.heads)
    if heads.keys() != others.keys():
        alone = _one_sided({first.folder: heads, other.folder: others})
        return f"their heads differ ({alone})"
    for name in ASKED:
        value, another = first.manifest.get(name), other.manifest.get(name)
        if value != another:
            return f"their {name} differs ({value}, {another})"
    if first.manifest.get("corpus") != other.manifest.get("corpus"):
        return f"their corpus differs ({_corpus_difference(first, other)})"
    for unit, size, another in zip(("documents", "tokens"), first.size, other.size, strict=True):
        if size != another:
            return f"their numbers of {unit} differ ({size:,}, {another:,})"
    return ""


def _corpus_difference(first: Atlas, other: Atlas) -> str:
    """The files that only one of them has, or that were changed between the scans."""
    files, others = (
        {str(each[0]) if isinstance(each, list) and each else str(each): each for each in corpus}
        if isinstance(corpus, list)
        else {str(corpus): None}
        for corpus in (first.manifest.get("corpus"), other.manifest.get("corpus"))
    )
    if files.keys() != others.keys():
        return _one_sided({first.folder: files, other.folder: others})
    changed = [path for path in files if files[path] != others[path]]
    return f"{_some(changed)} changed between the scans" if changed else "the order of its files"


def _one_sided(sides: Mapping[str, Mapping[Any, Any]]) -> str:
    """`a.txt, b.txt only in 'A'; c.txt only in 'B'`; `sides`: by the folder of each scan."""
    (one, these), (other, those) = sides.items()
    alone = {
        one: [each for each in these if each not in those],
        other: [each for each in those if each not in these],
    }
    return "; ".join(
        f"{_some(things)} only in {name!r}" for name, things in alone.items() if things
    )


def _some(things: Sequence[object]) -> str:
    first, more = ", ".join(map(str, things[:MOST_NAMED])), len(things) - MOST_NAMED
    return f"{first} and {more:,} more" if more > 0 else first


# Sentences on a scan and its views.


def atlas_title(atlas: Atlas) -> str:
    """The subject: the corpus and the model."""
    size = f"scan of {size_of(atlas.size)}{_only(atlas.partial)}"
    return f"{readable(atlas.model)}, {size}: means over {atlas.mean_over}"


def _only(partial: str) -> str:
    """The mark of a scan that is not finished, for a title."""
    return f" (partial: {partial})" if partial else ""


def head_title(head: HeadAtlas) -> str:
    """The title of a page on one head: the model, the head, and the scan."""
    return atlas_title(Atlas(f"{head.model} {head.head}", [head.row]))


def development_title(development: Development) -> str:
    """The number of heads that are followed, and of checkpoints."""
    heads, size = amount(len(development.heads), "head"), size_of(development.size)
    scans = f"{len(development.names)} checkpoints, each a scan of {size}"
    return f"{heads} at {scans}: means over {development.mean_over}"


def scatter_title(scatter: Scatter) -> str:
    """The scores of the plot, and the number of heads."""
    heads = amount(len(scatter.points), "head")
    x, y = SCORES[scatter.x].label, SCORES[scatter.y].label
    only = _only(scatter.points[0].partial)
    return f"{readable(scatter.model)}, {y} by {x}, {heads}{only}: means over {scatter.mean_over}"


def outliers_said(scatter: Scatter, named: int) -> str:
    """The rule by which heads are named, and how many there are."""
    rule = (
        f"more than {FAR:g} robust standard deviations (1.4826 × the median absolute deviation) "
        "from the median of all heads in one of the scores"
    )
    outliers = len(scatter.outliers)
    if not outliers:
        sentence = f"no head lies {rule}"
    elif named < outliers:
        sentence = f"named: {named} of the {amount(outliers, 'head')} {rule}"
    else:
        sentence = f"named: heads {rule}"
    if scatter.missing:
        sentence += f"; {amount(scatter.missing, 'head')} without both scores left out"
    return sentence
