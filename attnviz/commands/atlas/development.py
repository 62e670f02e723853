"""How the scores of every head develop over the checkpoints of one model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from attnviz.commands.atlas.record import SCORES, Atlas, FloatArray64
from attnviz.errors import UsageError
from attnviz.records.heads import Head


@dataclass(frozen=True)
class Change:
    """A score of a head at every checkpoint, NaN where it could not be measured.

    `error`: the standard error of the change, with the first and the last scan taken as
    independent.
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
    names carry none. `means`, `errors`: by score, (heads, checkpoints), NaN where there is nothing.
    `size`: how many documents and tokens each was measured over.
    """

    names: tuple[str, ...]
    steps: tuple[int, ...] | None
    heads: tuple[Head, ...]
    means: Mapping[str, FloatArray64]
    errors: Mapping[str, FloatArray64]
    size: tuple[int, int]

    def changes(self, score: str) -> list[Change]:
        """Every head whose change can be measured, the largest change first."""
        found = []
        for head, means, errors in zip(
            self.heads, self.means[score], self.errors[score], strict=True
        ):
            error = float(np.hypot(errors[0], errors[-1]))
            change = Change(score, head, tuple(means.tolist()), None if isnan(error) else error)
            if not isnan(change.change):
                found.append(change)
        return sorted(found, key=lambda each: -abs(each.change))

    def only(self, heads: Sequence[Head], scores: Sequence[str]) -> "Development":
        """The same of these heads and scores."""
        rows = [self.heads.index(head) for head in heads]
        means, errors = (
            {score: values[score][rows] for score in scores} for values in (self.means, self.errors)
        )
        return replace(self, heads=tuple(heads), means=means, errors=errors)


# The scans of several checkpoints of one model, as one record.


STEP = re.compile(r"(?:step|steps|ckpt|checkpoint|iter|iteration)[-_= ]?(\d{1,15})(?!\d)", re.I)
ASKED = ("split", "field", "key", "length", "documents")
MOST_NAMED = 3


def develop(names: Sequence[str], atlases: Sequence[Atlas]) -> Development:
    """The scores of every head over the checkpoints, by step where names carry one.

    Args:
        names: what each scan is called: its folder, as given.
        atlases: at least two, of the same heads over the same corpus.
    """
    for i, atlas in enumerate(atlases[1:], start=1):
        wrong = _difference((names[0], names[i]), (atlases[0], atlas))
        if wrong:
            raise UsageError(
                f"{names[0]!r} and {names[i]!r} cannot be compared: {wrong}",
                "scan every checkpoint over the same files with the same options",
            )
    steps = _steps(names, atlases)
    order = sorted(range(len(names)), key=lambda i: i if steps is None else steps[i])
    short = _told_apart(names)
    heads = sorted(atlases[0].heads)
    sorted_rows = [
        sorted(atlases[i].rows, key=lambda row: (row["layer"], row["head"])) for i in order
    ]
    means, errors = (
        {
            score: np.array([[row[score + end] for row in rows] for rows in sorted_rows], float).T
            for score in SCORES
        }
        for end in ("", "_error")
    )
    return Development(
        tuple(short[i] for i in order),
        None if steps is None else tuple(steps[i] for i in order),
        tuple(heads),
        means,
        errors,
        atlases[0].size,
    )


def step_in(name: str) -> int | None:
    """The training step that a name ends with or holds: 400 of `pythia/step-400`."""
    found = STEP.findall(name)
    return int(found[-1]) if found else None


def _steps(names: Sequence[str], atlases: Sequence[Atlas]) -> list[int] | None:
    """A step for each, from the folders' names, the models' or their revisions; None without."""
    ways = (
        [_last(name) for name in names],
        [_last(atlas.model) for atlas in atlases],
        [str(atlas.asked.get("revision") or "") for atlas in atlases],
        names,
    )
    for way in ways:
        steps = [step for step in map(step_in, way) if step is not None]
        if len(set(steps)) == len(names):
            return steps
    return None


def _last(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _told_apart(names: Sequence[str]) -> list[str]:
    """The last part of each path, or as many as tell them apart."""
    parts = [name.replace("\\", "/").rstrip("/").split("/") for name in names]
    for n in range(1, max(map(len, parts)) + 1):
        short = ["/".join(part[-n:]) for part in parts]
        if len(set(short)) == len(short):
            return short
    return list(names)


def _difference(names: tuple[str, str], atlases: tuple[Atlas, Atlas]) -> str:
    first, second = atlases
    heads = [atlas.heads for atlas in atlases]
    if set(heads[0]) != set(heads[1]):
        if len(heads[0]) != len(heads[1]):
            return f"their numbers of heads differ ({len(heads[0])}, {len(heads[1])})"
        return f"their heads differ ({_one_sided(names, heads)})"
    for name in ASKED:
        values = [atlas.asked.get(name) for atlas in atlases]
        if values[0] != values[1]:
            return f"their {name} differs ({values[0]}, {values[1]})"
    if first.asked.get("corpus") != second.asked.get("corpus"):
        return f"their corpus differs ({_corpus_difference(names, first.asked, second.asked)})"
    for size, what in zip(zip(first.size, second.size, strict=True), SIZES, strict=True):
        if size[0] != size[1]:
            return f"their numbers of {what} differ ({size[0]:,}, {size[1]:,})"
    return ""


SIZES = ("documents", "tokens")


def _corpus_difference(
    names: tuple[str, str], first: Mapping[str, Any], second: Mapping[str, Any]
) -> str:
    """Which files only one of them has, or which were changed between the scans."""
    files = [_files(asked.get("corpus")) for asked in (first, second)]
    if files[0].keys() != files[1].keys():
        return _one_sided(names, [list(each) for each in files])
    changed = [path for path in files[0] if files[0][path] != files[1][path]]
    return f"{_some(changed)} changed between the scans" if changed else "the order of its files"


def _files(corpus: object) -> dict[str, object]:
    if not isinstance(corpus, list):
        return {str(corpus): None}
    return {str(each[0]) if isinstance(each, list) and each else str(each): each for each in corpus}


def _one_sided(names: tuple[str, str], sides: Sequence[Sequence[object]]) -> str:
    """`a.txt, b.txt only in 'A'; c.txt only in 'B'`."""
    other = [set(sides[1]), set(sides[0])]
    only = [
        (name, [each for each in side if each not in others])
        for name, side, others in zip(names, sides, other, strict=True)
    ]
    return "; ".join(f"{_some(some)} only in {name!r}" for name, some in only if some)


def _some(things: Sequence[object]) -> str:
    more = len(things) - MOST_NAMED
    said = ", ".join(map(str, things[:MOST_NAMED]))
    return f"{said} and {more:,} more" if more > 0 else said
