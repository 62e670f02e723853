"""What a model says comes next: logits as a model hands them over, and what is read from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from attnviz.data.capture import Capture, FloatArray, IntArray
from attnviz.data.head import Head


@dataclass(frozen=True, eq=False)
class LogitRows:
    """Logits (rows, V) of the token after each of some positions.

    `layer`: as if the model stopped after this layer; None is the whole model. The array may
    be used only during the call.
    """

    layer: int | None
    positions: IntArray
    logits: FloatArray


LogitConsumer: TypeAlias = Callable[[LogitRows], None]


@dataclass(frozen=True)
class Candidate:
    """A token that may come next; `label` is how a person reads it."""

    id: int
    label: str
    probability: float


@dataclass(frozen=True)
class Outlook:
    """What comes after one position, the likeliest first.

    `layer`: as if the model stopped there; None is the whole model. `followed` is what really
    stands there, with the rank of it, counted from 1; None at the end of the text.
    """

    position: int
    layer: int | None
    candidates: Sequence[Candidate]
    followed: Candidate | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Evidence:
    """A link of the last position: head, key position, weight."""

    head: Head
    key: int
    weight: float


@dataclass(frozen=True)
class Prediction:
    """The outlook after the last position of a text, and how the model came by it.

    `each`: after every position, where that was asked for; `lens`: after each layer, likewise;
    `evidence`: the strongest links of the last position, layer by layer.
    """

    capture: Capture
    last: Outlook
    each: Sequence[Outlook] = ()
    lens: Sequence[Outlook] = ()
    evidence: Sequence[Evidence] = ()
