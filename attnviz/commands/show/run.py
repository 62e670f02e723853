"""A text, or a saved capture, to an exhibit: which heads, rows and columns are shown.

    text ─► tokens ─► heads ─► run ─► what is kept ─► transforms ─► exhibit

No more is kept than the output needs. For a text too long to keep its patterns in full, the heads
are picked first; then a run keeps only what is needed of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

from attnviz.commands.show.outputs import OutputRequest, Show, choose_output, over_images
from attnviz.console import Display, plain_text
from attnviz.draw.headlines import beside_notes
from attnviz.draw.titles import amount
from attnviz.errors import IdleOption, UsageError, option
from attnviz.kit.bringing import pick_before, with_bringing, with_links
from attnviz.kit.choose import (
    MOST_KEYS,
    first_query,
    keys_off_rests,
    plan_capture,
    plan_heads,
    with_finding,
)
from attnviz.kit.prepare import LINK_BYTES, PICTURE_BYTES, Prepared, TextOptions, prepare
from attnviz.kit.result import notes_of
from attnviz.kit.write import Piece, choose_format, encoded, write_bytes
from attnviz.records.apply import distances_of, exhibit_of, keys_of, queries_of, with_wholes
from attnviz.records.capture import Capture, PatternBlock
from attnviz.records.exhibit import Choice, Exhibit, KeepCells, KeepLinks, Look
from attnviz.records.heads import Head
from attnviz.records.means import relative_to
from attnviz.records.merging import wholes_shown
from attnviz.records.rests import with_rests
from attnviz.records.rows import ColumnArray, Row, made_to_dict
from attnviz.records.transforms import Additions, Relative

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn
    from attnviz.models.loaded import LoadedModel


HEAVY = 50_000_000
"""Writing this many weights takes ten seconds and more."""


def show_capture(captured: Capture, show: Show) -> Exhibit:
    """Put heads of a saved capture on show."""
    choice = plan_capture(captured, show.heads).pick(captured)
    show = _legible(show, captured)
    return _exhibit(captured.only(choice.heads), choice, show)


def show_text(model: "LoadedModel", text: str, options: TextOptions, show: Show) -> Exhibit:
    """Run a text, and put its heads on show: whole, or as much as is needed of them."""
    prepared = prepare(model, text, replace(options, matched=True)).with_gates()
    model = prepared.model
    if prepared.empty.transformed_by(Additions):
        from attnviz.commands.show.images import plan_additions

        plan = plan_additions(model.identity, show)
        return _exhibit(prepared.record(plan.recorded), Choice(plan.recorded), show)
    if show.heads.of_sets:
        from attnviz.kit.sets import with_names

        show = replace(show, heads=with_names(model, show.heads, options.max_memory))
    plan = plan_heads(model.identity, model.card.heads, show.heads)
    prepared, plan = pick_before(prepared, plan)
    whole = prepared.budget.holds_whole(plan.choice.heads if plan.choice else plan.recorded)
    if whole or show.needs.page:  # which keeps everything
        show = _legible(show, prepared.empty)
    if plan.choice is not None:
        return _show_heads(prepared, plan.choice, show)
    captured = with_links(prepared, prepared.record(plan.recorded))
    choice = plan.pick(captured)
    if show.transforms.scores or show.transforms.contribution:
        shown, extras = _recorded(prepared, choice.heads, show), captured.extras
        captured = replace(shown, brings=captured.brings, extras={**extras, **shown.extras})
    captured = _relative(prepared, captured.only(choice.heads), show)
    return _exhibit(_with_norms(prepared, captured, show), choice, show)


def _recorded(
    prepared: Prepared, heads: Sequence[Head], show: Show, rows: tuple[int, ...] | None = None
) -> Capture:
    """The weights of these heads, or what is to be shown in their place."""
    asked = show.transforms
    return prepared.record(heads, rows, scores=asked.scores, contributions=asked.contribution)


def _legible(show: Show, captured: Capture) -> Show:
    """Merge parts of one character, or of another whole, unless an option forbids it.

    They stay apart where one is named, for scores, and where there is no text: there only the rows
    of patches are merged.
    """
    transforms, filters = show.transforms, show.filters
    if captured.image_alone:
        if transforms.merge or (show.needs.one_query and not show.needs.text):
            name, value = (transforms.merge, None) if transforms.merge else ("view", "text")
            raise IdleOption(f"{option(name, value)} is about a text, and there is none")
        signed = captured.signed or transforms.scores
        mean = show.needs.mean_patches and not (filters.queries or signed)
        return replace(show, transforms=replace(transforms, mean_patches=mean))
    chosen = (*filters.queries, *filters.keys, *transforms.drop_keys)
    if not (captured.signed or transforms.scores):
        bins = show.bins and transforms.chars is not False
        units = wholes_shown(captured, chosen, legible=show.legible, bins=bins)
        transforms = replace(transforms, units=units)
        show = replace(show, transforms=transforms)
    parts = {t.label for t in (*captured.query_tokens, *captured.key_tokens) if t.part}
    named = parts.intersection(chosen)
    settled = transforms.chars is not None or transforms.words or transforms.scores
    if not show.legible or settled or captured.signed or named or not parts:
        return show
    return replace(show, transforms=replace(transforms, chars=True), unasked=True)


def _show_heads(prepared: Prepared, choice: Choice, show: Show) -> Exhibit:
    """Run a text for heads that are known before anything is kept."""
    if show.needs.page and not show.transforms.any:
        from attnviz.commands.show.page import check_page

        check_page(prepared.empty, len(choice.heads))
    if show.needs.links is not None and show.kept is not None and show.kept.off_rests:
        prepared, _ = with_bringing(prepared)  # of each line what comes next
    heads, keep = choice.heads, _reducing(prepared, choice.heads, show)
    rows = _rows(prepared, show)
    if keep is None:
        rows = None if _sets_rests_apart(prepared.empty, show) else rows
        captured = _relative(prepared, _recorded(prepared, heads, show, rows), show)
        captured = with_links(prepared, captured) if show.needs.choice else captured
        return _exhibit(_with_norms(prepared, captured, show), choice, show)
    links = prepared.shape[0] * (show.needs.links or 0) * LINK_BYTES
    prepared.budget.check_patterns(heads, len(heads) * (links or PICTURE_BYTES))
    n_queries, n_keys = prepared.shape
    told: Sequence[int] = range(n_keys)
    most = 1
    if choice.off_rests:
        told, most = keys_off_rests(prepared.empty, heads[0], told), MOST_KEYS
    strongest = KeepLinks(n_queries, told, prepared.empty.causal, most, 0.0)

    def consume(block: PatternBlock) -> None:
        keep(block)
        if choice.picked:
            strongest(block)

    prepared.run(heads, consume, rows)
    shown = replace(_exhibit(prepared.empty, choice, show), maps=keep.maps())
    if choice.off_rests or (isinstance(keep, KeepCells) and choice.picked):
        finding = with_finding(replace(shown, maps=strongest.maps()), heads[0]).finding
        return replace(shown, finding=finding)
    return with_finding(shown, heads[0])


def _exhibit(captured: Capture, choice: Choice, show: Show) -> Exhibit:
    exhibit = exhibit_of(
        captured, show.kept or choice, show.transforms, show.filters, one_query=show.needs.one_query
    )
    if captured.transformed_by(Additions):
        from attnviz.commands.show.images import added_up

        return added_up(exhibit, choice)
    exhibit = replace(exhibit, unasked=show.unasked)
    if captured.transformed_by(Relative):  # of text there is no ratio
        tokens = exhibit.capture.key_tokens
        of_images = tuple(key for key in exhibit.keys if tokens[key].inset)
        exhibit = replace(exhibit, keys=of_images)
    alone = exhibit.capture.image_alone and not show.filters.queries
    if alone and show.needs.text:  # what is drawn is chosen there
        exhibit = replace(exhibit, queries=tuple(range(len(exhibit.capture.query_tokens))))
    elif show.needs.one_query and not show.filters.queries:
        every = tuple(range(len(exhibit.capture.query_tokens)))
        query = first_query(with_finding(replace(exhibit, queries=every), choice.heads[0]).finding)
        exhibit = exhibit if query is None else replace(exhibit, queries=(query,))
    if show.needs.page and exhibit.capture.transforms != captured.transforms:
        exhibit = replace(exhibit, origin=captured)
    if captured.images:
        from attnviz.commands.show.images import on_images

        share = None if captured.beside else on_images(captured, exhibit, show)
        exhibit = replace(exhibit, on_images=share, beside=captured.beside)
    return with_finding(exhibit, choice.heads[0])


def _relative(prepared: Prepared, captured: Capture, show: Show) -> Capture:
    """The capture beside that of the neutral prompt, if there is one."""
    prompt = show.transforms.relative
    if prompt is None:
        return captured
    if not captured.images:
        raise UsageError(f"{option('relative')} is for images", f"give an {option('image')}")
    neutral = prepare(prepared.model, prompt, prepared.options)
    rows = (neutral.shape[0] - 1,)
    return relative_to(captured, neutral.record(captured.heads, rows), prompt)


def _rows(prepared: Prepared, show: Show) -> tuple[int, ...] | None:
    """The query rows that have to be recorded; None for all.

    Merged tokens have other positions, a row of merged frames is their mean, a layer's rollout
    takes every row of the one before, and rests are found from all rows.
    """
    some, asked = show.needs.one_query or show.filters.queries, show.transforms
    frames = "frames" in asked.units and prepared.empty.one_sequence
    if not some or frames or asked.merge or asked.rollout or asked.mean_patches or asked.drop_sink:
        return None
    tokens = prepared.empty.query_tokens
    rows = queries_of(tokens, show.filters, one_query=show.needs.one_query)
    if not (prepared.empty.images and (show.needs.text or show.legible)):
        return rows  # with images all rows of text are needed, as they tell sinks
    return tuple(i for i, token in enumerate(tokens) if not token.inset or i in rows)


def _with_norms(prepared: Prepared, captured: Capture, show: Show) -> Capture:
    needed = show.transforms.weighted or show.needs.norms
    captured = prepared.with_norms(captured) if needed else captured
    rests = show.transforms.drop_sink or show.needs.choice or _sets_rests_apart(captured, show)
    if captured.signed or not rests:
        return captured
    return with_rests(prepared.with_lengths(captured))


def _sets_rests_apart(captured: Capture, show: Show) -> bool:
    """Whether a table shows where each head rests: of a model whose heads have no names."""
    values = show.transforms.scores or show.transforms.contribution
    return show.needs.links is not None and not (captured.named_heads or values)


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


# An exhibit to what goes out of it.


def make(exhibit: Exhibit, request: OutputRequest) -> tuple[Iterable[Piece], Sequence[str]]:
    """Render an exhibit, or write it: its pieces, and notes about them for stderr."""
    captured, look = exhibit.capture, request.look
    output = choose_output(request, signed=captured.values if captured.signed else "")
    maker = output.load()
    if output.medium == "terminal":
        from attnviz.draw.terminal.around import gate_lines, line_heading

        turned = {"orient": look.orient or "query-rows"} if output.turns else {}
        above = [] if request.line is None else [line_heading(request.line, first=request.first)]
        below = gate_lines(exhibit, request.display)
        return chain(above, maker(exhibit, request.display, **turned), below), ()
    if output.medium == "picture":
        from attnviz.draw.picture.canvas import figure_bytes
        from attnviz.draw.picture.paper import page_notes

        drawn: Drawn = maker(exhibit, look)
        notes = *drawn.notes, *page_notes(drawn.figure)
        return [figure_bytes(drawn.figure, request.format)], notes
    weights = len(exhibit.maps) * int(captured.allowed_count().sum())
    heavy = output.every_head and weights >= HEAVY
    note = f"this file holds {weights:,} weights, and takes a while to write"
    return maker(exhibit, request), [note] if heavy else ()


def beside_images(request: OutputRequest, exhibit: Exhibit) -> OutputRequest:
    """The request as a heatmap if no patch of an image is among the keys."""
    if request.transforms.relative is not None or not exhibit.beside:
        return request
    return replace(request, look=replace(request.look, view=None))


def drawn_as(exhibit: Exhibit, look: Look) -> "Drawn":
    """The picture of an exhibit: one head as a heatmap, several as a grid."""
    from attnviz.draw.picture.heatmap import draw
    from attnviz.draw.picture.paint import options_of

    return draw(exhibit, options_of(look, look.orient, by_row=exhibit.by_row))


def pieces_of(exhibit: Exhibit, format: str) -> Iterable[Piece]:
    """An exhibit in a format, without any option."""
    return make(exhibit, OutputRequest(format))[0]


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """Patterns on show; made by `attnviz.show` and `AttentionCapture.show`.

    >>> shown = attnviz.show("a fluffy blue creature", heads="L3H2", query="creature", top=1)
    >>> shown.to_columns()["key_token"]
    array(['fluffy'], dtype=object)
    >>> print(shown)  # doctest: +ELLIPSIS
    L3H2 · known for: nouns attend to their adjectives...
    creature → fluffy 0.52 ▇▇▇▇▇  +0.48 on 4 more
    ...

    Attributes:
        record: the exhibit: the maps, what was done to them, and what is shown of them.
    """

    record: Exhibit
    _request: OutputRequest

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the text: that it was cut, or is unlike those of the training."""
        return notes_of([self.record.capture], beside_notes(self.record))

    @property
    def made(self) -> Row:
        """The facts of how it was made: model, text, versions and options, as JSON carries them."""
        return made_to_dict([self.record.capture])

    def to_columns(self) -> dict[str, ColumnArray]:
        """The links by column, as `pandas.DataFrame` and `polars.DataFrame` take them.

        Returns:
            arrays (n_links,) by name: `layer`, `head`, `query`, `query_token`, `key`, `key_token`,
            `weight` (float32; of scores `score`), `query_exact`, `key_exact`; by head and query,
            strongest first, without links that the mask forbids.
        """
        from attnviz.commands.show.rows import link_columns

        return link_columns(self.record)

    def figure(self) -> "Figure":
        """The picture: one head as a heatmap, several as a grid, or the view "image" or "links".

        Raises:
            UsageError: nothing is left to draw, or no such colour map or picture.
        """
        look, captured = self._request.look, self.record.capture
        look = replace(look, view=look.view or ("image" if captured.image_alone else None))
        request = replace(self._request, look=look, format="png")
        signed = captured.values if captured.signed else ""
        drawn: Drawn = choose_output(request, signed=signed).load()(self.record, look)
        return drawn.figure

    def save(self, path: str | Path) -> None:
        """Write it to a file, whose suffix decides as that of `attnviz show -o` does.

        Raises:
            UsageError: no such suffix, or an option that has no meaning for it.
            OutputError: the file cannot be written.
        """
        form = choose_format(Path(path), None, False).name
        pieces = [str(self)] if form == "txt" else self.pieces(form)
        write_bytes(Path(path), encoded(pieces))

    def pieces(self, format: str) -> Iterable[Piece]:
        """It in a format, piece by piece."""
        request = replace(self._request, format=format)
        request = over_images(request) if self.record.capture.image_alone else request
        return make(self.record, request)[0]

    def __repr__(self) -> str:
        captured = self.record.capture
        maps = ", ".join(each.label for each in self.record.maps[:8])
        more = ", …" if len(self.record.maps) > 8 else ""
        size = amount(len(captured.query_tokens), "token")
        return f"<Shown {captured.model.name}, {size}, {maps}{more}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        look = self._request.look
        plain = Look(view=look.view, orient=look.orient)  # the rest is for pictures
        shown, named = self.record, self._request.filters.queries
        if look.view in (None, "table") and shown.capture.image_alone and not named:
            shown = with_wholes(shown, "patches")
        pieces, _ = make(shown, replace(self._request, look=plain))
        return plain_text(cast("Iterable[RenderableType]", pieces), Display().width)
