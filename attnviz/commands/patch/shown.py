"""Patched vectors, shown: sentences, a view of them, and a page."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np

from attnviz.commands.patch.graph import draw_graph
from attnviz.commands.patch.record import PatchedTogether, PatchEffect, PatchReport
from attnviz.draw.effects import (
    CHANCE,
    LEGEND,
    listed_parts,
    little_apart,
    numbers,
    own_columns,
    tested,
    unit_of,
    what_is_measured,
)
from attnviz.draw.labels import DIVERGING, distinct_labels, fenced
from attnviz.draw.matrix import digits_of, largest
from attnviz.draw.page.maps import map_page, map_rows
from attnviz.draw.terminal.cells import words
from attnviz.draw.titles import amount, amounts, beginning, with_error
from attnviz.draw.view import Pane, ResultView, Table
from attnviz.errors import readable
from attnviz.records.capture import FloatArray
from attnviz.records.rows import at
from attnviz.records.tokens import Token

SITES = {
    "head": "heads' outputs",
    "attention": "outputs of attention",
    "mlp": "outputs of MLPs",
    "residual": "the residual stream",
}
SHARE = "share: 0 is the text, 1 the source"
OVER_PAIRS = "±: standard error over these pairs; "
WRITTEN = 3
"""Decimals for which a cell of a picture has room."""
MOST_NAMED = 6
"""Receivers that a heading names."""


def shares_of(report: PatchReport) -> str:
    """The meaning of a share, with a warning where the two texts hardly differ."""
    little = little_apart(report.before.measured, report.ends.measured)
    shares = f"{SHARE}; the two are {little}" if little else SHARE
    lines, left = report.lines or 1, len(report.against)
    return f"{shares}; of {lines - left} of the {lines} pairs" if left else shares


def without_shares(mean: PatchReport | PatchedTogether) -> Sequence[str]:
    """A note that names the pairs that no share is over."""
    report = mean.report if isinstance(mean, PatchedTogether) else mean
    side = "higher" if report.ends.measured >= report.before.measured else "lower"
    lines = f"line{'s' * (len(report.against) > 1)} {', '.join(map(str, report.against))}"
    said = f"the source is not {side} than the text on {lines}: counted only in the mean change"
    return [said] if report.against else []


def patching(report: PatchReport) -> str:
    """The vectors taken from the source, and where."""
    where = "one position" if report.by_position else _where(report)
    taken = f"{SITES[report.kind]} taken from {_source(report)} at {where}"
    if report.receivers:
        names = [str(to) for to in report.receivers]
        ends = ", ".join(names) if len(names) <= MOST_NAMED else amount(len(names), "part")
        mlps = "computed anew" if report.path_mlps == "recompute" else "held fixed, too"
        taken += f", on paths to {ends}: all other heads held fixed, MLPs {mlps}"
    return f"{taken}; estimated to first order" if report.fast else taken


def _source(report: PatchReport) -> str:
    """The source, by its images where they are others than the text's."""
    ours, theirs = ([image.raw for image in run.images] for run in report.runs)
    named = f" ({', '.join(readable(raw.name) for raw in theirs)})"
    return f"the source{named if ours != theirs else ''}"


def _where(report: PatchReport) -> str:
    """The number of positions that are patched at once."""
    return amounts(*report.patched, "position") if report.patched else "all positions"


def ends_of(report: PatchReport) -> str:
    """The measurement, and its value after the text and after the source."""
    measured = what_is_measured(report.measure, report.answer, report.versus)
    mean = "mean of " if report.lines else ""
    before, ends = report.before.measured, report.ends.measured
    return f"{mean}{measured}: {before:+.3f} after the text, {ends:+.3f} after the source"


# The map: layers down, heads or positions across.


def cells_of(report: PatchReport) -> dict[tuple[int, int], PatchEffect]:
    """Each effect by its layer, and by its head or the number of its position."""
    column = {position: i for i, position in enumerate(report.positions)}
    return {
        (e.site.layer, (e.site.head or 0) if e.position is None else column[e.position]): e
        for e in report.effects
    }


def map_of(report: PatchReport, *, errors: bool = False) -> FloatArray:
    """The shares (layers, heads), or (layers, patched positions); NaN where nothing was patched.

    `errors`: their standard errors.
    """
    cells = cells_of(report)
    shares = np.full([max(place) + 1 for place in zip(*cells, strict=True)], np.nan, np.float32)
    for place, effect in cells.items():
        share = effect.share
        shares[place] = share.mean if not errors else np.nan if share.error is None else share.error
    return shares


