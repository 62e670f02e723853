"""An answer's grounds by deletions of the prompt's segments: pure numbers; callers do the runs.

Log-probabilities are in nats. Documents are the segments that an answer may rest on: all but those
that ask for it or instruct the model.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from attnviz.records.reasoning import MATTERS, Chain

if TYPE_CHECKING:
    from attnviz.records.images import Occlusion

Doubles: TypeAlias = NDArray[np.float64]
Without: TypeAlias = Callable[[Sequence[Collection[int]]], Doubles]
"""The log-probabilities of an answer's tokens without each of these sets of segments (sets, m)."""
CheckMethod: TypeAlias = Literal["delete", "chain", "subsets", "curve"]


Use: TypeAlias = Literal["used", "not used", "against"]
"""Of a document: its loss makes the answer less likely, changes nothing, or makes it likelier."""


@dataclass(frozen=True)
class Deletion:
    """A segment's share of the attention, and the change in log-probability (nats) without it.

    `changes` (new tokens): the change of each token of the answer; they sum to `change`.
    """

    segment: str
    share: float
    changes: tuple[float, ...]

    @property
    def change(self) -> float:
        """The change of the whole answer."""
        return sum(self.changes)


@dataclass(frozen=True)
class GroupDeletion:
    """The changes without the `size` segments with the most attention, and without random ones."""

    size: int
    top: float
    random: float


@dataclass(frozen=True)
class SmallestSet:
    """The fewest documents that give most of what all of them give; `change`: without these.

    `parts`: how much of that change is due to each, when the others of them are gone already.
    """

    segments: tuple[str, ...]
    change: float
    parts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Groundedness:
    """The groundedness of a part of an answer: the share of its log-probability due to documents.

    `share`: None if the part is almost certain without them. `unrelated`: the 95th percentile of
    the share with unrelated text in their place, or None without any.
    """

    share: float | None
    unrelated: float | None

    @property
    def supported(self) -> bool | None:
        """Whether the documents give more than unrelated text does; None if that is unknown.

        A share that is shown as 0.00 does not count.
        """
        if self.share is None or self.unrelated is None:
            return None
        return self.share > max(self.unrelated, LEAST_SHARE)


