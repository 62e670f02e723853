"""Find the parts that carry the difference between two texts: run one with vectors of the other.

two texts ─► tokens, aligned ─► a run for each site and position ─► outcomes ─► effects
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from attnviz.commands.patch.record import PatchedTogether, PatchEffect, PatchReport, effect_of
from attnviz.errors import InputError, UsageError, option
from attnviz.kit.intervene import (
    SAME,
    K,
    check_memory,
    intervene,
    named_parts,
    next_tokens_after,
    patch_paths,
    question_of,
    site_of,
    source_of,
    told_apart,
)
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.capture import FloatArray
from attnviz.records.heads import choose_heads, choose_layers
from attnviz.records.interventions import ChangedRun, Edit, Intervention, Site, SiteKind, SourceRun
from attnviz.records.paths import LETTERS, LOGITS, MlpsOnPaths, Paths, Receiver, SlopeOf
from attnviz.records.places import GivenBeside
from attnviz.records.positions import find_positions
from attnviz.records.predict import Outcome, Question, outcome_of

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Patching:
    """The sites and positions to patch, and the words to measure.

    `heads`: which heads, or of other sites which layers. `mlps`: the layers whose MLPs are patched
    together with heads. `queries`: names of the positions to patch; none: all. `align`: words that
    correspond, as in `blue=red`. `answer`, `versus`: words; by default the likeliest token after
    the source and the likeliest after the text. `given`: what the source has beside it, where that
    is other than the text's. `to`: names of receivers; none: all that reads the vectors;
    `path_mlps`: as in `Paths`. `fast`: effects to first order; `check`: the exact ones
    beside them.
    """

    kind: SiteKind = "head"
    heads: HeadOptions = field(default_factory=HeadOptions)
    mlps: str | None = None
    answer: str | None = None
    versus: str | None = None
    queries: Sequence[str] = ()
    align: Sequence[str] = ()
    given: tuple[GivenBeside, ...] = ()
    to: Sequence[str] = ()
    path_mlps: MlpsOnPaths = "recompute"
    fast: bool = False
    check: bool = False

    @property
    def by(self) -> Literal["source", "given"]:
        """Where vectors come from: a run beside the text's, or one that is given something else."""
        return "given" if self.given else "source"


class _Measured(NamedTuple):
    """The measurement, and its predictions after the text and after the source."""

    question: Question
    before: Outcome
    ends: Outcome