def place_names(report: PatchReport, *, unicode: bool = True) -> dict[int, str]:
    """A name for each patched position: `blue`; `blue ← red` where the source has another token.

    `blue, …`: the first pair has `blue` there, and other pairs have other tokens.
    """
    captures = report.capture, report.source
    labels = [distinct_labels(each.query_tokens, unicode=unicode) for each in captures]
    arrow, more = (" ← ", ", …") if unicode else (" <- ", ", ...")
    names = {}
    for position in report.positions:
        ours, theirs = report.tokens_at(position)
        tokens = [ours] if ours.id == theirs.id else [ours, theirs]
        name = arrow.join(own[token.index] for own, token in zip(labels, tokens, strict=False))
        names[position] = name + (more if position in report.varied else "")
    return names


_KINDS = {"attention": "attention", "mlp": "MLP", "residual": "residual stream"}


def site_name(effect: PatchEffect, places: Mapping[int, str], *, unicode: bool = True) -> str:
    """`L3H2`, `L3H2 → L4H0.q`, `L2 MLP at blue ← red`; `places`: the names of patched positions."""
    site, to = effect.site, ""
    if effect.receiver:
        to = f" {'→' if unicode else '->'} {effect.receiver}"
    if site.head is not None:
        return f"L{site.layer}H{site.head}{to}"
    at = "" if effect.position is None else f" at {places[effect.position]}"
    return f"L{site.layer} {_KINDS[site.kind]}{at}{to}"


def chance(report: PatchReport) -> str:
    """The meaning of errors, and the number of effects that differ from chance."""
    what = "path" if report.receivers else "head" if report.kind == "head" else "part"
    effects = [each.p_holm for each in report.effects]
    return OVER_PAIRS + (tested(effects, what, report.lines or 1) or CHANCE)


def agreement_of(report: PatchReport, *, unicode: bool = True) -> Iterator[str]:
    """The difference of estimates from exact changes, if these are known."""
    apart = {e: abs(e.change.mean - e.exact.mean) for e in report.effects if e.exact}
    if apart:
        rho, farthest = report.ranks_agree, max(apart, key=lambda effect: apart[effect])
        sign = "ρ" if unicode else "rho"
        agree = "too few to rank" if rho is None else f"Spearman's {sign} = {rho:.3f}"
        name = site_name(farthest, place_names(report, unicode=unicode), unicode=unicode)
        compared = amount(len(apart), "path" if report.receivers else "part")
        yield (
            f"estimated and exact changes of {compared}: {agree}; farthest apart by "
            f"{apart[farthest]:.3f} at {name}"
        )


# What is shown: of effects one by one, and of several parts at once.


def _view(report: PatchReport, done: str, **more: Any) -> ResultView:
    """A view of what is done and what is measured, with the finding."""
    about = ends_of(report), shares_of(report)
    return ResultView(done, report.capture, report.lines, "pair", about, **more)


def view(report: PatchReport, top: int | None = None, *, unicode: bool = True) -> ResultView:
    """A map of all shares for each receiver, and a table of the `top` strongest effects."""
    several, errors = len(report.receivers) > 1, (report.lines or 1) > 1
    effects, places = report.strongest[:top], place_names(report, unicode=unicode)
    columns = [
        words("part", lambda e: fenced(site_name(e, places, unicode=unicode))),
        numbers("share", at("share"), errors=errors),
        numbers(f"change ({unit_of(report.measure)})", at("change"), errors=errors),
    ]
    if any(effect.exact for effect in effects):
        columns.append(numbers("exact", at("exact"), errors=errors))
    own = own_columns(report) if report.measure == "difference" and not report.fast else None
    source = [] if report.lines else [f"source: “{beginning(report.source.text)}”"]
    under = [shares_of(report)] if several or report.against else []
    maps = [_map(each, unicode=unicode, several=several) for each in report.by_receiver]
    return _view(
        report,
        patching(report),
        under=(*source, ends_of(report), *under),
        maps=maps,
        most=max(largest(each.values) for each in maps),
        least=1.0,
        bar="share",
        empty="no head or MLP that is patched and stands before the receiver" if several else "",
        graph=partial(draw_graph, report) if report.receivers else None,
        table=Table(effects, columns, own, LEGEND),
        notes=[*agreement_of(report, unicode=unicode), *([chance(report)] if errors else [])],
    )


