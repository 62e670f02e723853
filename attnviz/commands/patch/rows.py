"""The rows of a patch, and its two results: effects one by one, and of several at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnviz.commands.patch.record import PatchedTogether, PatchReport, mean_of
from attnviz.draw.effects import (
    EXACT_TOKENS,
    MEASURED_TOKENS,
    NEXT_TOKEN,
    OWN_CHANGES,
    P_HOLM,
    PART,
    EffectRow,
    ran,
    rows_together,
)
from attnviz.draw.labels import distinct_labels
from attnviz.draw.titles import facts
from attnviz.kit.result import Form, refuse_picture
from attnviz.records.interventions import SiteKind, mean_together
from attnviz.records.rows import (
    ERROR,
    LAYER,
    LINE_OR_MEAN,
    Field,
    Fields,
    JsonOutput,
    at,
    estimate_fields,
    fields_at,
    list_of,
    model_name,
)


@dataclass(frozen=True)
class PatchRow(EffectRow):
    """An effect with its tokens; None for those of which pairs have several."""

    source_position: int | None = None
    token: str | None = None
    source_token: str | None = None


def patched_parts(report: PatchReport, top: int | None, line: int | None) -> Iterator[PatchRow]:
    """The strongest effects; `line` is None for means over lines."""
    ours, theirs = (distinct_labels(each.query_tokens) for each in (report.capture, report.source))
    for effect in report.strongest[:top]:
        own, token, source_token = effect.position, None, None
        place = None if own is None else report.places[own]
        if own is not None and place is not None and own not in report.varied:
            token, source_token = ours[own], theirs[place]
        yield PatchRow(
            line, report, effect, source_position=place, token=token, source_token=source_token
        )


RUN = (LINE_OR_MEAN, model_name(at("report.capture.model.name")))
MEASURED: tuple[Field[Any], ...] = (
    *fields_at(
        "report",
        *MEASURED_TOKENS,
        Field("texts", int, "Of how many pairs of texts it is the mean.", at("lines", 1)),
        Field(
            "before",
            float,
            "The value measured after the text: the difference of both logits, or the "
            "log-probability of the answer in nats where there is no versus.",
            at("before.measured"),
        ),
        Field("source", float, "The same after the source.", at("ends.measured")),
    ),
    Field(
        "after",
        float,
        "The same after the text with these vectors.",
        lambda row: row.report.before.measured + row.effect.change.mean,
    ),
    *fields_at(
        "effect",
        Field("change", float, "after - before.", at("change.mean")),
        Field("error", float | None, ERROR, at("change.error")),
        Field("p_holm", float | None, P_HOLM),
        *estimate_fields(
            "share", "change / (source - before): 0 is the text, 1 the source.", type=float
        ),
    ),
    *fields_at("effect.own", *OWN_CHANGES),
    *fields_at("report", *EXACT_TOKENS),
)
PATCHED = Fields[PatchRow](
    "PatchRow",
    "The effect of the vectors of one part, taken from the source.",
    (
        *RUN,
        *fields_at(
            "effect.site",
            Field(
                "kind",
                SiteKind,
                "head: its output; attention, mlp: what the layer's adds; residual: the stream "
                "that arrives at the layer.",
            ),
            Field("layer", int, LAYER),
            Field("head", int | None, "The head's number in its layer; null but for a head."),
        ),
        Field(
            "position",
            int | None,
            "Where it is taken from the source; null: wherever it can be. In a mean, that of the "
            "first pair.",
            at("effect.position"),
        ),
        Field("token", str | None, "The token there; null: several pairs have several."),
        Field("source_position", int | None, "The position of the source that it is taken from."),
        Field("source_token", str | None, "The token there."),
        Field(
            "receiver",
            str | None,
            "The end of the path on which it acts: logits, L9H6.q, L3.mlp; null: on all of them.",
            lambda row: row.effect.receiver and str(row.effect.receiver),
        ),
        Field(
            "fast",
            bool,
            "The change is estimated to first order (attribution patching).",
            at("report.fast"),
        ),
        Field(
            "exact_change",
            float | None,
            "The change itself, beside an estimated one.",
            at("effect.exact.mean"),
        ),
        Field(
            "rank_correlation",
            float | None,
            "Spearman's rho of all estimated changes with the exact ones; null: not compared.",
            at("report.ranks_agree"),
        ),
        *MEASURED,
    ),
)
TOGETHER = Fields[EffectRow](
    "PatchedTogetherRow",
    "A token that may come next, before or with the vectors of all parts from the source.",
    (*RUN, Field("parts", list_of(PART), "", at("effect.parts")), *MEASURED, *NEXT_TOKEN),
)
JSON = JsonOutput((PATCHED, TOGETHER))


SHOWN = 10
"""Parts that the terminal names."""
FORM = Form[PatchReport](
    "patch",
    PATCHED,
    patched_parts,
    lambda report: ran(report.capture, report.lines, "pair", facts),
    view="attnviz.commands.patch.shown:view",
    page="attnviz.commands.patch.shown:page",
    top=SHOWN,
    mean=mean_of,
    about_mean="attnviz.commands.patch.shown:without_shares",
)
BOTH = Form[PatchedTogether](
    "patch",
    TOGETHER,
    rows_together,
    lambda both: ran(both.report.capture, both.report.lines, "pair", facts),
    view="attnviz.commands.patch.shown:view_together",
    picture=refuse_picture,
    mean=mean_together(mean_of),
    about_mean="attnviz.commands.patch.shown:without_shares",
)