@dataclass(frozen=True)
class _Task:
    """Two texts that fit the model, aligned as in `PatchReport`."""

    ours: Prepared
    theirs: Prepared
    source: SourceRun
    how: Patching
    places: tuple[int | None, ...]
    positions: tuple[int, ...]
    receivers: tuple[Receiver, ...]

    def ends(self) -> list[FloatArray]:
        """The logits (V) after the text and after the source."""
        return [intervene(each, [()], lambda run: run.last)[0] for each in (self.ours, self.theirs)]

    def changed(self, edits: Sequence[Intervention], keep: Callable[[ChangedRun], K]) -> list[K]:
        """The part that `keep` takes from the run of each."""
        given = dict[Site, FloatArray]()
        if self.how.given:
            sites = {edit.site for each in edits for edit in each if isinstance(edit, Edit)}
            vectors = self.theirs.model.site_vectors(self.theirs.ids, sites)
            given = {site: of[list(self.source.places)] for site, of in vectors.items()}
        return intervene(self.ours, edits, keep, source=self.source, given=given)

    def effects(self, edits: Sequence[Edit], measured: _Measured) -> list[PatchEffect]:
        """The effect of each edit alone, on each receiver if there are any."""
        question, before, ends = measured
        if self.receivers:
            paths = Paths(edits, self.receivers, self.source, self.how.path_mlps)
            along = patch_paths(self.ours, paths, lambda last: outcome_of(last, question.ids))
            return [
                replace(effect_of([edit], before, ends, along[i, to]), position=None, receiver=to)
                for i, edit in enumerate(edits)
                for to in self.receivers
                if (i, to) in along
            ]
        changes = [(edit,) for edit in edits]
        after = self.changed(changes, lambda run: outcome_of(run.last, question.ids))
        pairs = zip(edits, after, strict=True)
        return [effect_of([edit], before, ends, outcome) for edit, outcome in pairs]

    def estimates(self, edits: Sequence[Edit]) -> tuple[_Measured, list[PatchEffect]]:
        """The measurement, and the effects to first order, by two runs and a gradient.

        The changes of the two tokens are not told apart.
        """
        model, (n, _), identity = self.ours.model, self.ours.shape, self.ours.model.identity
        native = identity.engine == "native"  # another engine's matrices are in its estimate
        kept = GRAPH * n * n * sum(identity.heads_per_layer) if native else 0
        layers = len(identity.heads_per_layer) * model.working_bytes(n, n)
        self.ours.budget.check(kept + layers, "shorten the text")
        kinds = list(dict.fromkeys(edit.site[:2] for edit in edits))
        direct = self.how.path_mlps if self.receivers else None
        asked = partial(_measured, self.ours, self.how)
        ends = self.receivers or (LOGITS,)
        slope_of = SlopeOf(
            kinds, self.source, lambda *last: asked(*last).question.ids, direct, ends
        )
        found = model.first_order(self.ours.ids, slope_of)
        measured, effects = asked(found.before, found.ends), list[PatchEffect]()
        before = measured.before
        for edit, to in ((edit, to) for edit in edits for to in ends if to.follows(edit.site)):
            change = found.of(edit, to)
            after = before._replace(
                answer_logit=before.answer_logit + change,
                answer_log_probability=before.answer_log_probability + change,
            )
            effect = replace(effect_of([edit], before, measured.ends, after), own=None)
            effects.append(
                replace(effect, position=None, receiver=to) if self.receivers else effect
            )
        return measured, effects

    def report(self, measured: _Measured, effects: Sequence[PatchEffect]) -> PatchReport:
        number = len(self.positions)
        return PatchReport(
            capture=self.ours.empty,
            source=self.theirs.empty,
            kind=self.how.kind,
            **measured._asdict(),
            places=self.places,
            positions=self.positions,
            patched=None if number == len(self.places) else (number, number),
            effects=effects,
            named=bool(self.how.queries),
            receivers=self.receivers,
            path_mlps=self.how.path_mlps,
            fast=self.how.fast,
        )


def patch_text(
    model: "LoadedModel", text: str, source: str, options: TextOptions, how: Patching
) -> PatchReport:
    """Run a text once for each site, with the vectors that the site has in the source.

    Heads are patched at all positions at once, and senders of paths, too; other sites at one
    position after the other.
    """
    task = _task(model, text, source, options, how)
    heads_per_layer, heads = model.identity.heads_per_layer, how.heads
    if how.kind == "head":
        chosen = choose_heads(heads_per_layer, heads.layers, heads.heads)
        sites = [Site("head", each.layer, each.head) for each in chosen]
    else:
        layers = choose_layers(len(heads_per_layer), heads.layers or "all", "layers")
        sites = [Site(how.kind, n) for n in layers if how.kind != "attention" or heads_per_layer[n]]
    whole = how.to or how.kind == "head"
    each = [task.positions] if whole else [(position,) for position in task.positions]
    edits = [Edit(site, how.by, places) for site in sites for places in each]
    _check_senders(edits, task.receivers, len(task.places))
    check_memory(task.theirs, sites)
    if not how.fast:
        here, there = task.ends()
        measured = _measured(task.ours, how, here, there)
        return task.report(measured, task.effects(edits, measured))
    measured, effects = task.estimates(edits)
    if how.check:
        pairs = zip(effects, task.effects(edits, measured), strict=True)
        effects = [replace(each, exact=exact.change) for each, exact in pairs]
    return task.report(measured, effects)


def patch_together(
    model: "LoadedModel", text: str, source: str, options: TextOptions, how: Patching, top: int
) -> PatchedTogether:
    """Run a text once, with the vectors that some heads and MLPs have in the source."""
    task = _task(model, text, source, options, how)
    parts = named_parts(model, how.heads, how.mlps)
    edits = tuple(Edit(site_of(part), how.by, task.positions) for part in parts)
    check_memory(task.theirs, [edit.site for edit in edits])
    before, ends = task.ends()
    measured = _measured(task.ours, how, before, ends)
    (after,) = task.changed([edits], lambda run: run.last)
    outcome = outcome_of(after, measured.question.ids)
    effect = effect_of(edits, measured.before, measured.ends, outcome)
    report = task.report(measured, [effect])
    likeliest = [next_tokens_after(task.ours, top, last) for last in (before, after)]
    return PatchedTogether(report, before=likeliest[0], after=likeliest[1])


