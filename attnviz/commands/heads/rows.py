"""The metrics of heads as rows, a table and pictures; and what the command writes as JSON."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.heads.alignment import ALIGNMENT_ROW
from attnviz.commands.heads.boxes import BOX_ROW
from attnviz.commands.heads.labels import LABEL_ROW
from attnviz.commands.heads.qk_ov import CIRCUIT_ROW
from attnviz.commands.heads.receiver import RECEIVER
from attnviz.commands.heads.retrieval import RETRIEVAL_ROW
from attnviz.console import Display
from attnviz.draw.headlines import share
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import draw_panes, score_pane
from attnviz.draw.terminal.cells import Column, fits, folded, listing
from attnviz.draw.titles import amount, caption, facts
from attnviz.errors import Speller, readable
from attnviz.kit.result import Form, Result
from attnviz.records.metrics import IMAGE_METRICS, METRICS, SINK, HeadMetrics, HeadReport, Score
from attnviz.records.rows import (
    Field,
    Fields,
    JsonOutput,
    at,
    estimate_fields,
    head_fields,
    model_name,
)

OfReport: TypeAlias = tuple[HeadReport, HeadMetrics]
MOST_TOLD = 6
"""Heads with another role on the probe that are named."""


def heads_title(report: HeadReport) -> str:
    """The subject: the model and the texts that were measured."""
    if report.probe:
        return f"{readable(report.capture.model.name)}, probe: {report.probe}"
    if report.others:
        runs = amount(1 + len(report.others), "image" if report.scores is IMAGE_METRICS else "text")
        return f"{readable(report.capture.model.name)}, means over {runs}"
    return facts(report.capture)


def untold(report: HeadReport) -> str:
    """The roles that were measured over too few rows, and the number of these rows."""
    few = (f"{role.name} ({rows} of {role.rows})" for role, rows in report.untold)
    return f"these roles need more rows: {', '.join(few)}"


def _known_for(report: HeadReport) -> Iterator[str]:
    """The behaviours for which the model's card names heads, in one sentence."""
    named = [f"{each.head} {', '.join(each.named)}" for each in report.heads if each.named]
    if named:
        yield f"known for: {readable('; '.join(named))}"


def _passed(row: OfReport) -> str | None:
    role, metrics = row[1].role, row[1].metrics
    if role is None:
        return None
    least = f"≥ {role.least:g}"
    if metrics[role.metric].mean >= role.least:
        return f"{role.metric} {least}"
    return f"rests {least}" if role.metric == "first" else f"{role.metric} off rests {least}"


def _role_said(head: HeadMetrics) -> str:
    """`induction; rests .46`: the role, and how much the head rests beside it."""
    if head.role is None:
        return ""
    telling = METRICS[head.role.metric].telling and head.rests.mean >= SINK
    return head.role.name + (f"; rests {share(head.rests.mean)}" if telling else "")


def _on_probe(report: HeadReport) -> Iterator[str]:
    """The heads whose role on the probe is another, in one sentence."""
    roles = {str(each.head): each.role.name for each in report.heads if each.role}
    others = [f"{h} {r}" for h, r in report.on_probe.items() if roles.get(h, r) != r]
    if others:
        more = f" and {len(others) - MOST_TOLD} more" if len(others) > MOST_TOLD else ""
        yield f"another role on the probe: {', '.join(others[:MOST_TOLD])}{more}"


def _of_metric(metric: Score) -> tuple[Field[Any], Field[Any]]:
    return estimate_fields(metric.name, metric.sentence, lambda row: row[1].metrics[metric.name])


MEASURED = Field[OfReport](
    "measured", str, "The text, the probe or images, for a person.", lambda row: heads_title(row[0])
)
NAMED = Field[OfReport](
    "card", list[str], "The behaviours for which the model's card names the head.", at("1.named")
)
HEAD_ROW = Fields[OfReport](
    "HeadRow",
    "The metrics of a head (docs/metrics.md); null where a metric could not be measured.",
    (
        model_name(lambda row: row[0].capture.model.name),
        *head_fields(lambda row: row[1].head),
        Field("role", str | None, "The first role whose threshold is met.", at("1.role.name")),
        Field("passed", str | None, "That threshold: 'induction ≥ 0.4'.", _passed),
        NAMED,
        *estimate_fields(
            "rests",
            "The share of the weight on keys on which the head rests, but for a key's own.",
            lambda row: row[1].rests,
        ),
        *(field for metric in METRICS.values() for field in _of_metric(metric)),
        MEASURED,
    ),
)
IMAGE_HEAD_ROW = Fields[OfReport](
    "ImageHeadRow",
    "The metrics of a head within an image; null where a metric could not be measured.",
    (
        model_name(lambda row: row[0].capture.model.name),
        *head_fields(lambda row: row[1].head),
        NAMED,
        *(field for score in IMAGE_METRICS.values() for field in _of_metric(score)),
        MEASURED,
    ),
)
JSON = JsonOutput(
    (
        HEAD_ROW,
        IMAGE_HEAD_ROW,
        RETRIEVAL_ROW,
        RECEIVER,
        CIRCUIT_ROW,
        LABEL_ROW,
        BOX_ROW,
        ALIGNMENT_ROW,
    )
)


def of_report(report: HeadReport) -> Result[HeadReport]:
    """The metrics of heads."""
    form = Form[HeadReport](
        "heads",
        HEAD_ROW if report.scores is METRICS else IMAGE_HEAD_ROW,
        lambda report, top, line: ((report, each) for each in report.heads),
        lambda report: f"{report.capture.model.name}, {amount(len(report.heads), 'head')}",
        terminal=render,
        picture=draw,
    )
    return Result(form, report, captures=(report.capture, *report.others))


