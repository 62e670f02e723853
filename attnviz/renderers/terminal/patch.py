"""What patched vectors change, as a person reads it: a map, and a table of the largest."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.data.patch import PatchEffect, PatchReport
from attnviz.draw.labels import fenced
from attnviz.draw.matrix import largest
from attnviz.draw.outcome import LEGEND, own_cells, own_columns
from attnviz.draw.terminal.colors import folded, signed_style
from attnviz.draw.terminal.grid import head_grid, value_grid
from attnviz.draw.terminal.listing import Column, listing
from attnviz.records.metrics import Estimate
from attnviz.renderers.patch import map_of, place_names, site_name
from attnviz.renderers.patch_titles import OVER_PAIRS, patch_heading, unit_of


def render(
    report: PatchReport, effects: Sequence[PatchEffect], display: Display
) -> Iterator[RenderableType]:
    """The map of all shares, and a table of these effects."""
    for said in patch_heading(report):
        yield from folded(Text(said, style="dim"), display.width)
    yield Text()
    values = map_of(report)
    if report.kind == "head":
        yield from head_grid(values, largest(values), signed_style, display)
    else:
        names = list(place_names(report, unicode=display.unicode).values())
        layers = [f"L{layer}" for layer in range(len(values))]
        yield from value_grid(values.T, names, layers, largest(values), signed_style, display)
    yield Text()
    yield from _table(report, effects, display)


def _table(
    report: PatchReport, effects: Sequence[PatchEffect], display: Display
) -> Iterator[RenderableType]:
    """Each effect on a line."""
    places = place_names(report, unicode=display.unicode)
    with_errors = report.lines is not None and report.lines > 1
    error = [Column("± s.e.", right=True)] if with_errors else []
    asked, with_own = report.question, report.question.versus is not None
    tokens = (None, None) if report.own_answers else (asked.answer, asked.versus)
    columns = [
        Column("part"),
        *(Column("share", right=True), *error),
        *(Column(f"change ({unit_of(report)})", right=True), *error),
        *(own_columns(*tokens) if with_own else []),
    ]
    rows = [
        (
            fenced(site_name(effect, places)),
            *(*_said(effect.share), *_said(effect.change)),
            *(own_cells(effect.own) if with_own else []),
        )
        for effect in effects
    ]
    yield from listing(columns, rows, display.width)
    notes = [*([LEGEND] if with_own else []), *([OVER_PAIRS] if with_errors else [])]
    for said in notes:
        yield Text()
        yield from folded(Text(said, style="dim"), display.width)


def _said(found: Estimate) -> Sequence[str]:
    """A number, and its standard error where it has one."""
    error = [] if found.error is None else [f"{found.error:.3f}"]
    return f"{found.mean:+.3f}", *error
