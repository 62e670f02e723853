"""The effects of patched vectors in a terminal: a map, and a table of the largest."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.patch.record import PatchEffect, PatchReport
from attnviz.commands.patch.titles import OVER_PAIRS, patch_heading
from attnviz.console import Display
from attnviz.draw.effects import LEGEND, own_cells, own_columns, unit_of
from attnviz.draw.labels import distinct_labels, fenced
from attnviz.draw.matrix import by_head, largest
from attnviz.draw.terminal.colors import folded, signed_style
from attnviz.draw.terminal.grid import head_grid, value_grid
from attnviz.draw.terminal.listing import Column, footnotes, listing
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate


def render(report: PatchReport, display: Display, top: int) -> Iterator[RenderableType]:
    """The map of all shares, and a table of the `top` strongest effects."""
    yield from folded(Text("\n".join(patch_heading(report)), "dim"), display.width)
    yield Text()
    values = map_of(report)
    if report.kind == "head":
        yield from head_grid(values, largest(values), signed_style, display)
    else:
        names = list(place_names(report, unicode=display.unicode).values())
        layers = [f"L{layer}" for layer in range(len(values))]
        yield from value_grid(values.T, names, layers, largest(values), signed_style, display)
    yield Text()
    yield from _table(report, report.strongest[:top], display)


def _table(
    report: PatchReport, effects: Sequence[PatchEffect], display: Display
) -> Iterator[RenderableType]:
    """Each effect on a line."""
    places = place_names(report, unicode=display.unicode)
    with_errors = report.lines is not None and report.lines > 1
    error = [Column("± s.e.", right=True)] if with_errors else []
    question, with_own = report.question, report.question.versus is not None
    answer = None if report.own_answers else question.answer
    versus = None if report.own_answers else question.versus
    columns = [
        Column("part"),
        *(Column("share", right=True), *error),
        *(Column(f"change ({unit_of(report.measure)})", right=True), *error),
        *(own_columns(answer, versus) if with_own else []),
    ]
    rows = [
        (
            fenced(site_name(effect, places)),
            *(*_cells(effect.share), *_cells(effect.change)),
            *(own_cells(effect.own) if with_own else []),
        )
        for effect in effects
    ]
    yield from listing(columns, rows, display.width)
    notes = [*([LEGEND] if with_own else []), *([OVER_PAIRS] if with_errors else [])]
    yield from footnotes(notes, display.width)


def _cells(number: Estimate) -> Sequence[str]:
    """A number, and its standard error where it has one."""
    error = [] if number.error is None else [f"{number.error:.3f}"]
    return f"{number.mean:+.3f}", *error


def map_of(report: PatchReport) -> FloatArray:
    """The shares (layers, heads), or (layers, patched positions); NaN where nothing was patched."""
    if report.kind == "head":
        return by_head((Head(e.site.layer, e.site.head or 0), e.share.mean) for e in report.effects)
    column = {position: i for i, position in enumerate(report.positions)}
    layers = max(effect.site.layer for effect in report.effects) + 1
    shares = np.full((layers, len(column)), np.nan, np.float32)
    for effect in report.effects:
        if effect.position is not None:
            shares[effect.site.layer, column[effect.position]] = effect.share.mean
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
        name = arrow.join(of[token.index] for of, token in zip(labels, tokens, strict=False))
        names[position] = name + (more if position in report.varied else "")
    return names


KINDS = {"attention": "attention", "mlp": "MLP", "residual": "residual stream"}


def site_name(effect: PatchEffect, places: Mapping[int, str]) -> str:
    """`L3H2`, `L2 MLP at blue ← red`; `places`: the names of patched positions."""
    site = effect.site
    if site.head is not None:
        return f"L{site.layer}H{site.head}"
    at = "" if effect.position is None else f" at {places[effect.position]}"
    return f"L{site.layer} {KINDS[site.kind]}{at}"
