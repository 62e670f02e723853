"""What a text's prediction owes to the vectors of another, as rows."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from attnviz.data.patch import PatchEffect, PatchReport
from attnviz.draw.labels import distinct_labels
from attnviz.draw.outcome import AnswerName, Exact, OwnChanges, VersusName, exact, own_changes
from attnviz.records.interventions import Outcome, SiteKind
from attnviz.records.rows import Error, LayerNumber, LineOrMean, ModelName


class PatchedRow(TypedDict):
    """What was taken from the source, and by how much it changed what is measured."""

    line: LineOrMean
    model: ModelName
    kind: Annotated[
        SiteKind,
        "head: its output; attention, mlp: what the layer's adds; residual: the stream that "
        "arrives at the layer.",
    ]
    layer: LayerNumber
    head: Annotated[int | None, "The head's number in its layer; null but for a head."]
    position: Annotated[
        int | None,
        "Where it is taken from the source; null: wherever it can be. In a mean, that of the first "
        "pair.",
    ]
    token: Annotated[str | None, "The token there; null: several pairs have several."]
    source_position: Annotated[int | None, "The position of the source that it is taken from."]
    source_token: Annotated[str | None, "The token there."]
    answer: AnswerName
    versus: VersusName
    texts: Annotated[int, "Of how many pairs of texts it is the mean."]
    before: Annotated[
        float,
        "What is measured after the text: the difference of both logits, or the log-probability of "
        "the answer in nats where there is no versus.",
    ]
    source: Annotated[float, "The same after the source."]
    after: Annotated[float, "The same after the text with these vectors."]
    change: Annotated[float, "after - before."]
    error: Error
    share: Annotated[float, "change / (source - before): 0 is the text, 1 the source."]
    share_error: Error


class PatchRow(PatchedRow, OwnChanges, Exact):
    """The effect of the vectors of one part, taken from the source."""


def patch_rows(
    report: PatchReport, effects: Sequence[PatchEffect], line: int | None = 1
) -> list[PatchRow]:
    """A row for each of these effects; `line` is None for means over lines."""
    ours, theirs = (distinct_labels(each.query_tokens) for each in (report.capture, report.source))
    return [_row(report, effect, (ours, theirs), line) for effect in effects]


def _row(
    report: PatchReport,
    effect: PatchEffect,
    labels: tuple[Sequence[str], Sequence[str]],
    line: int | None,
) -> PatchRow:
    ours, theirs = labels
    position, place = effect.position, None
    if position is not None:
        place = report.places[position]
    alike = position is not None and position not in report.varied
    asked = None if report.own_answers else report.question
    versus = asked.versus if asked else None
    before: Outcome = report.before
    return {
        "line": line,
        "model": report.capture.model.name,
        "kind": effect.site.kind,
        "layer": effect.site.layer,
        "head": effect.site.head,
        "position": position,
        "token": ours[position] if alike and position is not None else None,
        "source_position": place,
        "source_token": theirs[place] if alike and place is not None else None,
        "answer": asked.answer.label if asked else None,
        "versus": versus.label if versus else None,
        "texts": report.lines or 1,
        "before": before.measured,
        "source": report.ends.measured,
        "after": before.measured + effect.change.mean,
        "change": effect.change.mean,
        "error": effect.change.error,
        "share": effect.share.mean,
        "share_error": effect.share.error,
        **own_changes(effect.own),
        **exact(asked.answer if asked else None, versus),
    }
