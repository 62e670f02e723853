"""Ablation: what a model predicts without some of its parts, and how much worse that is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head
from attnviz.records.interventions import (
    BothRuns,
    Effect,
    OfEffects,
    Replacement,
    mean_effects,
    over_texts,
)
from attnviz.records.means import common_tokens
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.predict import Candidate, Measure, Outcome, Question
from attnviz.records.tokens import Token

PLACE = r"@(?:[0-9]+:)?(?:(?:t[0-9]+)?r[0-9]+c[0-9]+|[0-9.]+,[0-9.]+(?::[0-9.]+,[0-9.]+)?)"
QUERY_AND_KEY = re.compile(rf"({PLACE}|[^:]+):({PLACE}|[^:]+)")
"""Two names; those of places may have colons."""
EVERY, SEGMENT = "*", "@"
"""Names of every token, and the first letter of that of a segment."""


def is_segment(name: str) -> bool:
    """Whether a name is `@system`, or `@`, rather than a place, as `@r3c5`."""
    return name.startswith(SEGMENT) and re.fullmatch(PLACE, name) is None


@dataclass(frozen=True)
class LinkNames:
    """Links to cut, by the names of their queries and keys.

    `names`: of each query and its key: of tokens, `*` for every token, `@system` for a segment, and
    `@` for the same one on both sides. `renormalise`: take the softmax again over the rest of a
    row. `segments`: parts of the text, as a user names them. `number`: how many links of each head
    these are in a text; 0 before a run.
    """

    names: tuple[tuple[str, str], ...]
    renormalise: bool = False
    segments: tuple[str, ...] = ()
    number: int = 0

    @property
    def query(self) -> str:
        """The names of the queries, with commas between several."""
        return ", ".join(query for query, _ in self.names)

    @property
    def key(self) -> str:
        return ", ".join(key for _, key in self.names)


def links_named(
    cuts: Sequence[str], segments: tuple[str, ...] = (), *, renormalise: bool = False
) -> LinkNames | None:
    """The links that each `QUERY:KEY` names, all together; None where none does."""
    names = []
    for name in cuts:
        found = QUERY_AND_KEY.fullmatch(name)
        if found is None:
            raise UsageError(
                f"{option('cut', repr(name))} is not QUERY:KEY",
                "give two tokens, as in creature:blue; one that has a colon, by its position",
            )
        names.append((found[1], found[2]))
    return LinkNames(tuple(names), renormalise, segments) if names else None


@dataclass(frozen=True)
class Others:
    """Other texts whose activations replace those of a part.

    `texts`: their number; `name`: of their file, or empty. `by_position`: a mean is taken at
    each position. `draws`: how many of them are drawn at random for each text that is ablated, and
    the mean of the effects taken; `long_enough`: from how many, as others are shorter; both empty:
    none is drawn. `seed`: of the draw.
    """

    texts: int
    name: str
    by_position: bool = False
    draws: tuple[int, ...] = ()
    long_enough: tuple[int, ...] = ()
    seed: int = 0


def heads_of(effect: Effect[Part]) -> tuple[Head, ...]:
    """The heads among the parts of an effect."""
    return tuple(
        Head(part.layer, part.head)
        for part in effect.parts
        if part.layer is not None and part.head is not None
    )


@dataclass(frozen=True)
class AblationReport(OfEffects[Effect[Part]]):
    """The effects of ablations on one text, or their mean over several.

    Attributes:
        capture: the run, without patterns.
        baseline: the measure without ablation, a log-probability in nats: the mean over the
            `tokens` tokens that really followed, or that of the `question`'s answer after the last
            position, where its rank is `rank`, counted from 1, and `first` is the likeliest. With
            a versus, it is the difference of the logits of the two.
        cut: the links that are removed, or None where outputs are replaced by `replacement`.
        others: the texts that the replacement is taken from, unless it is the text.
        direction: the name of a direction that is projected out, where nothing is replaced.
        lines: the number of texts of a mean. Every error is then that of a mean over them, and
            `capture` and `question` are those of the first.
        own_answers: whether each of these texts had an answer of its own.
    """

    capture: Capture
    replacement: Replacement
    baseline: float
    tokens: int
    effects: Sequence[Effect[Part]]
    question: Question | None = None
    rank: int | None = None
    first: Candidate | None = None
    cut: LinkNames | None = None
    lines: int | None = None
    own_answers: bool = False
    others: Others | None = None
    direction: str | None = None

    def known_for(self, effect: Effect[Part]) -> list[str]:
        """The behaviours for which the model's card names the heads of an effect."""
        named, heads = self.capture.named_heads, heads_of(effect)
        return list(dict.fromkeys(each.behaviour for each in named if each.head in heads))


