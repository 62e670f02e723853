"""Does a part of a model matter? What the model predicts without it.

text ─► tokens ─► a run for each intervention ─► log-probabilities or an outcome ─► effects
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.commands.ablate.record import (
    AblationReport,
    BeforeAfter,
    LinkNames,
    effect_of,
)
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.intervene import intervene, next_tokens_after, question_of
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head, choose_heads, choose_layers
from attnviz.records.parts import Part
from attnviz.records.positions import find_positions
from attnviz.records.predict import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Outcome,
    Replacement,
    Site,
    SiteKind,
    outcome_of,
)

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Ablating:
    """The parts to ablate, as users name them; how; and what is measured.

    `mlps`, `layers`: the MLPs of layers, and whole layers; without `heads` these alone, or, where
    nothing is named, every head. `cut`: the links to remove, in place of the heads' outputs.
    Without `answer`, every token that follows is measured; with it, that word after the text, alone
    or rather than `versus`.
    """

    heads: HeadOptions = field(default_factory=HeadOptions)
    mlps: str | None = None
    layers: str | None = None
    replacement: Replacement = "zero"
    cut: LinkNames | None = None
    answer: str | None = None
    versus: str | None = None


def ablate_each(
    model: "LoadedModel", text: str, options: TextOptions, how: Ablating
) -> AblationReport:
    """Ablate one part at a time."""
    prepared = _prepared(model, text, options, how)
    parts = _chosen(prepared, how)
    report, _ = _report(prepared, how, [(part,) for part in parts])
    return report


def ablate_together(
    model: "LoadedModel", text: str, options: TextOptions, how: Ablating, top: int
) -> BeforeAfter:
    """Ablate some parts at once."""
    prepared = _prepared(model, text, options, how)
    parts = tuple(_chosen(prepared, how))
    report, ends = _report(prepared, how, [parts])
    before, after = (next_tokens_after(prepared, top, last) for last in ends)
    return BeforeAfter(report, before, after)


def _prepared(model: "LoadedModel", text: str, options: TextOptions, how: Ablating) -> Prepared:
    model.require("predict")
    prepared = prepare(model, text, options)
    if len(prepared.ids) < 2 and how.answer is None:
        raise InputError(
            "nothing follows a single token", f"give a longer text, or an {option('answer')}"
        )
    return prepared


def _chosen(prepared: Prepared, how: Ablating) -> list[Part]:
    """The parts that are named; all heads where none is."""
    heads_per_layer = prepared.model.identity.heads_per_layer
    n_layers, others = len(heads_per_layer), list[Part]()
    if how.mlps is not None:
        others += [Part("mlp", layer) for layer in choose_layers(n_layers, how.mlps, "mlps")]
    if how.layers is not None:
        chosen = choose_layers(n_layers, how.layers, "whole_layers")
        others += [Part("layer", layer) for layer in chosen]
    if others and how.cut is not None:
        raise UsageError(
            "an MLP has no links", f"leave {option('mlps')} and {option('whole_layers')} out"
        )
    if others and not how.heads.named:
        return others
    heads = choose_heads(heads_per_layer, how.heads.layers, how.heads.heads)
    return [Part("head", head.layer, head.head) for head in heads] + others


def _report(
    prepared: Prepared, how: Ablating, ablations: Sequence[tuple[Part, ...]]
) -> tuple[AblationReport, list[FloatArray]]:
    """Run the text as it is, then once for each ablation, and compare.

    Returns:
        the report, and the logits (V) after the text: as it is, and after the first ablation.
    """
    question = question_of(prepared, how.answer, how.versus)
    links = _links(prepared, how.cut) if how.cut else ()
    ends = dict[int, FloatArray]()

    def keep(run: ChangedRun) -> tuple[NDArray[np.float64], Outcome | None]:
        if run.index < 2:
            ends[run.index] = run.last
        if question is None:
            return run.followed.astype(np.float64), None
        outcome = outcome_of(run.last, question.ids)
        return np.array([outcome.measured]), outcome

    changes = [(), *(_changes(parts, how, links) for parts in ablations)]
    (before, outcome), *runs = intervene(prepared, changes, keep, whole=question is None)
    effects = [
        effect_of(parts, before, after, own.less(outcome) if own and outcome else None)
        for parts, (after, own) in zip(ablations, runs, strict=True)
    ]
    last = ends[0]
    report = AblationReport(
        capture=prepared.empty,
        replacement=how.replacement,
        baseline=float(before.mean()),
        tokens=len(before),
        effects=effects,
        question=question and question.likely(last),
        rank=int((last > last[question.answer.id]).sum()) + 1 if question else None,
        first=next_tokens_after(prepared, 1, last).candidates[0] if question else None,
        cut=how.cut and replace(how.cut, number=len(links)),
    )
    return report, [ends[i] for i in sorted(ends)]


SITES: Mapping[str, tuple[SiteKind, ...]] = MappingProxyType(
    {"head": ("head",), "mlp": ("mlp",), "layer": ("attention", "mlp")}
)
"""The vectors by which a part acts; those of a whole layer are two."""


def _changes(
    parts: tuple[Part, ...], how: Ablating, links: Sequence[tuple[int, int]]
) -> Intervention:
    """The changes to a run that ablate some parts."""
    changes = list[Edit | CutLink]()
    for part in parts:
        head = Head(part.layer or 0, part.head or 0)
        if how.cut is not None:
            changes += [CutLink(head, query, key, how.cut.renormalise) for query, key in links]
        else:
            sites = [Site(kind, head.layer, part.head) for kind in SITES[part.kind]]
            changes += [Edit(site, how.replacement) for site in sites]
    return tuple(changes)


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
