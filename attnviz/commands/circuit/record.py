"""Is this the circuit? What a model still does when everything outside of some parts is replaced.

F is what is measured after a text. C is the circuit, M all parts of the model, ∅ no part; F(X) is
measured with every part outside of X replaced. Wang et al. 2022 (section 4): a circuit is faithful
where |F(M) − F(C)| is small, complete where |F(C∖K) − F(M∖K)| is small for every subset K of it,
and minimal where each part v has a subset without which F(C∖K) changes by v.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Literal, TypeAlias

import numpy as np

from attnviz.records.capture import Capture
from attnviz.records.interventions import over_texts
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.predict import Measure, OfQuestion, Question

OutsideBy: TypeAlias = Literal["source", "mean", "zero"]
"""The replacement of an output: what it is in the source, its mean over the positions, or 0."""
SubsetKind: TypeAlias = Literal["none", "part", "random", "circuit"]


@dataclass(frozen=True)
class Subset:
    """Some parts K of a circuit: none, one, some that were drawn at random, or all of them."""

    kind: SubsetKind
    removed: tuple[Part, ...]


@dataclass(frozen=True)
class CircuitTask(OfQuestion):
    """The text, or the first of several, and the question about it.

    Attributes:
        captures: the text, and its source if there is one, without patterns.
        replacement: the replacement of outputs outside of a circuit.
        parts: all that can be replaced, M.
        question: the question that is measured.
        lines: the number of texts of a mean; every error is then that of a mean over them.
        own_answers: whether the texts have questions of their own.
        other_texts: the number of texts that the mean replacing outputs is over, from a file of
            this `file_name`, `by_position` or over all positions; None for the text's own mean.
        unaligned: the fewest and the most positions of a text that no position of the source
            replaces, which keep their own outputs.
    """

    captures: tuple[Capture, ...]
    replacement: OutsideBy
    parts: tuple[Part, ...]
    question: Question
    lines: int | None = None
    own_answers: bool = False
    other_texts: int | None = None
    file_name: str = ""
    by_position: bool = False
    unaligned: tuple[int, int] = (0, 0)

    @property
    def noun(self) -> str:
        """The noun for one of the texts that a mean or a search is over."""
        return "pair" if self.replacement == "source" else "text"

    @property
    def with_mlps(self) -> bool:
        """Whether MLPs are parts; else they run as they are, on what arrives."""
        return any(part.kind == "mlp" for part in self.parts)


@dataclass(frozen=True)
class WithoutSubset:
    """The circuit and the model without a subset K of the circuit.

    `circuit`: F(C∖K); `model`: F(M∖K); `gap`: F(M∖K) − F(C∖K). `faithfulness`: that of C∖K,
    (F(C∖K) − F(∅)) / (F(M) − F(∅)). `loss`: that of the circuit's own F, (F(C) − F(C∖K)) /
    (F(M) − F(∅)).
    """

    subset: Subset
    circuit: Estimate
    model: Estimate
    gap: Estimate
    faithfulness: Estimate
    loss: Estimate


@dataclass(frozen=True)
class CircuitReport:
    """The faithfulness, completeness and minimality of a circuit.

    `circuit`: its parts C. `whole`: F(M), and `nothing`: F(∅), with every part replaced. `without`:
    the circuit without each subset; the first K is empty, so that its faithfulness and its gap are
    those of the circuit.
    """

    task: CircuitTask
    circuit: tuple[Part, ...]
    whole: Estimate
    nothing: Estimate
    without: Sequence[WithoutSubset]

    @property
    def measure(self) -> Measure:
        return self.task.measure

    @property
    def itself(self) -> WithoutSubset:
        """The circuit, without nothing."""
        return self.without[0]

    @property
    def minimality(self) -> Sequence[WithoutSubset]:
        """The circuit without each of its parts, the largest loss first."""
        single = (each for each in self.without if each.subset.kind == "part")
        return sorted(single, key=lambda each: -each.loss.mean)

    @property
    def completeness(self) -> Sequence[WithoutSubset]:
        """All subsets but the empty one, the largest gap first."""
        return sorted(self.without[1:], key=lambda each: -abs(each.gap.mean))

    @property
    def mean_gap(self) -> float:
        """The mean of |F(M∖K) − F(C∖K)| over these subsets."""
        return fmean(abs(each.gap.mean) for each in self.completeness)


@dataclass(frozen=True)
class Found:
    """A part that a search added, and the faithfulness of the circuit with it.

    `chosen`: on the texts on which it was chosen; `faithfulness`: on the others, where F(C) is
    `circuit`, and `gain` what the part added to faithfulness.
    """

    part: Part
    chosen: Estimate
    faithfulness: Estimate
    circuit: Estimate
    gain: Estimate

    @property
    def little(self) -> bool:
        """Whether it added less than two standard errors of the gain."""
        return self.gain.error is not None and self.gain.mean < 2 * self.gain.error


@dataclass(frozen=True)
class CircuitSearch:
    """A circuit that grew by the part that made it most faithful, again and again.

    `start`: the parts that it had before, and `steps` those that were added. `chosen_on`: the
    number of texts on which they were chosen; `measured_on`: that of the others, on which `whole`,
    `nothing` and the steps' own numbers are measured, or 0 for one text for both. `runs`: the
    number that the search took.
    """

    task: CircuitTask
    start: tuple[Part, ...]
    steps: Sequence[Found]
    whole: Estimate
    nothing: Estimate
    chosen_on: int
    measured_on: int
    runs: int

    @property
    def measure(self) -> Measure:
        return self.task.measure

    @property
    def circuit(self) -> tuple[Part, ...]:
        """The parts of the circuit that was found."""
        return tuple(sorted([*self.start, *(step.part for step in self.steps)], key=in_order))

    @property
    def options(self) -> Mapping[str, str]:
        """This circuit as options: `attnviz.circuit(texts, sources, **search.options)`."""
        heads = [f"L{part.layer}H{part.head}" for part in self.circuit if part.head is not None]
        mlps = [str(part.layer) for part in self.circuit if part.head is None]
        named = {"heads": ",".join(heads)} if heads else {}
        return named | ({"mlps": ",".join(mlps) or "none"} if self.task.with_mlps else {})


def in_order(part: Part) -> tuple[int, int]:
    """Layer by layer, heads first."""
    return part.layer or 0, 1 << 30 if part.head is None else part.head


def subsets_of(circuit: Sequence[Part], random: int, seed: int) -> list[Subset]:
    """No part, each part, all parts, and at most `random` other subsets, each as likely as any."""
    found = [Subset("none", ()), *(Subset("part", (part,)) for part in circuit)]
    n = len(circuit)
    if n > 1:
        found.append(Subset("circuit", tuple(circuit)))
    if n < 16 and 2**n - n - 2 <= random:
        drawn = [some for size in range(2, n) for some in combinations(circuit, size)]
    else:
        rng, different = np.random.default_rng(seed), dict[tuple[Part, ...], None]()
        while len(different) < random:
            inside = rng.random(n) < 0.5
            if 1 < inside.sum() < n:
                different[tuple(p for p, own in zip(circuit, inside, strict=True) if own)] = None
        drawn = [*different]
    return found + [Subset("random", some) for some in drawn]


@dataclass(frozen=True)
class Ends:
    """F(M) and F(∅) of each text."""

    whole: Sequence[float]
    nothing: Sequence[float]

    def share(self, more: Sequence[float], less: Sequence[float]) -> Estimate:
        """The mean of more − less, as a share of that of F(M) − F(∅)."""
        distance = _differences(self.whole, self.nothing)
        return Estimate.ratio(_differences(more, less), distance)


def without_of(
    subset: Subset,
    *,
    circuit: Sequence[float],
    model: Sequence[float],
    alone: Sequence[float],
    ends: Ends,
) -> WithoutSubset:
    """The means over texts, with standard errors.

    `circuit`: F(C∖K) of each text, `model`: F(M∖K), `alone`: F(C).
    """
    return WithoutSubset(
        subset,
        Estimate.of(circuit),
        Estimate.of(model),
        Estimate.of(_differences(model, circuit)),
        ends.share(circuit, ends.nothing),
        ends.share(alone, circuit),
    )


def _differences(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(ones, others, strict=True)]


def mean_task(tasks: Sequence[CircuitTask]) -> CircuitTask:
    """The first of several, as their mean."""
    unaligned = [places for task in tasks for places in task.unaligned]
    return over_texts(tasks, unaligned=(min(unaligned), max(unaligned)))


def mean_of(reports: Sequence[CircuitReport]) -> CircuitReport:
    """The mean over several texts, with standard errors.

    A share is the mean of its differences over that of F(M) − F(∅) (Cochran 1977): in a mean of
    shares, a text whose ends nearly meet would decide.
    """
    ends = Ends(*([getattr(each, name).mean for each in reports] for name in ("whole", "nothing")))
    alone = [each.itself.circuit.mean for each in reports]
    without = [
        without_of(
            same[0].subset,
            circuit=[each.circuit.mean for each in same],
            model=[each.model.mean for each in same],
            alone=alone,
            ends=ends,
        )
        for same in zip(*(each.without for each in reports), strict=True)
    ]
    return replace(
        reports[0],
        task=mean_task([each.task for each in reports]),
        whole=Estimate.of(ends.whole),
        nothing=Estimate.of(ends.nothing),
        without=without,
    )


def runs_of_search(texts: int, left: int, find: int) -> int:
    """The runs of a search that adds `find` of the parts that are `left`.

    Each step runs the texts on which parts are chosen once with each part that is left; all texts
    run as they are and with everything replaced, and those that are measured with each circuit, the
    first one included.
    """
    chosen_on = (texts + 1) // 2
    steps = sum(left - step for step in range(find))
    return chosen_on * steps + 2 * texts + max(1, texts - chosen_on) * (find + 1)


def left_of(parts: Sequence[Part], circuit: Collection[Part]) -> list[Part]:
    """The parts outside of a circuit."""
    return [part for part in parts if part not in circuit]