@dataclass(frozen=True)
class BeforeAfter(BothRuns[AblationReport]):
    """The next tokens with and without the parts of one effect."""

    @property
    def capture(self) -> Capture:
        """The run, without patterns."""
        return self.report.capture


@dataclass(frozen=True, eq=False)
class TokenEffects:
    """The change of each token's log-probability, in nats, without each part.

    `report`: the same as means over the tokens. `tokens` (n): of the text behind its insets, and
    one before them; of a mean over texts, `blue|red` where they differ, which `varied` numbers.
    `before` (n - 1): with all parts, of each token from the second of these on. `changes` (parts,
    n - 1): in the order of the report's effects. `errors` (parts, n - 1): of means over texts,
    standard errors over them. `first`: the position of the first that is measured; of texts of
    several lengths, counted from the end.
    """

    report: AblationReport
    tokens: tuple[Token, ...]
    before: FloatArray
    changes: FloatArray
    errors: FloatArray | None = None
    varied: frozenset[int] = frozenset()
    first: int = 1

    @property
    def capture(self) -> Capture:
        """The run, without patterns."""
        return self.report.capture

    @property
    def measure(self) -> Measure:
        return self.report.measure

    @property
    def strongest(self) -> list[int]:
        """The numbers of the parts, first that which changes any token most."""
        order: list[int] = np.argsort(-np.abs(self.changes).max(axis=1), kind="stable").tolist()
        return order


def mean_tokens(every: Sequence[TokenEffects]) -> TokenEffects:
    """The mean at each position, with standard errors; from the end, where lengths differ."""
    spans = {(each.first, len(each.before)) for each in every}
    m = min(length for _, length in spans)
    changes = np.stack([each.changes[:, -m:] for each in every])  # (texts, parts, m)
    error = changes.std(axis=0, ddof=1) / sqrt(len(every)) if len(every) > 1 else None
    each_tokens = [each.tokens[-m - 1 :] for each in every]
    ids = np.array([[token.id for token in tokens] for tokens in each_tokens])
    return TokenEffects(
        mean_of([each.report for each in every]),
        tokens=common_tokens(each_tokens)[0],
        before=np.mean([each.before[-m:] for each in every], axis=0),
        changes=changes.mean(axis=0),
        errors=error,
        varied=frozenset(np.flatnonzero((ids != ids[0]).any(axis=0)).tolist()),
        first=every[0].first if len(spans) == 1 else -m,
    )


def mean_of(reports: Sequence[AblationReport]) -> AblationReport:
    """The mean over several texts of the effects of the same ablations, with standard errors."""
    cuts = [report.cut for report in reports]
    cut = cuts[0]
    if cut is not None and len(set(cuts)) > 1:  # texts have other numbers of these links
        cut = replace(cut, number=0)
    others = reports[0].others
    if others is not None:
        every_other = [report.others for report in reports if report.others]
        others = replace(
            others,
            draws=tuple(draws for each in every_other for draws in each.draws),
            long_enough=tuple(number for each in every_other for number in each.long_enough),
        )
    return over_texts(
        reports,
        others=others,
        baseline=fmean(report.baseline for report in reports),
        tokens=sum(report.tokens for report in reports),
        effects=mean_effects([report.effects for report in reports]),
        cut=cut,
    )


def effect_of(
    parts: tuple[Part, ...],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    own: Outcome | None = None,
) -> Effect[Part]:
    """The mean change of what is measured (draws, tokens), and its standard error.

    The error is over the tokens; for a single token, over the draws.
    """
    change = after - before
    means = change.mean(axis=0) if change.shape[1] > 1 else change[:, 0]
    return Effect(parts, Estimate.of(means.tolist()), own)
