"""A text, or a saved capture, to an exhibit: which heads, rows and columns are shown.

    text ─► tokens ─► heads ─► run ─► what is kept ─► transforms ─► exhibit

No more is kept than the output needs. For a text too long to keep its patterns in full, the heads
are picked first; then a run keeps only what is needed of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from attnviz.commands.show.outputs import OutputRequest, Setting, Show, choose_output, for_signed
from attnviz.console import Display
from attnviz.draw.titles import run_notes
from attnviz.kit.budget import LINK_BYTES, PICTURE_BYTES
from attnviz.kit.choose import (
    FindTellingHead,
    HeadPlan,
    found,
    plan_capture,
    plan_heads,
    told_query,
)
from attnviz.kit.formats import Piece
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.apply import EVERYTHING, distances_of, exhibit_of, keys_of, queries_of
from attnviz.records.capture import Capture, PatternBlock
from attnviz.records.exhibit import Choice, Exhibit, KeepCells, KeepLinks, Look
from attnviz.records.heads import Head
from attnviz.records.transforms import PLAIN

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


HEAVY = 50_000_000
"""Writing this many weights takes ten seconds and more."""


@dataclass(frozen=True)
class Written:
    """A written exhibit; `notes` are sentences for stderr.

    `strange`: the model has not seen texts like it; `merged`: parts of characters were merged
    although nobody asked for it. Both are said once for many lines.
    """

    pieces: Iterable[Piece]
    choice: Choice | None
    notes: tuple[str, ...] = ()
    strange: bool = False
    merged: bool = False


def show_capture(captured: Capture, show: Show) -> Exhibit:
    """Put heads of a saved capture on show."""
    choice = plan_capture(captured, show.heads).pick(captured)
    show = _legible(show, captured)
    return _exhibit(captured.only(choice.heads), choice, show)


def show_text(model: "LoadedModel", text: str, options: TextOptions, show: Show) -> Exhibit:
    """Run a text, and put its heads on show: whole, or as much as is needed of them."""
    prepared = prepare(model, text, options)
    plan = plan_heads(model.identity, model.card.heads, show.heads)
    plan = _pick_before(prepared, plan)
    if prepared.budget.holds_whole(plan.choice.heads if plan.choice else plan.recorded):
        show = _legible(show, prepared.empty)
    if plan.choice is not None:
        return _show_heads(prepared, plan.choice, show)
    captured = _recorded(prepared, plan.recorded)
    choice = plan.pick(captured)
    if show.transforms.scores:
        captured = _recorded(prepared, choice.heads, scores=True)
    captured = captured.only(choice.heads)
    return _exhibit(_with_norms(prepared, captured, show), choice, show)


def _legible(show: Show, captured: Capture) -> Show:
    """Merge tokens that are parts of one character, unless an option says whether to.

    They stay apart where one of them is named, or where scores are shown, which are unchanged.
    """
    transforms, filters = show.transforms, show.filters
    parts = {t.label for t in (*captured.query_tokens, *captured.key_tokens) if t.part}
    named = parts.intersection((*filters.queries, *filters.keys, *transforms.drop_keys))
    settled = transforms.chars is not None or transforms.words or transforms.scores
    if not show.legible or settled or captured.signed or named or not parts:
        return show
    return replace(show, transforms=replace(transforms, chars=True), unasked=True)


def _show_heads(prepared: Prepared, choice: Choice, show: Show) -> Exhibit:
    """Run a text for heads that are known before anything is kept."""
    if show.needs.page and not show.transforms.any:
        from attnviz.commands.show.page import check_page

        check_page(prepared.empty, len(choice.heads))
    heads, keep = choice.heads, _reducing(prepared, choice.heads, show)
    rows = _rows(prepared, show)
    if keep is None:
        captured = _recorded(prepared, heads, rows, scores=show.transforms.scores)
        return _exhibit(_with_norms(prepared, captured, show), choice, show)
    links = prepared.shape[0] * (show.needs.links or 0) * LINK_BYTES
    prepared.budget.check_patterns(heads, len(heads) * (links or PICTURE_BYTES))
    n_queries, n_keys = prepared.shape
    strongest = KeepLinks(n_queries, range(n_keys), prepared.empty.causal, 1, 0.0)

    def consume(block: PatternBlock) -> None:
        keep(block)
        if choice.picked:
            strongest(block)

    prepared.run(heads, consume, rows)
    shown = replace(_exhibit(prepared.empty, choice, show), maps=keep.maps())
    if isinstance(keep, KeepCells) and choice.picked:
        finding = found(replace(shown, maps=strongest.maps()), heads[0]).finding
        return replace(shown, finding=finding)
    return found(shown, heads[0])


def _recorded(
    prepared: Prepared,
    heads: Sequence[Head],
    rows: tuple[int, ...] | None = None,
    *,
    scores: bool = False,
) -> Capture:
    keep = prepared.keeping(heads, rows)
    prepared.run(heads, keep, rows, scores=scores)
    return replace(prepared.blank(scores=scores), layers=keep.layers())


def _exhibit(captured: Capture, choice: Choice, show: Show) -> Exhibit:
    exhibit = exhibit_of(
        captured, show.kept or choice, show.transforms, show.filters, one_query=show.needs.one_query
    )
    exhibit = replace(exhibit, unasked=show.unasked)
    if show.needs.one_query and not show.filters.queries:
        every = tuple(range(len(exhibit.capture.query_tokens)))
        query = told_query(found(replace(exhibit, queries=every), choice.heads[0]).finding)
        exhibit = exhibit if query is None else replace(exhibit, queries=(query,))
    if show.needs.page and exhibit.capture.transforms != captured.transforms:
        exhibit = replace(exhibit, origin=captured)
    return found(exhibit, choice.heads[0])


def _rows(prepared: Prepared, show: Show) -> tuple[int, ...] | None:
    """The query rows that have to be recorded; None for all.

    Merged tokens have other positions, and a layer's rollout takes every row of the one before.
    """
    some = show.needs.one_query or show.filters.queries
    if not some or show.transforms.merge or show.transforms.rollout:
        return None
    tokens = prepared.empty.query_tokens
    return queries_of(tokens, show.filters, one_query=show.needs.one_query)


def _with_norms(prepared: Prepared, captured: Capture, show: Show) -> Capture:
    needed = show.transforms.weighted or show.needs.norms
    return prepared.with_norms(captured) if needed else captured


def _pick_before(prepared: Prepared, plan: HeadPlan) -> HeadPlan:
    """Pick the head by its generic score, in a run of its own, where patterns are too large."""
    heads = plan.recorded
    if plan.choice or prepared.budget.holds_whole(heads):
        return plan
    find = FindTellingHead(causal=prepared.empty.causal)
    prepared.budget.check_patterns(heads, 0)
    prepared.run(heads, find)
    return HeadPlan(heads, Choice((find.highest(),), "generic"))


def _reducing(
    prepared: Prepared, heads: Sequence[Head], show: Show
) -> KeepLinks | KeepCells | None:
    """The consumer that keeps only what is needed; None where everything is kept."""
    needs, filters, empty = show.needs, show.filters, prepared.empty
    if show.transforms.any or prepared.budget.holds_whole(heads):
        return None
    keys, skip = keys_of(empty.key_tokens, filters), distances_of(empty, filters)
    if needs.links is not None:
        return KeepLinks(prepared.shape[0], keys, empty.causal, needs.links, filters.least, skip)
    if needs.cells is not None and filters.top is None and filters.least <= 0 and not skip:
        queries = queries_of(empty.query_tokens, filters, one_query=needs.one_query)
        most = needs.cells(heads, (len(queries), len(keys)))
        if max(len(queries), len(keys)) > most:
            return KeepCells(queries, keys, empty.causal, most)
    return None


def make(exhibit: Exhibit, setting: Setting) -> Written:
    """Render an exhibit, or write it, for its setting."""
    request, look, captured = setting.request, setting.request.look, exhibit.capture
    output = for_signed(setting.output, look.view, signed=captured.signed)
    maker, notes, strange = output.load(), run_notes(captured), captured.strange
    if output.medium == "terminal":
        from attnviz.draw.terminal.around import line_heading

        turned = {"orient": look.orient or "query-rows"} if output.turns else {}
        above = [] if setting.line is None else [line_heading(setting.line, first=setting.first)]
        shown = chain(above, maker(exhibit, request.display, **turned))
        return Written(shown, exhibit.choice, notes, strange, exhibit.unasked)
    if output.medium == "file":
        weights = len(exhibit.maps) * int(captured.allowed_count().sum())
        if output.every_head and weights >= HEAVY:
            notes += (f"this file holds {weights:,} weights, and takes a while to write",)
        return Written(maker(exhibit, setting), exhibit.choice, notes, strange)
    from attnviz.draw.picture.canvas import figure_bytes
    from attnviz.draw.picture.paint import options_of

    options = options_of(look, look.orient, by_row=exhibit.by_row)
    drawn = maker(exhibit, options)
    content = figure_bytes(drawn.figure, request.format, options.dpi)
    return Written([content], exhibit.choice, (*notes, *drawn.notes), strange, exhibit.unasked)


def pieces_of(exhibit: Exhibit, format: str) -> Iterable[Piece]:
    """An exhibit in a format, without any option."""
    heads = HeadOptions(everything=True)
    request = OutputRequest(format, Look(), heads, PLAIN, EVERYTHING, Display())
    return make(exhibit, Setting(choose_output(request), request)).pieces
