"""Every head's metrics and role as a table."""

from collections.abc import Iterator
from math import isnan

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.heads.rows import heads_title, untold
from attnviz.console import Display
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import amount
from attnviz.errors import Speller, readable
from attnviz.records.metrics import METRICS, Estimate, HeadMetrics, HeadReport


def render(report: HeadReport, display: Display) -> Iterator[RenderableType]:
    """The table, and what there is to say about it."""
    width = display.width
    yield from folded(Text(heads_title(report), style="dim"), width)
    yield Text()
    measured = [name for name in METRICS if _is_measured(report, name)]
    columns = [
        Column("head"),
        Column("role"),
        *(Column(METRICS[name].short, right=True) for name in measured),
    ]
    rows = [
        (
            str(head.head),
            head.role.name if head.role else "",
            *(_number(name, head.metrics[name]) for name in measured),
        )
        for head in report.heads
    ]
    yield from listing(columns, rows, width)
    yield Text()
    for line in _remarks(report, measured, display.speller):
        yield from folded(Text(line, style="dim"), width)


def _is_measured(report: HeadReport, name: str) -> bool:
    return not all(isnan(head.metrics[name].mean) for head in report.heads)


def _number(name: str, head: Estimate) -> str:
    if isnan(head.mean):
        return "–"
    return f"{head.mean:.1f}" if METRICS[name].of_distances else f"{head.mean:.2f}"


def _remarks(report: HeadReport, measured: list[str], speller: Speller) -> Iterator[str]:
    roles = dict.fromkeys(head.role for head in report.heads if head.role)
    passed = [f"{role.name}: {METRICS[role.metric].short} ≥ {role.least:g}" for role in roles]
    if passed:
        yield f"Role = first threshold met: {', '.join(passed)}"
    if report.untold:
        more = "a longer probe" if report.probe else f"a longer text or {speller('probe', None)}"
        yield f"{untold(report)}; {more} has them"
    named = [f"{head.head} {', '.join(head.named)}" for head in report.heads if head.named]
    if named:
        yield f"known for: {readable('; '.join(named))}"
    if "first" in measured:
        few = any(role.metric == "first" for role, _ in report.untold)
        found = "first > 0.3" if few else "sinks (first > 0.3)"
        yield f"{found}: {report.sinks} of {amount(report.measured, 'head')}"
    errors = [_largest_error(head, measured) for head in report.heads]
    if any(errors):
        every = speller("format", "json")
        yield f"standard errors: at most {max(errors):.3f}, except for distances ({every} has all)"
    missing = [METRICS[name].short for name in ("duplicate", "induction") if name not in measured]
    if missing and report.capture.kind != "cross":
        what, probe = " and ".join(missing), speller("probe", None)
        yield f"no token is repeated here in a way that shows {what}; {probe} measures them"


def _largest_error(head: HeadMetrics, measured: list[str]) -> float:
    """The largest standard error, without those of distances."""
    errors = (head.metrics[name].error for name in measured if not METRICS[name].of_distances)
    return max((error for error in errors if error is not None), default=0.0)
