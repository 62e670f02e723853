"""Interventions: what is replaced or removed in a run, and what the model predicts then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate
from attnviz.records.predict import Measure, NextTokens, OfQuestion, Outcome, mean_outcome
from attnviz.records.significance import holm

PartT = TypeVar("PartT")
EffectT = TypeVar("EffectT", bound="Effect[Any]")
ReportT = TypeVar("ReportT", bound="OfQuestion")
RecordT = TypeVar("RecordT", bound=Any)

SiteKind: TypeAlias = Literal["head", "attention", "mlp", "residual"]
Replacement: TypeAlias = Literal["zero", "mean", "resample"]
"""The replacement of an output: zero, its mean over the positions of the text or of other texts, or
its value on another text."""


class Site(NamedTuple):
    """A vector at each position of a run.

    `head`: z = pattern·v of head number `head`, as the input of the output projection W_O: after a
    gate (Qwen3-Next) or a norm (BitNet) in models with one. `attention` and `mlp`: what a layer's
    attention or MLP adds to the stream, after its own norm (Gemma 2), without a factor shared by
    all (Granite). `residual`: the residual stream at the input of a layer.
    """

    kind: SiteKind
    layer: int
    head: int | None = None


@dataclass(frozen=True)
class Edit:
    """The vectors of a site replaced or moved, at some positions or at all (None).

    `by`: zero, their mean over all positions of the unchanged run, their values in the source, or
    those of `Interventions.given`. A vector of these is "added" to theirs, or "projected" out: each
    x becomes x - (x·u)u, where u is its direction.
    """

    site: Site
    by: Literal["zero", "mean", "source", "given", "added", "projected"]
    positions: tuple[int, ...] | None = None

    @property
    def layer(self) -> int:
        return self.site.layer


@dataclass(frozen=True)
class CutLink:
    """A link of a head removed: the query no longer takes the key's value.

    `renormalise`: the row's other weights are the softmax of the other scores, with that of a
    learned sink; else they are unchanged.
    """

    head: Head
    query: int
    key: int
    renormalise: bool = False

    @property
    def layer(self) -> int:
        return self.head.layer


Intervention: TypeAlias = tuple[Edit | CutLink, ...]
"""All changes in one run; empty for the unchanged model."""


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
    `given`: vectors that edits put in, the same in every run: (n, width), or (1, width) for all
    positions.
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
    log-probability, in nats, of the token that follows each position but the last; empty unless
    wanted. `last` (V): the logits after the last position. `rows` (rows, V): those after the
    positions that were wanted.
    """

    index: int
    followed: FloatArray
    last: FloatArray
    rows: FloatArray | None = None


RunConsumer: TypeAlias = Callable[[ChangedRun], None]


# The effect of a change to a run.


@dataclass(frozen=True)
class Effect(Generic[PartT]):
    """The effect of changing some parts of a run.

    `parts`: heads, MLPs, layers or sites. `change`: of what is measured; negative means a worse
    prediction. `own`: the changes of the predictions of the question's tokens; None if they are
    not known. `p_holm`: for a mean over texts, the p-value of the change against 0, corrected for
    all tested parts.
    """

    parts: tuple[PartT, ...]
    change: Estimate
    own: Outcome | None = None
    p_holm: float | None = None

    @property
    def size(self) -> float:
        """By which effects are compared."""
        return abs(self.change.mean)


class OfEffects(OfQuestion, Generic[EffectT]):
    """A record of effects on what is measured."""

    effects: Sequence[EffectT]

    @property
    def strongest(self) -> Sequence[EffectT]:
        """The effects, the largest first."""
        return sorted(self.effects, key=lambda effect: -effect.size)


def mean_effects(texts: Sequence[Sequence[EffectT]]) -> list[EffectT]:
    """The means of the same effects on several texts, with standard errors and p-values."""
    every = list(zip(*texts, strict=True))
    changes = [Estimate.of([effect.change.mean for effect in same]) for same in every]
    p_values = holm(changes, len(texts))
    owns = ([effect.own for effect in same if effect.own] for same in every)
    return [
        replace(same[0], change=change, own=mean_outcome(own) if own else None, p_holm=p)
        for same, change, own, p in zip(every, changes, owns, p_values, strict=True)
    ]


def over_texts(records: Sequence[RecordT], **means: Any) -> RecordT:
    """The record of the first of several texts, with these means over all of them."""
    own = len({each.question and each.question.ids for each in records}) > 1
    return replace(records[0], lines=len(records), own_answers=own, **means)


@dataclass(frozen=True)
class BothRuns(Generic[ReportT]):
    """The next tokens of the unchanged run, and with all parts of one effect changed.

    `report` has this effect.
    """

    report: ReportT
    before: NextTokens
    after: NextTokens

    @property
    def measure(self) -> Measure:
        return self.report.measure


def mean_together(mean_of: Callable[..., Any]) -> Callable[..., Any]:
    """Make a mean that averages the effect of the same parts, as next tokens differ by text."""

    def of_both(
        every: Sequence[BothRuns[Any]], lines: Sequence[int] | None = None
    ) -> BothRuns[Any]:
        reports, nothing = [both.report for both in every], NextTokens(0, None, ())
        report = mean_of(reports) if lines is None else mean_of(reports, lines)
        return replace(every[0], report=report, before=nothing, after=nothing)

    return of_both