def _map(report: PatchReport, *, unicode: bool, several: bool) -> Pane:
    """The shares on one receiver; in a terminal positions stand down, layers across."""
    effects, places, values = cells_of(report), place_names(report), map_of(report)
    heads = report.kind == "head"
    names = place_names(report, unicode=unicode).values() if report.by_position else ["MLP"]
    return Pane(
        f"to {report.receivers[0]}" if several else SHARE,
        values,
        columns=None if heads else list(names),
        errors=map_of(report, errors=True),
        turned=not heads,
        told=lambda layer, column: _told(effects[layer, column], places),
        digits=min(WRITTEN, digits_of(values)),
    )


def _told(effect: PatchEffect, places: Mapping[int, str]) -> str:
    """All numbers of an effect."""
    name, share, own = site_name(effect, places), effect.share, effect.own
    told = f"{fenced(name)}: share {with_error(share)}, change {with_error(effect.change)}"
    if effect.exact:
        told += f", exact {with_error(effect.exact)}"
    if own and not np.isnan(own.versus_logit):
        told += f"; log p of the answer {own.answer_log_probability:+.3f}"
        told += f", of the other token {own.versus_log_probability:+.3f}"
    return told


def view_together(both: PatchedTogether, *, unicode: bool = True) -> ResultView:
    """The effect of all parts, and the next tokens before and after."""
    report = both.report
    (effect,) = report.effects
    names = listed_parts(effect.parts, report.capture.model.heads_per_layer, brief=True)
    before, change, unit = report.before.measured, effect.change, unit_of(report.measure)
    moved = f"{before:+.3f} → {before + change.mean:+.3f} ({with_error(change)} {unit})"
    return _view(
        report,
        f"outputs of several parts taken from {_source(report)} at {_where(report)}",
        found=f"with {names} of the source: {moved}, share {with_error(effect.share)}",
        next_tokens=both if report.lines is None else None,
        notes=[OVER_PAIRS + CHANCE] if (report.lines or 1) > 1 else [],
    )


# The page. It has no script: the title of a cell holds its numbers.

NAMED = 12
UNDERLINED = '<p class="hint">underlined: where the texts differ, or are not aligned</p>'


def page(report: PatchReport) -> list[str]:
    """The page, as one piece."""
    shown, places = view(report), place_names(report)
    largest_changes = [
        f"<tr><th>{escape(fenced(site_name(each, places)))}</th>"
        f"<td>{with_error(each.share)}</td><td>{with_error(each.change)}</td></tr>"
        for each in report.strongest[:NAMED]
    ]
    ends, share = map(escape, shown.about)
    return map_page(
        "commands/patch/page/patch.html",
        title=escape(shown.title),
        about=escape(shown.facts),
        ends=ends,
        share=share,
        texts="" if report.lines else _texts(report),
        legend="" if report.lines else UNDERLINED,
        maps="\n".join(_table(each, shown) for each in shown.maps),
        graph=_graph(report) if report.receivers else "",
        unit=unit_of(report.measure),
        largest="\n".join(largest_changes),
        errors=escape("; ".join(shown.notes)),
    )


def _table(own: Pane, shown: ResultView) -> str:
    title = f"<caption>{own.title}</caption>" if shown.empty else ""
    rows = "\n".join(map_rows(own, shown.scale, digits_of(own.values)))
    return f'<div class="map"><table>{title}{rows}\n</table></div>'


def _texts(report: PatchReport) -> str:
    """Both texts; the tokens in which they differ are marked."""
    ours, theirs = report.capture.query_tokens, report.source.query_tokens
    same = [
        (i, place)
        for i, place in enumerate(report.places)
        if place is not None and theirs[place].id == ours[i].id
    ]
    mine, other = {i for i, _ in same}, {place for _, place in same}
    return f"{_text('text', ours, mine)}\n{_text('source', theirs, other)}"


def _text(name: str, tokens: Sequence[Token], same: set[int]) -> str:
    labels = []
    for token in tokens:
        label = f"<bdi>{escape(readable(token.label))}</bdi>"
        labels.append(label if token.index in same else f"<mark>{label}</mark>")
    return f'<p class="text"><b>{name}</b> {" ".join(labels)}</p>'


def _graph(report: PatchReport) -> str:
    """The strongest paths as a picture within the page."""
    from attnviz.draw.picture.canvas import figure_bytes
    from attnviz.draw.picture.frame import sheet

    with sheet(["paths"], dpi=100, cmap=DIVERGING) as (figure, fonts):
        draw_graph(report, figure, fonts, 0.0)
    drawn = b64encode(figure_bytes(figure, "svg")).decode()
    words = "The strongest paths: layers upward, each arrow as wide as its share."
    return f'<p class="hint">{words}</p><img alt="{words}" src="data:image/svg+xml;base64,{drawn}">'
