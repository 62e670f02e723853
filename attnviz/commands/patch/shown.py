"""Patched vectors, shown: sentences, a map and a table in a terminal, and a picture."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.patch.graph import draw_graph
from attnviz.commands.patch.record import PatchedTogether, PatchEffect, PatchReport
from attnviz.console import Display
from attnviz.draw.effects import (
    CHANCE,
    LEGEND,
    listed_parts,
    little_apart,
    numbers,
    own_columns,
    ran,
    tested,
    unit_of,
    what_is_measured,
)
from attnviz.draw.labels import DIVERGING, distinct_labels, fenced
from attnviz.draw.matrix import digits_of, largest
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.terminal.cells import (
    fits,
    folded,
    footnotes,
    listing,
    next_before_and_after,
    rows_of,
    signed_style,
    words,
)
from attnviz.draw.terminal.grid import head_grid, value_grid
from attnviz.draw.titles import amount, amounts, beginning, caption, facts, with_error
from attnviz.errors import readable
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.rows import at

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


def runs_of(report: PatchReport, name: Callable[[Capture], str]) -> str:
    return ran(report.capture, report.lines, "pair", name)


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


def map_of(
    report: PatchReport, *, errors: bool = False, shape: tuple[int, ...] | None = None
) -> FloatArray:
    """The shares (layers, heads), or (layers, patched positions); NaN where nothing was patched.

    `errors`: their standard errors. `shape`: as of a larger map.
    """
    cells = cells_of(report)
    own = shape or [max(place) + 1 for place in zip(*cells, strict=True)]
    shares = np.full(own, np.nan, np.float32)
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


def column_names(report: PatchReport, *, unicode: bool = True) -> list[str]:
    """The names of the columns of a map that is not of heads."""
    if not report.by_position:
        return ["MLP"]
    return list(place_names(report, unicode=unicode).values())


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


# In a terminal.


def _heading(report: PatchReport, patching: str, display: Display) -> Iterator[Text]:
    """The run and what is patched; both ends; the meaning of a share."""
    lines = "\n".join((f"{runs_of(report, facts)}; {patching}", ends_of(report), shares_of(report)))
    yield from folded(Text(lines, "dim"), display.width)
    yield Text()


def render(report: PatchReport, display: Display, top: int) -> Iterator[RenderableType]:
    """Render the map of all shares, and a table of the `top` strongest effects."""
    yield from _heading(report, patching(report), display)
    most = largest(map_of(report))
    for own in report.by_receiver:
        values = map_of(own)
        if len(report.receivers) > 1:
            yield Text(f"to {own.receivers[0]}", "bold")
        if report.kind == "head":
            yield from head_grid(values, most, signed_style, display)
        else:
            layers = [f"L{layer}" for layer in range(len(values))]
            names = column_names(own, unicode=display.unicode)
            yield from value_grid(values.T, names, layers, most, signed_style, display)
        yield Text()
    yield from _table(report, report.strongest[:top], display)


def _table(report: PatchReport, effects: Sequence[PatchEffect], display: Display) -> Iterator[Text]:
    """Each effect on a line, without the changes of both tokens where there is no room for them."""
    errors, places = (report.lines or 1) > 1, place_names(report, unicode=display.unicode)
    columns = [
        words("part", lambda e: fenced(site_name(e, places, unicode=display.unicode))),
        numbers("share", at("share"), errors=errors),
        numbers(f"change ({unit_of(report.measure)})", at("change"), errors=errors),
    ]
    if any(effect.exact for effect in effects):
        columns.append(numbers("exact", at("exact"), errors=errors))
    heads, rows = rows_of(effects, columns)
    own = report.measure == "difference" and not report.fast
    if own:
        more, wider = rows_of(effects, [*columns, own_columns(report)])
        own = fits(more, wider, display.width) or not fits(heads, rows, display.width)
        heads, rows = (more, wider) if own else (heads, rows)
    yield from listing(heads, rows, display.width)
    notes = [*([LEGEND] if own else []), *([chance(report)] if errors else [])]
    agreement = agreement_of(report, unicode=display.unicode)
    yield from footnotes([*agreement, *notes], display.width)


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
        yield (
            f"estimated and exact changes of {amount(len(apart), 'part')}: {agree}; farthest apart "
            f"by {apart[farthest]:.3f} at {name}"
        )


def render_together(both: PatchedTogether, display: Display) -> Iterator[RenderableType]:
    """Render the effect of all parts, and the next tokens before and after."""
    report = both.report
    (effect,) = report.effects
    patching = f"outputs of several parts taken from {_source(report)} at {_where(report)}"
    yield from _heading(report, patching, display)
    names = listed_parts(effect.parts, report.capture.model.heads_per_layer)
    before, change, unit = report.before.measured, effect.change, unit_of(report.measure)
    moved = f"{before:+.3f} → {before + change.mean:+.3f} ({with_error(change)} {unit})"
    sentence = f"with {names} of the source: {moved}, share {with_error(effect.share)}"
    yield from folded(Text(sentence, "bold"), display.width)
    if report.lines is None:
        yield from next_before_and_after(report.capture, both.before, both.after, display)
    elif report.lines > 1:
        yield from footnotes([OVER_PAIRS + CHANCE], display.width)


def draw(report: PatchReport, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """Draw the map as a picture."""
    every, panes = map_of(report), list[Pane]()
    most = max(1.0, largest(every))
    for own in report.by_receiver:
        title = SHARE if len(report.receivers) < 2 else f"to {own.receivers[0]}"
        columns = None if report.kind == "head" else column_names(own)
        values = map_of(own, shape=every.shape)  # as many layers in each
        pane = Pane(title, values, -most, most, min(WRITTEN, digits_of(values)), columns=columns)
        error = map_of(own, errors=True, shape=every.shape)
        panes.append(replace(pane, errors=error, bar=None))
    panes[-1] = replace(panes[-1], bar="share")
    below = [ends_of(report), *([shares_of(report)] if len(panes) > 1 or report.against else [])]
    if len(panes) > 1 and any(np.isnan(pane.values).any() for pane in panes):
        below.append("grey: no head or MLP that is patched and comes before the receiver")
    if not report.lines:
        below.insert(0, f"source: “{beginning(report.source.text)}”")
    title = patching(report)
    title = title[0].upper() + title[1:]
    return draw_panes(
        title,
        panes,
        about=runs_of(report, caption),
        below=below,
        dpi=dpi,
        cmap=cmap,
        more=partial(draw_graph, report) if report.receivers else None,
    )
