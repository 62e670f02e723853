"""Which parts carry the difference between two texts? One text, run with vectors of the other.

two texts ─► tokens, aligned ─► a run for each site and position ─► outcomes ─► effects
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attnviz.commands.patch.rows import PatchedTogether, PatchReport, effect_of
from attnviz.errors import InputError, option
from attnviz.kit.intervene import (
    aligned,
    candidate,
    check_memory,
    intervene,
    named_parts,
    next_tokens_after,
    question_of,
    site_of,
)
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.capture import FloatArray
from attnviz.records.heads import choose_heads, choose_layers
from attnviz.records.positions import find_positions
from attnviz.records.predict import (
    Edit,
    Outcome,
    Question,
    Site,
    SiteKind,
    SourceRun,
    outcome_of,
)

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


SAME = 1e-4
"""Texts whose measured values are nearer than this (in logits) do not differ."""


@dataclass(frozen=True)
class Patching:
    """The sites and positions to patch, and what is measured.

    `heads`: which heads, or of other sites which layers. `mlps`: the layers whose MLPs are patched
    together with heads. `queries`: names of the positions to
    patch; none: all. `align`: words that correspond, as in `blue=red`. `answer`, `versus`: words;
    by default the likeliest token after the source and the likeliest after the text.
    """

    kind: SiteKind = "head"
    heads: HeadOptions = field(default_factory=HeadOptions)
    mlps: str | None = None
    answer: str | None = None
    versus: str | None = None
    queries: Sequence[str] = ()
    align: Sequence[str] = ()


def patch_text(
    model: "LoadedModel", text: str, source: str, options: TextOptions, how: Patching
) -> PatchReport:
    """Run a text once for each site, with the vectors that the site has in the source.

    Heads are patched at all positions at once; other sites at one position after the other.
    """
    report, _ = _report(model, text, source, options, how)
    return report


def patch_together(
    model: "LoadedModel", text: str, source: str, options: TextOptions, how: Patching, top: int
) -> PatchedTogether:
    """Run a text once, with the vectors that some heads and MLPs have in the source."""
    report, ends = _report(model, text, source, options, how, together=True)
    before, after = (next_tokens_after(ours, top, last) for ours, last in ends)
    return PatchedTogether(report, before, after)


def _report(
    model: "LoadedModel",
    text: str,
    source: str,
    options: TextOptions,
    how: Patching,
    *,
    together: bool = False,
) -> tuple[PatchReport, list[tuple[Prepared, FloatArray]]]:
    """Patch the sites one at a time, or together.

    Returns:
        the report; and the text with the logits (V) after it: as it is, and after the first patch.
    """
    model.require("predict")
    ours, theirs = prepare(model, text, options), prepare(model, source, options)
    if ours.ids == theirs.ids:
        raise InputError("the source is the text itself", "give another one")
    places = aligned(ours.empty, theirs.empty, how.align)
    positions = _positions(ours, how, places)
    patches = _patches(model, how, positions, together=together)
    sites = {edit.site._replace(head=None) for edits in patches for edit in edits}
    check_memory(theirs, len(sites))
    question, before, ends, last = _measured(ours, theirs, how)
    afters = intervene(
        ours,
        patches,
        lambda run: (outcome_of(run.last, question.ids), run.last if run.index == 0 else None),
        source=SourceRun(theirs.ids, [place or 0 for place in places]),
    )
    pairs = zip(patches, afters, strict=True)
    report = PatchReport(
        capture=ours.empty,
        source=theirs.empty,
        kind=how.kind,
        question=question,
        before=before,
        ends=ends,
        places=places,
        positions=positions,
        effects=[effect_of(edits, before, ends, at[0]) for edits, at in pairs],
        named=bool(how.queries),
    )
    return report, [(ours, each) for each in (last, afters[0][1]) if each is not None]


def _positions(prepared: Prepared, how: Patching, places: Sequence[int | None]) -> tuple[int, ...]:
    """The positions to patch: those that are named, as far as they are aligned."""
    named: Sequence[int] = range(len(places))
    if how.queries:
        named = find_positions(prepared.empty.query_tokens, list(how.queries), "queries")
    positions = tuple(position for position in named if places[position] is not None)
    if not positions:
        raise InputError(
            "none of these positions is aligned with the source",
            f"align words of both texts with {option('align', 'WORD=WORD')}",
        )
    return positions


def _measured(
    ours: Prepared, theirs: Prepared, how: Patching
) -> tuple[Question, Outcome, Outcome, FloatArray]:
    """The measurement; its predictions after the text and after the source; the text's logits."""
    last = [intervene(each, [()], lambda run: run.last)[0] for each in (ours, theirs)]
    question = question_of(ours, how.answer, how.versus)
    if question is None:  # the likeliest token after the source, and after the text
        here, there = (int(logits.argmax()) for logits in last)
        if here == there:
            raise InputError(
                f"{ours.model.tokenizer.label(here)!r} is the likeliest token after both texts",
                f"name an {option('answer')} and a {option('versus')}",
            )
        question = Question(candidate(ours, there), candidate(ours, here))
    before, ends = (outcome_of(logits, question.ids) for logits in last)
    if not abs(ends.measured - before.measured) >= SAME:
        raise InputError(
            "the model predicts the answer equally after both texts",
            "choose another answer, or another source",
        )
    return question.likely(last[0]), before, ends, last[0]


def _patches(
    model: "LoadedModel", how: Patching, positions: tuple[int, ...], *, together: bool
) -> list[tuple[Edit, ...]]:
    """The changes of each run: a head at all positions, or a layer at one; or all together."""
    if together:
        parts = named_parts(model, how.heads, how.mlps)
        return [tuple(Edit(site_of(part), "source", positions) for part in parts)]
    heads_per_layer, heads = model.identity.heads_per_layer, how.heads
    if how.kind == "head":
        chosen = choose_heads(heads_per_layer, heads.layers, heads.heads)
        return [
            (Edit(Site("head", each.layer, each.head), "source", positions),) for each in chosen
        ]
    layers = choose_layers(len(heads_per_layer), heads.layers or "all", "layers")
    sites = [Site(how.kind, n) for n in layers if how.kind != "attention" or heads_per_layer[n]]
    return [(Edit(site, "source", (position,)),) for site in sites for position in positions]