def _task(
    model: "LoadedModel", text: str, source: str, options: TextOptions, how: Patching
) -> _Task:
    """Both texts, and the positions to patch: those that are named, as far as they are aligned."""
    model.require("predict")
    receivers = receivers_of(how.to, model.identity.heads_per_layer)
    ours = prepare(model, text, options)
    theirs, run, places = source_of(ours, source, how.align, how.given)
    named: Sequence[int] = range(len(places))
    if how.queries:
        named = find_positions(ours.empty.query_tokens, list(how.queries), "queries")
    positions = tuple(position for position in named if places[position] is not None)
    if not positions:
        raise InputError(
            "none of these positions is aligned with the source",
            f"align words of both texts with {option('align', 'WORD=WORD')}",
        )
    return _Task(ours, theirs, run, how, places, positions, receivers)


def _measured(ours: Prepared, how: Patching, here: FloatArray, there: FloatArray) -> _Measured:
    """The measurement; `here`, `there`: the logits (V) after the text and after the source."""
    question = question_of(ours, how.answer, how.versus)
    if question is None:  # the likeliest token after the source, and after the text
        question = told_apart(ours, int(there.argmax()), int(here.argmax()))
    before, ends = (outcome_of(logits, question.ids) for logits in (here, there))
    if not abs(ends.measured - before.measured) >= SAME:
        raise InputError(
            "the model predicts the answer equally after both texts",
            "choose another answer, or another source",
        )
    return _Measured(question.likely(here), before, ends)


GRAPH = 16
"""Bytes of a weight that stay until a gradient is known."""


def _check_senders(edits: Sequence[Edit], receivers: Sequence[Receiver], n: int) -> None:
    """Check that every receiver has a sender before it, in a text of n tokens.

    Raises:
        UsageError: nothing does.
    """
    if LOGITS in receivers and n - 1 not in (edits[0].positions or ()):
        raise UsageError(
            "the logits directly read only the last token, which is not patched",
            f"patch it as well, as with {option('queries', '-1')}, or leave {option('to', LOGITS)} "
            "out",
        )
    for to in receivers:
        if not any(to.follows(edit.site) for edit in edits):
            raise UsageError(
                f"nothing that is patched comes before {to}",
                f"name a later part with {option('to')}",
            )


def receivers_of(names: Sequence[str], heads_per_layer: Sequence[int]) -> tuple[Receiver, ...]:
    """The receivers that names stand for, each once: `logits`, `L9H6.q`, `L3.mlp`.

    `L9H6` alone: its queries, its keys and its values.

    Raises:
        UsageError: a name cannot be read, or is of no part of this model.
    """
    each = [part for name in names for part in name.split(",")]
    found = [to for name in each for to in _receivers(name, heads_per_layer)]
    return tuple(dict.fromkeys(found))


NAME = re.compile(
    r"\s*(?:(?P<logits>logits)|L?(?P<mlp>\d{1,9})\.mlp"
    r"|L?(?P<layer>\d{1,9})[H.](?P<head>\d{1,9})(?:\.(?P<letter>[qkv]))?)\s*",
    re.IGNORECASE,
)


def _receivers(name: str, heads_per_layer: Sequence[int]) -> list[Receiver]:
    found, given = NAME.fullmatch(name), option("to", name)
    if found is None:
        raise UsageError(
            f"{option('to', repr(name))} cannot be read",
            "give logits, a head's q, k or v (L4H0.q), or an MLP (L3.mlp)",
        )
    if found["logits"]:
        return [LOGITS]
    layer = int(found["mlp"] or found["layer"])
    if layer >= len(heads_per_layer):
        known = f"this model's layers are 0 to {len(heads_per_layer) - 1}"
        raise UsageError(f"there is no layer {layer} (in {given})", known)
    if found["mlp"]:
        return [Receiver(layer)]
    head = int(found["head"])
    if head >= heads_per_layer[layer]:
        known = f"layer {layer} has heads 0 to {heads_per_layer[layer] - 1}"
        raise UsageError(f"there is no head {head} (in {given})", known)
    letters = (found["letter"] or "qkv").lower()
    return [Receiver(layer, head, letter) for letter in LETTERS if letter in letters]
