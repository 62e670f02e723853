"""Interventions: what is replaced or removed in a run, and what the model predicts then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head

SiteKind: TypeAlias = Literal["head", "attention", "mlp", "residual"]
Replacement: TypeAlias = Literal["zero", "mean", "resample"]
"""The replacement of an output: zero, its mean over the positions of the text or of other texts, or
what it is on another text."""


class Site(NamedTuple):
    """A vector at each position of a run.

    `head`: z = pattern·v of head number `head`, as the output projection W_O is given it: past a
    gate (Qwen3-Next) or a norm (BitNet) where a model has one. `attention` and `mlp`: what a
    layer's attention or MLP adds to the stream, past a norm of its own (Gemma 2), without a factor
    that is the same for all (Granite). `residual`: the residual stream that arrives at a layer.
    """

    kind: SiteKind
    layer: int
    head: int | None = None


@dataclass(frozen=True)
class Edit:
    """The vectors of a site replaced, at some positions or at all (None).

    `by`: zero, their mean over all positions of the unchanged run, what they are in the source, or
    what `Interventions.given` has.
    """

    site: Site
    by: Literal["zero", "mean", "source", "given"]
    positions: tuple[int, ...] | None = None

    @property
    def layer(self) -> int:
        return self.site.layer


@dataclass(frozen=True)
class CutLink:
    """A link of a head removed: the query no longer takes the key's value.

    `renormalise`: the other weights of the row are what softmax makes of the other scores, that of
    a learned sink among them; else they stay as they are.
    """

    head: Head
    query: int
    key: int
    renormalise: bool = False

    @property
    def layer(self) -> int:
        return self.head.layer


Intervention: TypeAlias = tuple[Edit | CutLink, ...]
"""All that is changed in one run; empty: the model as it is."""


@dataclass(frozen=True)
class SourceRun:
    """The tokens (n_s) whose run gives vectors; `places` (n): the position of each."""

    ids: Sequence[int]
    places: Sequence[int]


@dataclass(frozen=True)
class Interventions:
    """Runs of a text, each with an intervention.

    `whole`: the log-probabilities of all tokens that followed are wanted, too. `source`: the run
    that edits take vectors from. `rows`: the positions after which all logits are wanted.
    `given`: vectors that edits put in, (n, width), or (1, width) for all positions.
    """

    each: Sequence[Intervention]
    whole: bool = False
    source: SourceRun | None = None
    rows: range | None = None
    given: Mapping[Site, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ChangedRun:
    """The predictions of a model under one intervention.

    `index`: the number of the intervention among those of the run. `followed` (n - 1): the
    log-probability, in nats, of the token that follows each position but the last; empty where
    it was not wanted. `last` (V): the logits after the last position. `rows` (rows, V): those after
    the positions that were wanted.
    """

    index: int
    followed: FloatArray
    last: FloatArray
    rows: FloatArray | None = None


RunConsumer: TypeAlias = Callable[[ChangedRun], None]
