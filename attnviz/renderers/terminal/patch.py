"""What patched vectors change, as a person reads it: a map, and a table of the largest."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.data.patch import PatchEffect, PatchReport
from attnviz.renderers.arrangement import largest
from attnviz.renderers.direction import fenced
from attnviz.renderers.interventions import patch_ends, patch_title
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.patch import map_of, site_name
from attnviz.renderers.terminal.colors import signed_style
from attnviz.renderers.terminal.headgrid import head_grid, value_grid
from attnviz.renderers.terminal.listing import Column, listing
from attnviz.renderers.terminal.prose import folded


def render(
    report: PatchReport, effects: Sequence[PatchEffect], display: Display
) -> Iterator[RenderableType]:
    """The map of all shares, and a table of these effects."""
    said = f"{patch_title(report)}; {patch_ends(report)}"
    yield from folded(Text(said, style="dim"), display.width)
    yield Text()
    values = map_of(report)
    labels = distinct_labels(report.capture.query_tokens, unicode=display.unicode)
    theirs = distinct_labels(report.source.query_tokens, unicode=display.unicode)
    if report.kind == "head":
        yield from head_grid(values, largest(values), signed_style, display)
    else:
        names = [_place(report, position, labels, theirs) for position in report.positions]
        yield from value_grid(values.T, names, "layer", largest(values), signed_style, display)
    yield Text()
    with_errors = report.lines is not None and report.lines > 1
    columns = [
        Column("part"),
        Column("share", right=True),
        *([Column("± s.e.", right=True)] if with_errors else []),
        Column("change", right=True),
        *([Column("± s.e.", right=True)] if with_errors else []),
    ]
    rows = [
        (
            fenced(site_name(effect, labels)),
            f"{effect.share.mean:+.3f}",
            *([f"{effect.share.error or 0:.3f}"] if with_errors else []),
            f"{effect.change.mean:+.3f}",
            *([f"{effect.change.error or 0:.3f}"] if with_errors else []),
        )
        for effect in effects
    ]
    yield from listing(columns, rows, display.width)


def _place(report: PatchReport, position: int, labels: Sequence[str], theirs: Sequence[str]) -> str:
    """`blue`, or `blue ← red` where the source has another token there."""
    place = report.places[position]
    ours = report.capture.query_tokens[position]
    if place is None or report.source.query_tokens[place].id == ours.id:
        return fenced(labels[position])
    return f"{fenced(labels[position])} ← {fenced(theirs[place])}"