Verdict: TypeAlias = Literal["contradicted", "not supported", "untested", "supported", "known"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What documents say of a statement, the worst first; "known": it is as probable without them."""


@dataclass(frozen=True)
class Contradiction:
    """Words of an answer (`given`), and what the documents say in their place (`instead`).

    `place`: the token at which they part. `probability`: of the rival there, with the documents.
    `document`: the one whose loss takes the rival away; empty if none does.
    """

    given: str
    instead: str
    place: int
    probability: float = 1.0
    document: str = ""

    @property
    def said(self) -> str:
        """`“480”: kestrel says “290”`."""
        source = self.document or "the text"
        return f"“{self.given}”: {source} says “{self.instead}”"


@dataclass(frozen=True)
class RaisedWord:
    """A word of content, by its first token, that documents could give; whether they raise it."""

    place: int
    raised: bool


@dataclass(frozen=True)
class Statement:
    """A sentence of an answer: its tokens from `first` up to, but without, `after`.

    `contradiction`: what the documents say instead of some of it. `words`: whether documents raise
    its words. `undecided`: it has a negation that no single word takes back, or the
    documents make another word likelier.
    """

    text: str
    first: int
    after: int
    groundedness: Groundedness
    contradiction: Contradiction | None = None
    words: tuple[RaisedWord, ...] = ()
    undecided: bool = False

    def holds(self, first: int, after: int) -> bool:
        """Whether these tokens are of it."""
        return self.first <= first and after <= self.after

    @property
    def verdict(self) -> Verdict:
        """What the documents say of it; see docs/generate.md for the thresholds."""
        of = self.groundedness
        if self.contradiction is not None:
            return "contradicted"
        if of.share is None:
            return "known" if any(map(str.isalnum, self.text)) else "untested"
        if of.supported is None:
            return "untested"
        raised = [each.raised for each in self.words]
        if not of.supported or 2 * raised.count(True) < len(raised):
            return "not supported"
        return "untested" if self.undecided else "supported"


@dataclass(frozen=True, eq=False)
class Grounds:
    """The log-probabilities of an answer's tokens (m), with and without documents.

    `unrelated` (draws, m): with unrelated text in their place; no rows if that was not measured.
    """

    whole: Doubles
    without: Doubles
    unrelated: Doubles

    @property
    def changes(self) -> list[float]:
        """The change of each token without all documents."""
        return [*map(float, self.without - self.whole)]

    @property
    def change(self) -> float:
        """The change of the whole answer without all documents."""
        return sum(self.changes)

    def raised(self, first: int, after: int, least: float) -> bool | None:
        """Whether documents raise these tokens, together by `least` nats and more than noise does.

        None where they are likelier than not without documents.
        """
        without = self.without[first:after].sum()
        if without > LIKELIER or not len(self.unrelated):
            return None
        noise = self.unrelated[:, first:after].sum(axis=1).max() - without
        return bool(self.whole[first:after].sum() - without > max(noise, least))

    def of(self, text: str, first: int, after: int) -> Groundedness:
        """The groundedness of these tokens; None for tokens without a letter or a digit."""
        if not any(map(str.isalnum, text)):
            return Groundedness(None, None)
        part = slice(first, after)
        without = float(self.without[part].sum())
        share = groundedness(float(self.whole[part].sum()), without, after - first)
        if share is None or not len(self.unrelated):
            return Groundedness(share, None)
        sums = self.unrelated[:, part].sum(axis=1)
        shares = np.clip((sums - without) / -without, 0, 1)
        return Groundedness(share, float(np.quantile(shares, PERCENTILE, method="higher")))


LEAST_SHARE, PERCENTILE = 0.005, 0.95
LIKELIER = float(np.log(0.5))
"""Nats; what is more probable is likelier than all else together."""
CERTAIN = 0.1
"""Nats per token; tokens more probable than this without documents cannot be grounded in them."""


def groundedness(whole: float, without: float, tokens: int) -> float | None:
    """(ln p(s | documents) − ln p(s | none)) / −ln p(s | none), from 0 to 1; None if near 1.

    Args:
        whole: ln p of a statement with the documents.
        without: the same without them.
        tokens: the number of its tokens.
    """
    if -without < CERTAIN * tokens:
        return None
    return min(1.0, max(0.0, (whole - without) / -without))


@dataclass(frozen=True)
class SubsetFit:
    """A sparse linear fit to an answer's logit-scaled probability on subsets of the documents.

    `weights`: by document, how much its presence adds. `r2`: the share of the variance that the
    fit explains on the `held_out` subsets; None if these are too few, or do not vary.
    """

    weights: tuple[tuple[str, float], ...]
    r2: float | None
    fitted: int
    held_out: int


@dataclass(frozen=True)
class Curve:
    """The answer's log-probability as more and more tokens of documents are deleted, or inserted.

    `tokens` (k): their number. `values` (k): documents with the most attention first. `low`, `high`
    (k): the least and the greatest of random orders. `area`, `random`: the means of both.
    """

    kind: Literal["deletion", "insertion"]
    tokens: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    area: float
    random: float


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """The log-probability of the whole answer (nats), and its changes by deletions.

    `runs`: the number of runs. `documents`: the segments that were deleted together, by name, with
    their `shares` of what `measure` names; `kind`: the word for them. `grounds`: token by token,
    with and without them; None without documents. `noise`: the greatest change (nats) by the loss
    of unrelated text in the place of a document. `asked`: the effect of a question that stands
    behind the documents. `statements`: the sentences of the answer. The
    other fields are empty or None if the method lacks them: `effects` by single deletions;
    `smallest`; `subsets`; `curves`; with hops, `chain`: the links back to the prompt.

    `occlusions`: regions of images made grey, each with its effect (`effects` has whole images).

    `kept`: the last segment, which was not deleted, as it asks for the answer (in a template, the
    answer follows it), and its share; None if all were deleted. `sink`: the segment that holds the
    first token, an attention sink; None if a BOS precedes all segments. `correlation`: Spearman's
    ρ between the shares and the losses of log-probability, None like `group` with few segments.
    """

    method: CheckMethod
    log_probability: float
    runs: int = 0
    documents: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    kind: Literal["document", "segment"] = "document"
    grounds: Grounds | None = None
    noise: float | None = None
    asked: Deletion | None = None
    statements: tuple[Statement, ...] = ()
    effects: tuple[Deletion, ...] = ()
    correlation: float | None = None
    group: GroupDeletion | None = None
    smallest: SmallestSet | None = None
    subsets: SubsetFit | None = None
    curves: tuple[Curve, ...] = ()
    kept: tuple[str, float] | None = None
    sink: str | None = None
    chain: Chain | None = None
    measure: Literal["attention", "contribution"] = "attention"
    occlusions: "tuple[Occlusion, ...]" = ()

    def use_of(self, effect: Deletion) -> "Use | None":
        """What the loss of a document says of its use; None where there is no noise to compare."""
        if self.noise is None or effect.segment not in self.documents:
            return None
        some, least = self.smallest, self.least
        parts = dict(zip(some.segments, some.parts, strict=False)) if some else {}
        if min(effect.change, parts.get(effect.segment, 0.0)) < -least:
            return "used"
        return "against" if effect.change > least else "not used"

    @property
    def uses(self) -> "dict[str, Use]":
        """The use of each document, by its name, where it is known."""
        told = ((each.segment, self.use_of(each)) for each in self.effects)
        return {name: use for name, use in told if use}

    @property
    def least(self) -> float:
        """The change (nats) from which a loss counts."""
        return max(self.noise or 0.0, MATTERS)

    def __repr__(self) -> str:
        facts = [f"{self.log_probability:.2f} nats"]
        if self.grounds is not None:
            number = len(self.documents)
            gone = f"all {number} {self.kind}s" if number > 1 else f"its {self.kind}"
            facts.append(f"{self.grounds.change:+.2f} without {gone}")
        if self.statements:
            yes = sum(each.verdict == "supported" for each in self.statements)
            facts.append(f"{yes} of {len(self.statements)} statements supported")
        return f"<Check by {self.method}: {', '.join(facts)}>"


# One segment after another, and the smallest set of them.

LEAST = 5
"""A correlation of ranks, and an R² on subsets, need this many segments."""
DIGITS = 5
"""Decimals to compare; later ones differ by the rounding of float32."""
DRAWS, SEED = 10, 0


def single_deletions(
    names: Sequence[str], attention: Sequence[float], without: Without
) -> tuple[Deletion, ...]:
    """The change of an answer's log-probability without each of the segments."""
    whole, *others = without([(), *((i,) for i in range(len(names)))])
    return tuple(
        Deletion(segment=name, share=share, changes=tuple((other - whole).tolist()))
        for name, share, other in zip(names, attention, others, strict=True)
    )


def against_random(attention: Sequence[float], without: Without) -> GroupDeletion | None:
    """The segments with the most attention, a fifth of them, against as many random ones."""
    if len(attention) < LEAST:
        return None
    size = ceil(len(attention) / 5)
    top = np.argsort(-np.array(attention), kind="stable")[:size].tolist()
    draw = np.random.default_rng(SEED)
    drawn = [draw.choice(len(attention), size, replace=False).tolist() for _ in range(DRAWS)]
    whole, of_top, *of_random = without([(), top, *drawn]).sum(axis=1)
    return GroupDeletion(size, float(of_top - whole), float(np.mean(of_random) - whole))


def correlation_of_ranks(a: Doubles, b: Doubles) -> float | None:
    """Spearman's ρ, with mean ranks for ties (to rounding); None if an input does not vary."""
    if len(a) < LEAST:
        return None
    both = np.round(np.stack([a, b]), DIGITS)[:, :, None]  # (2, n, 1)
    others = both.transpose(0, 2, 1)
    ranks = (both > others).sum(axis=2) + ((both == others).sum(axis=2) - 1) / 2
    if not (ranks.std(axis=1) > 0).all():
        return None
    one, other = ranks - ranks.mean(axis=1, keepdims=True)
    return float((one @ other) / np.sqrt((one @ one) * (other @ other)))


MOST = 0.8
"""The share of the change without all documents that a smallest set explains."""
TRIED = 100
"""The number of sets of two or more documents that are tried as a set grows."""


def smallest_set(attention: Sequence[float], without: Without) -> tuple[int, ...]:
    """A smallest set whose deletion costs most of what deleting all costs; () if that is nothing.

    The set grows by the document that costs most (of equals, to 0.1 nats, the one with the most
    attention), and then loses each that is not needed, the cheapest first. After `TRIED` sets it
    grows by all others. Greedy: a smaller set may exist among those that were not tried.
    """
    everything = range(len(attention))

    def losses(*sets: Collection[int]) -> Doubles:
        whole, *others = without([(), *sets]).sum(axis=1)
        return np.array([whole - other for other in others])

    target = MOST * losses(everything)[0]
    if target < MOST * MATTERS:
        return ()
    rest = sorted(everything, key=lambda i: -attention[i])
    chosen, tried = list[int](), 0
    while losses(chosen)[0] < target:
        tried += len(rest) if chosen else 0  # sets of one document are known
        if tried > TRIED:
            chosen += rest
            break
        costs = losses(*([*chosen, i] for i in rest)) // MATTERS
        chosen.append(rest.pop(int(np.argmax(costs))))
    alone = losses(*([i] for i in everything))
    for i in sorted(chosen, key=lambda i: alone[i]):
        fewer = [other for other in chosen if other != i]
        if losses(fewer)[0] >= target:
            chosen = fewer
    return tuple(sorted(chosen))


# Random subsets, as in ContextCite.

FITTED, HELD_OUT, ALPHA = 64, 32, 0.01


def subset_fit(names: Sequence[str], without: Without) -> SubsetFit:
    """The weight of each document in a sparse linear fit, over random subsets of them.

    ContextCite: Cohen-Wang et al. 2024, arXiv 2409.00729, sections 3 and 4: Lasso on the
    logit-scaled probability ln(p / (1 − p)) of the answer, divided by its number of tokens, over
    subsets that hold each document with a probability of ½; 64 of them, α = 0.01. Up to 15
    documents, no subset is drawn twice.
    """
    n, draw = len(names), np.random.default_rng(SEED)
    if n < 16:
        codes = draw.permutation(2**n)[: FITTED + HELD_OUT]
        masks = (codes[:, None] >> np.arange(n)) & 1 == 1  # (subsets, n): which are there
    else:
        masks = draw.random((FITTED + HELD_OUT, n)) < 0.5
    tokens = without([np.flatnonzero(~mask).tolist() for mask in masks])
    m, values = tokens.shape[1], np.array([*map(logit, tokens.sum(axis=1).tolist())])
    fitted = min(FITTED, 2 * len(masks) // 3) if n >= LEAST else len(masks)
    weights, bias = lasso(masks[:fitted].astype(float), values[:fitted] / m, ALPHA)
    held = values[fitted:] / m
    error = held - bias - masks[fitted:] @ weights
    r2 = None
    if len(held) and held.std() > 10**-DIGITS:
        r2 = float(1 - (error @ error) / ((held - held.mean()) @ (held - held.mean())))
    return SubsetFit(tuple(zip(names, (m * weights).tolist(), strict=True)), r2, fitted, len(held))


# Curves over tokens.

STEPS = 10


def steps_of(tokens: int) -> tuple[int, ...]:
    """The numbers of tokens from 0 to all, in about ten equal steps, the same backwards."""
    half = np.linspace(0, tokens / 2, STEPS // 2 + 1)
    half = half[: len(half) - tokens % 2].round().astype(int)  # 3.5 is not a step
    return tuple(np.unique([*half, *(tokens - half)]).tolist())


def curves(ranked: Sequence[Sequence[int]], without: Without) -> tuple[Curve, Curve]:
    """The curves of an answer as documents' tokens are deleted from all, and inserted into none.

    A document's tokens are taken in the order of the text, and a step may end within one, so that
    each step has as many tokens in every order. A random order backwards inserts the tokens that
    it leaves forwards, so that the same runs serve both bands.

    Args:
        ranked: the tokens of each document, the document with the most attention first.
        without: takes sets of tokens.
    """
    order = [token for tokens in ranked for token in tokens]
    steps, draw = steps_of(len(order)), np.random.default_rng(SEED)

    def of(sets: Sequence[Collection[int]]) -> Doubles:
        values: Doubles = without(sets).sum(axis=1)
        return values

    deleted, inserted = of([order[:k] for k in steps]), of([order[k:] for k in steps])
    shuffled = ([t for i in draw.permutation(len(ranked)) for t in ranked[i]] for _ in range(DRAWS))
    random = np.stack([of([tokens[:k] for k in steps]) for tokens in shuffled])
    return (
        _curve("deletion", steps, deleted, random),
        _curve("insertion", steps, inserted, random[:, ::-1]),
    )


def _curve(
    kind: Literal["deletion", "insertion"], steps: tuple[int, ...], values: Doubles, random: Doubles
) -> Curve:
    low, high = random.min(axis=0).tolist(), random.max(axis=0).tolist()
    areas = [float(np.trapezoid(each, steps) / steps[-1]) for each in (values, random.mean(axis=0))]
    return Curve(kind, steps, tuple(values.tolist()), tuple(low), tuple(high), *areas)


# The sparse linear fit of ContextCite, and the scale of probabilities that it is made on.


def logit(log_probability: float) -> float:
    """The logit ln(p / (1 − p)); p = 1 counts as the nearest float32 below 1."""
    sure = min(log_probability, -float(np.finfo(np.float32).epsneg))
    return float(sure - np.log(-np.expm1(sure)))


def lasso(design: Doubles, values: Doubles, alpha: float) -> tuple[Doubles, float]:
    """The weights (d) and the intercept that minimise ‖y − b − Xw‖² / 2n + α‖w·σ‖₁.

    Coordinate descent on columns that are scaled to mean 0 and deviation 1 (their own is σ).

    Args:
        design: (n, d).
        values: (n).
        alpha: the strength of the penalty.
    """
    mean, scale = design.mean(axis=0), design.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    columns, left = (design - mean) / scale, values - values.mean()
    weights = np.zeros(design.shape[1])
    for _ in range(10_000):
        before = weights.copy()
        for j, column in enumerate(columns.T):
            left = left + column * weights[j]
            slope = column @ left / len(left)
            weights[j] = np.sign(slope) * max(abs(slope) - alpha, 0.0)
            left = left - column * weights[j]
        if np.abs(weights - before).max(initial=0.0) < 1e-10:
            break
    weights = weights / scale
    return weights, float(values.mean() - mean @ weights)