# A table of the metrics, and what there is to say about it.


def render(report: HeadReport, display: Display) -> Iterator[RenderableType]:
    """Render the table, and what there is to say about it."""
    width = display.width
    for line in _above(report, display.speller):
        yield from folded(Text(line, style="dim"), width)
    yield Text()
    measured = [
        score
        for name, score in report.scores.items()
        if not all(isnan(head.metrics[name].mean) for head in report.heads)
    ]
    with_roles = report.scores is METRICS
    plain = [head.role.name if head.role else "" for head in report.heads]
    said = [_role_said(head) for head in report.heads]
    columns = [Column("head"), *([Column("role")] if with_roles else [])]
    columns += [Column(score.short, right=True) for score in measured]
    for roles in (said, plain):  # where the table would be too wide, rests stand below it
        rows = [
            (
                str(head.head),
                *([role] if with_roles else []),
                *(score.cell(head.metrics[score.name].mean) for score in measured),
            )
            for head, role in zip(report.heads, roles, strict=True)
        ]
        if fits(columns, rows, width):
            break
    yield from listing(columns, rows, width)
    yield Text()
    if roles != said:
        pairs = zip(report.heads, said, strict=True)
        beside = [f"{head.head} {share(head.rests.mean)}" for head, role in pairs if ";" in role]
        more = f" and {len(beside) - MOST_TOLD} more" if len(beside) > MOST_TOLD else ""
        line = f"beside their roles, these rest: {', '.join(beside[:MOST_TOLD])}{more}"
        yield from folded(Text(line, "dim"), width)
    remarks = _remarks if with_roles else _meanings
    for line in remarks(report, measured, display.speller):
        yield from folded(Text(line, style="dim"), width)


def _above(report: HeadReport, speller: Speller) -> Iterator[str]:
    """The title, and what a text of few tokens leaves out: an empty role is read as a finding."""
    yield heads_title(report)
    if report.untold:
        more = "a longer probe" if report.probe else f"a longer text or {speller('probe', None)}"
        yield f"{untold(report)}; {more} has them"


def _meanings(report: HeadReport, measured: Sequence[Score], speller: Speller) -> Iterator[str]:
    """The columns of heads within an image."""
    units = ((each, f", in {each.unit}" if each.unit else "") for each in measured)
    yield "; ".join(f"{each.short}: {each.meaning}{unit}" for each, unit in units)
    yield from _known_for(report)
    heads = [each.head for each in report.heads]
    if len(heads) < report.measured and heads == sorted(heads):
        yield f"by layer and head; {speller('sort', 'METRIC')} has the largest first"
    yield from _errors(report, measured, speller)


def _remarks(report: HeadReport, scores: Sequence[Score], speller: Speller) -> Iterator[str]:
    measured = {score.name for score in scores}
    if passed := _thresholds(report, short=True):
        yield f"Role = first threshold met: {passed}"
    yield from _known_for(report)
    yield from _on_probe(report)
    if "first" in measured:
        few = any(role.metric == "first" for role, _ in report.untold)
        found = "first > 0.3" if few else "sinks (first > 0.3)"
        yield f"{found}: {report.sinks} of {amount(report.measured, 'head')}"
    yield from _errors(report, scores, speller)
    missing = [METRICS[name].short for name in ("duplicate", "induction") if name not in measured]
    if missing and report.capture.kind != "cross":
        what, probe = " and ".join(missing), speller("probe", None)
        yield f"no token is repeated here in a way that shows {what}; {probe} measures them"


def _thresholds(report: HeadReport, *, short: bool) -> str:
    """The roles that heads have, with their thresholds; `short`: the metrics as in the table."""
    roles = dict.fromkeys(head.role for head in report.heads if head.role)
    names = {role: METRICS[role.metric].short if short else role.metric for role in roles}
    passed = [f"{role.name}: {names[role]} ≥ {role.least:g}" for role in roles]
    rests = any(METRICS[role.metric].telling for role in roles)
    return ", ".join(passed) + ("; measured on the weight off its rests" if rests else "")


def _errors(report: HeadReport, scores: Sequence[Score], speller: Speller) -> Iterator[str]:
    """The largest standard error, without those of distances."""
    shares = [score.name for score in scores if not score.of_distances]
    errors = [head.metrics[name].error or 0.0 for head in report.heads for name in shares]
    if any(errors):
        every = speller("format", "json")
        yield f"standard errors: at most {max(errors):.3f}, except for distances ({every} has all)"


# A picture for each metric: layers down, heads across, with the roles that follow.


def draw(report: HeadReport, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """Draw the metrics of all heads: shares from 0 to 1, others from 0 to the largest.

    A head is boxed in the metric that gives it its role.
    """
    found = (
        score_pane(
            metric,
            by_head((each.head, each.metrics[name].mean) for each in report.heads),
            [each.head for each in report.heads if each.role and each.role.metric == name],
        )
        for name, metric in report.scores.items()
    )
    panes = [pane for pane in found if pane is not None]
    title = f"Scores of {amount(len(report.heads), 'head')}"
    about = heads_title(report) if report.probe or report.others else caption(report.capture)
    return draw_panes(title, panes, about=about, below=list(_below(report)), dpi=dpi, cmap=cmap)


def _below(report: HeadReport) -> Iterator[str]:
    """The meaning of a box, and the heads that have a name."""
    if passed := _thresholds(report, short=False):
        yield f"boxed: the head's role, the first threshold that it meets ({passed})"
    if report.untold:
        yield untold(report)
    yield from _known_for(report)
