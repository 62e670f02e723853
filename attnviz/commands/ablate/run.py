"""Does a part of a model matter? What the model says without it.

text ─► tokens ─► a run for each intervention ─► log-probabilities or an outcome ─► effects
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.commands.ablate.record import (
    AblationReport,
    BeforeAfter,
    KeepFollowed,
    LinkNames,
    effect_on_answer,
    effect_on_tokens,
)
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.intervene import Progress, intervene, likely, question_of
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.models.loaded import predicting
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head, choose_heads, choose_layers
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Measure,
    Question,
    Replacement,
    RunConsumer,
    Site,
)
from attnviz.records.parts import Part
from attnviz.records.positions import find_positions
from attnviz.records.predict import KeepNextTokens, KeepOutcomes, LogitRows, NextTokens

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Targets:
    """What is ablated: heads, the MLPs of some layers, or whole layers; as users name them.

    Heads are left out where only the others are named.
    """

    heads: HeadOptions = field(default_factory=HeadOptions)
    mlps: str | None = None
    layers: str | None = None

    @property
    def named(self) -> bool:
        """Whether anything is named."""
        return self.heads.named or self.mlps is not None or self.layers is not None


@dataclass(frozen=True)
class Ablating:
    """How parts are ablated, and what is measured.

    All that follows; or one `answer`, alone or rather than `versus`. `cut`: in place of the heads'
    outputs, some of their links.
    """

    replacement: Replacement = "zero"
    answer: str | None = None
    versus: str | None = None
    cut: LinkNames | None = None

    @property
    def measure(self) -> Measure:
        """What effects are told in."""
        if self.answer is None:
            return "tokens"
        return "answer" if self.versus is None else "difference"


def ablate_each(
    model: "LoadedModel",
    text: str,
    options: TextOptions,
    targets: Targets,
    how: Ablating,
    progress: Progress | None = None,
) -> AblationReport:
    """Ablate one part at a time."""
    predicting(model)
    prepared = prepare(model, text, options)
    parts = [(part,) for part in _chosen(prepared, targets, how)]
    return _Measuring(prepared, options, how).report([(), *parts], progress)


def ablate_together(
    model: "LoadedModel",
    text: str,
    options: TextOptions,
    targets: Targets,
    how: Ablating,
    top: int,
    progress: Progress | None = None,
) -> BeforeAfter:
    """Ablate some parts at once; raises what `ablate_each` raises."""
    predicting(model)
    prepared = prepare(model, text, options)
    next_tokens = _KeepLast(prepared, top, runs=2)
    ablations = [(), tuple(_chosen(prepared, targets, how))]
    report = _Measuring(prepared, options, how).report(ablations, progress, also=next_tokens)
    probabilities = None
    if report.answer is not None and report.versus is None:
        after = report.baseline + report.effects[0].change
        probabilities = exp(report.baseline), exp(after)
    return BeforeAfter(report, next_tokens.of(0), next_tokens.of(1), probabilities)


def _chosen(prepared: Prepared, targets: Targets, how: Ablating) -> list[Part]:
    """The parts that are named; all heads where none is."""
    heads_per_layer = prepared.model.identity.heads_per_layer
    n_layers, others = len(heads_per_layer), list[Part]()
    if targets.mlps is not None:
        others += [Part("mlp", layer) for layer in choose_layers(n_layers, targets.mlps, "mlps")]
    if targets.layers is not None:
        chosen = choose_layers(n_layers, targets.layers, "whole_layers")
        others += [Part("layer", layer) for layer in chosen]
    if others and how.cut is not None:
        raise UsageError(
            "an MLP has no links", f"leave {option('mlps')} and {option('whole_layers')} out"
        )
    if others and not targets.heads.named:
        return others
    heads = choose_heads(heads_per_layer, targets.heads.layers, targets.heads.heads)
    return [Part("head", head.layer, head.head) for head in heads] + others


Ablations: TypeAlias = Sequence[tuple[Part, ...]]
"""What is ablated in each run."""


@dataclass(frozen=True)
class _Measuring:
    """A text, and what is done to it."""

    prepared: Prepared
    options: TextOptions
    how: Ablating

    def report(
        self,
        ablations: Ablations,
        progress: Progress | None = None,
        also: RunConsumer | None = None,
    ) -> AblationReport:
        """Run the text once for each ablation, of which the first is none."""
        if len(self.prepared.ids) < 2 and self.how.answer is None:
            raise InputError(
                "nothing follows a single token", f"give a longer text, or an {option('answer')}"
            )
        how = self.how
        question = question_of(self.prepared, self.options, how.answer, how.versus)
        consumers = [also] if also else []
        if question is None:
            return self._of_tokens(ablations, progress, consumers)
        return self._of_answer(question, ablations, progress, consumers)

    def _of_tokens(
        self, ablations: Ablations, progress: Progress | None, also: Sequence[RunConsumer]
    ) -> AblationReport:
        """The effects on all tokens that followed."""
        keep = KeepFollowed()
        self._run(ablations, [keep, *also], progress, whole=True)
        before = keep.kept[0]
        effects = [
            effect_on_tokens(parts, before, keep.kept[i])
            for i, parts in enumerate(ablations)
            if i > 0
        ]
        return AblationReport(
            capture=self.prepared.empty,
            replacement=self.how.replacement,
            baseline=float(before.mean()),
            tokens=len(before),
            effects=effects,
            cut=self._cut,
        )

    def _of_answer(
        self,
        question: Question,
        ablations: Ablations,
        progress: Progress | None,
        also: Sequence[RunConsumer],
    ) -> AblationReport:
        """The effects on an answer, alone or rather than another token."""
        keep, ends = KeepOutcomes(question.ids), _KeepLast(self.prepared, 1)
        self._run(ablations, [keep, ends, *also], progress, whole=False)
        last, before = ends.last[0], keep.kept[0]
        asked = likely(question, last)
        effects = [
            effect_on_answer(parts, before, keep.kept[i])
            for i, parts in enumerate(ablations)
            if i > 0
        ]
        return AblationReport(
            *(self.prepared.empty, self.how.replacement, before.measured, 1, effects),
            answer=asked.answer,
            versus=asked.versus,
            rank=int((last > last[asked.answer.id]).sum()) + 1,
            first=ends.of(0).candidates[0],
            cut=self._cut,
            differences=asked.versus is not None,
        )

    @property
    def _cut(self) -> LinkNames | None:
        """The links that are cut, with their number."""
        cut = self.how.cut
        return replace(cut, number=len(self._links)) if cut else None

    @cached_property
    def _links(self) -> Sequence[tuple[int, int]]:
        """The (query, key) pairs that are cut."""
        return _links(self.prepared, self.how.cut) if self.how.cut else ()

    def _run(
        self,
        ablations: Ablations,
        consumers: Sequence[RunConsumer],
        progress: Progress | None,
        *,
        whole: bool,
    ) -> None:
        """Hand each run to all consumers."""
        changes = [_changes(parts, self.how, self._links) for parts in ablations]
        intervene(self.prepared, changes, consumers, progress, whole=whole)


def _changes(
    parts: tuple[Part, ...], how: Ablating, links: Sequence[tuple[int, int]]
) -> Intervention:
    """What ablating some parts changes in a run."""
    if how.cut is not None:
        return tuple(
            CutLink(Head(part.layer or 0, part.head or 0), query, key, how.cut.renormalise)
            for part in parts
            for query, key in links
        )
    return tuple(Edit(site, how.replacement) for part in parts for site in sites_of(part))


def sites_of(part: Part) -> tuple[Site, ...]:
    """The vectors by which a part acts; those of a whole layer are two."""
    layer = part.layer or 0
    if part.kind == "layer":
        return Site("attention", layer), Site("mlp", layer)
    return (Site("mlp", layer) if part.kind == "mlp" else Site("head", layer, part.head),)


def _links(prepared: Prepared, cut: LinkNames) -> list[tuple[int, int]]:
    """The (query, key) pairs that names of links stand for, as far as the model has them."""
    empty = prepared.empty
    queries = find_positions(empty.query_tokens, [cut.query], "cut")
    keys = find_positions(empty.key_tokens, [cut.key], "cut")
    seen = empty.allowed_count()
    links = [(query, key) for query in queries for key in keys if key < seen[query]]
    if not links:
        raise UsageError(
            f"{cut.query!r} never attends to {cut.key!r}, which stands after it",
            "name a key that is not after the query",
        )
    of_query = {query: sum(q == query for q, _ in links) for query, _ in links}
    alone = [query for query, cuts in of_query.items() if cuts >= seen[query]]
    if cut.renormalise and alone:
        label = empty.query_tokens[alone[0]].label
        raise UsageError(
            f"nothing is left of the row of {label!r} to renormalise",
            f"leave {option('renormalise')} out",
        )
    return links


@dataclass
class _KeepLast:
    """Consumes runs, and keeps the logits of the first few after the last position."""

    prepared: Prepared
    top: int
    runs: int = 1
    last: dict[int, FloatArray] = field(default_factory=dict)

    def __call__(self, run: ChangedRun) -> None:
        if run.index < self.runs:
            self.last[run.index] = run.last

    def of(self, index: int) -> NextTokens:
        """What comes next in one of the runs."""
        ids = self.prepared.ids
        tokenizer = self.prepared.model.tokenizer
        keep = KeepNextTokens(ids, self.top, tokenizer.label, tokenizer.exact)
        keep(LogitRows(None, np.array([len(ids) - 1]), self.last[index][None]))
        return keep.next_tokens[0]
