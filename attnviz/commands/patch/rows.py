"""What a text's prediction owes to the vectors of another, as rows."""

from collections.abc import Iterator
from dataclasses import dataclass

from attnviz.commands.patch.record import PatchEffect, PatchReport, mean_of
from attnviz.draw.effects import EXACT_TOKENS, MEASURED_TOKENS, OWN_CHANGES
from attnviz.draw.labels import distinct_labels
from attnviz.draw.titles import facts
from attnviz.kit.result import Form
from attnviz.records.predict import SiteKind
from attnviz.records.rows import ERROR, LAYER, LINE_OR_MEAN, Field, Fields, JsonOutput, model_name


@dataclass(frozen=True)
class PatchRow:
    """An effect of a report; None stands for tokens of which pairs have several."""

    line: int | None
    report: PatchReport
    effect: PatchEffect
    source_position: int | None
    token: str | None
    source_token: str | None


def patched_parts(report: PatchReport, top: int | None, line: int | None) -> Iterator[PatchRow]:
    """The strongest effects; `line` is None for means over lines."""
    ours, theirs = (distinct_labels(each.query_tokens) for each in (report.capture, report.source))
    for effect in report.strongest[:top]:
        at, token, source_token = effect.position, None, None
        place = None if at is None else report.places[at]
        if at is not None and place is not None and at not in report.varied:
            token, source_token = ours[at], theirs[place]
        yield PatchRow(line, report, effect, place, token, source_token)


PATCHED = Fields[PatchRow](
    "PatchRow",
    "The effect of the vectors of one part, taken from the source.",
    (
        LINE_OR_MEAN,
        model_name(lambda row: row.report.capture.model.name),
        Field(
            "kind",
            SiteKind,
            "head: its output; attention, mlp: what the layer's adds; residual: the stream that "
            "arrives at the layer.",
            lambda row: row.effect.site.kind,
        ),
        Field("layer", int, LAYER, lambda row: row.effect.site.layer),
        Field(
            "head",
            int | None,
            "The head's number in its layer; null but for a head.",
            lambda row: row.effect.site.head,
        ),
        Field(
            "position",
            int | None,
            "Where it is taken from the source; null: wherever it can be. In a mean, that of the "
            "first pair.",
            lambda row: row.effect.position,
        ),
        Field("token", str | None, "The token there; null: several pairs have several."),
        Field("source_position", int | None, "The position of the source that it is taken from."),
        Field("source_token", str | None, "The token there."),
        *MEASURED_TOKENS.within(lambda row: row.report),
        Field(
            "texts",
            int,
            "Of how many pairs of texts it is the mean.",
            lambda row: row.report.lines or 1,
        ),
        Field(
            "before",
            float,
            "What is measured after the text: the difference of both logits, or the "
            "log-probability of the answer in nats where there is no versus.",
            lambda row: row.report.before.measured,
        ),
        Field("source", float, "The same after the source.", lambda row: row.report.ends.measured),
        Field(
            "after",
            float,
            "The same after the text with these vectors.",
            lambda row: row.report.before.measured + row.effect.change.mean,
        ),
        Field("change", float, "after - before.", lambda row: row.effect.change.mean),
        Field("error", float | None, ERROR, lambda row: row.effect.change.error),
        Field(
            "share",
            float,
            "change / (source - before): 0 is the text, 1 the source.",
            lambda row: row.effect.share.mean,
        ),
        Field("share_error", float | None, ERROR, lambda row: row.effect.share.error),
        *OWN_CHANGES.within(lambda row: row.effect.own),
        *EXACT_TOKENS.within(lambda row: row.report),
    ),
)
JSON = JsonOutput((PATCHED,))


FORM = Form[PatchReport](
    "patch",
    PATCHED,
    patched_parts,
    lambda report: facts(report.capture),
    terminal="attnviz.commands.patch.shown:render",
    picture="attnviz.commands.patch.shown:draw",
    page="attnviz.commands.patch.shown:page",
    top=10,
    mean=mean_of,
)
