"""What a text's prediction owes to the vectors of another, as rows."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from attnviz.commands.patch.record import PatchEffect, PatchReport, mean_of
from attnviz.console import Display
from attnviz.draw.labels import distinct_labels
from attnviz.draw.outcome import AnswerName, Exact, OwnChanges, VersusName, exact, own_changes
from attnviz.draw.titles import facts
from attnviz.kit.result import Result, result_of
from attnviz.records.interventions import Outcome, SiteKind
from attnviz.records.rows import Error, JsonOutput, LayerNumber, LineOrMean, ModelName, declared

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


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


# Patched texts as results.


SHOWN = 10
"""Parts that the terminal names."""


def of_patching(
    report: PatchReport, top: int | None = None, line: int | None = 1
) -> Result[PatchReport]:
    """The effects of patched vectors, of the `top` largest; None: all, as rows.

    `line`: the number of the input line; None: the mean over all.
    """

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.patch import terminal as table

        return table.render(report, report.strongest[: top or SHOWN], display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.patch import picture

        return picture.draw(report, **look)

    def page() -> Iterable[str]:
        from attnviz.commands.patch import page as webpage

        return webpage.page(report)

    return result_of(
        "patch",
        report,
        facts(report.capture),
        (PatchRow,),
        lambda: patch_rows(report, report.strongest[:top], line),
        shown,
        draw,
        page=page,
        captures=(report.capture, report.source),
    )


def of_mean(reports: Sequence[PatchReport], top: int | None = None) -> Result[PatchReport]:
    """The mean over several pairs of texts.

    Raises:
        InputError: their positions have no mean.
    """
    return of_patching(mean_of(reports), top, None)


JSON = JsonOutput(
    (declared(PatchRow),),
    (),
)
