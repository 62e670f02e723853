"""The meaning of a head's addition: the nearest tokens and contexts, and read-outs around it.

A read-out is a linear map of a model's vectors to classes ("colour"), made with the model; a
context is a position of a given text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import FloatArray
from attnviz.records.heads import NONE, Head, ReadOut
from attnviz.records.tokens import Token
from attnviz.records.trace import Predicted

Moment: TypeAlias = Literal["before", "added", "after"]
"""The stream before a head adds to it, what the head adds, and the sum of both."""
MOMENTS: tuple[Moment, ...] = ("before", "added", "after")

SURE = 0.5
"""The least probability of a class that is reported."""
Maps: TypeAlias = Mapping[tuple[str, Head], FloatArray]
"""The maps of each read-out around each head (3, d + 1, classes), in the order of `MOMENTS`; the
last of the d + 1 rows is the bias."""


@dataclass(frozen=True)
class Read:
    """The class read out of one vector, with its probability, or None if nothing is read."""

    moment: Moment
    accuracy: float
    found: tuple[str, float] | None


@dataclass(frozen=True)
class Reading:
    """The classes that a read-out reads around a head at one query."""

    readout: ReadOut
    head: Head
    reads: tuple[Read, ...]


def reading(
    readout: ReadOut, head: Head, maps: Maps, vectors: Mapping[Moment, FloatArray]
) -> Reading:
    """Read the vectors (d) around a head that the read-out was made for."""
    around, reads = readout.around(head), []
    for moment, weight in zip(MOMENTS, maps[readout.name, head], strict=True):
        accuracy = float(getattr(around, moment))
        logits = vectors[moment].astype(np.float64) @ weight[:-1] + weight[-1]
        found = likeliest(readout.classes, logits)
        reads.append(Read(moment, accuracy, None if readout.nothing(accuracy) else found))
    return Reading(readout, head, tuple(reads))


def likeliest(classes: Sequence[str], logits: NDArray[Any]) -> tuple[str, float]:
    """The class with the highest logit, and its probability."""
    odds = np.exp(logits - logits.max())
    return classes[int(odds.argmax())], float(odds.max() / odds.sum())


MOST_NEAREST = 3
DIRECTIONS, OFTEN = 256, 0.95
"""The number of random directions by which chance is measured, and of those below it."""


@dataclass(frozen=True)
class Context:
    """A position of a text: the `token` there; `line`: the number of the text, from 1."""

    text: str
    line: int
    token: Token
    cosine: float


@dataclass(frozen=True)
class Neighbours:
    """The contexts nearest to one vector, the nearest first; none is at or below `chance`."""

    moment: Moment
    chance: float
    nearest: tuple[Context, ...]


@dataclass(frozen=True)
class Contexts:
    """The nearest contexts, and the numbers of texts and positions that were searched."""

    texts: int
    positions: int
    neighbours: tuple[Neighbours, ...]


Place: TypeAlias = tuple[str, int, Token]


def neighbours(
    moment: Moment, vector: FloatArray, others: FloatArray, places: Sequence[Place]
) -> Neighbours:
    """Find the nearest of others (n, d) to a vector (d), by cosine after subtracting their mean.

    Chance is the cosine that the nearest of them reaches for 95 of 100 random directions with the
    covariance of the others: sums of them with random factors.
    """
    mean = others.mean(axis=0, dtype=np.float64)
    centred = others - mean  # (n, d)
    directions = _units(centred)
    drawn = np.random.default_rng(0).standard_normal((DIRECTIONS, len(others))) @ centred
    chance = float(np.quantile((_units(drawn) @ directions.T).max(axis=1), OFTEN))
    cosines = directions @ _units((vector - mean)[None])[0]  # (n)
    best = np.argsort(-cosines, kind="stable")[:MOST_NEAREST]
    nearest = []
    for i in best[cosines[best] > chance].tolist():
        text, line, token = places[i]
        nearest.append(Context(text, line, token, float(cosines[i])))
    return Neighbours(moment, chance, tuple(nearest))


def _units(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors (n, d) scaled to length 1, except those of length 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


@dataclass(frozen=True)
class Axis:
    """A direction of the stream: the logit of a read-out's class `label` less that of no class, or
    less the mean of all where there is none.

    `accuracy`: of the read-out where the trajectory ends; `read`: the likeliest class there, with
    its probability.
    """

    readout: ReadOut
    label: str
    accuracy: float
    read: tuple[str, float]

    @property
    def name(self) -> str:
        """`blue rather than no colour (log-odds)`."""
        none, other = NONE in self.readout.classes, f"no {self.readout.name} (log-odds)"
        return f"{self.label} rather than {other if none else 'the mean of all classes (logit)'}"

    @property
    def said(self) -> str:
        """`colour blue (right 0.85)`; `colour unsure` without a class of half the probability."""
        (label, probability), name = self.read, self.readout.name
        said = f"no {name}" if label == NONE else f"{name} {label}"
        return f"{said} (right {self.accuracy:.2f})" if probability >= SURE else f"{name} unsure"


@dataclass(frozen=True)
class Waypoint:
    """A place on two axes, behind the addition of a head, or of another `part`."""

    part: Head | str
    place: tuple[float, float]


@dataclass(frozen=True)
class Trajectory:
    """A token's vector from its embedding to the stream that arrives at `layer`.

    Each addition moves it by its projection on the two axes, and all sum up to the end.
    """

    query: str
    layer: int
    axes: tuple[Axis, Axis]
    waypoints: tuple[Waypoint, ...]

    @property
    def places(self) -> FloatArray:
        """(waypoints, 2)."""
        return np.array([point.place for point in self.waypoints], np.float32)

    @property
    def labels(self) -> dict[str, list[str]]:
        """The names of the rows and columns of `places`."""
        rows = [str(point.part) for point in self.waypoints]
        return {"rows": rows, "columns": [axis.name for axis in self.axes]}


@dataclass(frozen=True)
class Meaning:
    """The meaning of a head's addition at the query, as far as it is known.

    `chance`: the cosine that the nearest token reaches by chance, None if no token can be
    compared; `nearest`: the tokens that are nearer, the nearest first.
    """

    chance: float | None = None
    nearest: tuple[Predicted, ...] = ()
    readings: tuple[Reading, ...] = ()
    contexts: Contexts | None = None
    trajectory: Trajectory | None = None
