"""Ablation effects as rows: how much worse a model predicts without some of its parts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnviz.commands.ablate.curve import AROUND, LossCurve, Losses, mean_curve
from attnviz.commands.ablate.record import (
    AblationReport,
    BeforeAfter,
    TokenEffects,
    mean_of,
    mean_tokens,
)
from attnviz.draw.effects import (
    EXACT_TOKENS,
    MEASURED_TOKENS,
    NEXT_TOKEN,
    OWN_CHANGES,
    P_HOLM,
    PART,
    EffectRow,
    rows_together,
    unit,
)
from attnviz.draw.labels import distinct_labels
from attnviz.draw.titles import facts
from attnviz.kit.result import Form, refuse_picture
from attnviz.records.interventions import Replacement, mean_together
from attnviz.records.rows import (
    ERROR,
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


@dataclass(frozen=True, kw_only=True)
class AblatedToken(EffectRow):
    """The effect at a position in its report."""

    position: int
    token: str
    exact: str | None
    before: float
    change: float
    error: float | None


@dataclass(frozen=True, kw_only=True)
class LossPoint(EffectRow):
    """The losses at a position."""

    curve: LossCurve
    position: int
    losses: Losses
    score: Losses


RUN = (LINE_OR_MEAN, model_name(at("report.capture.model.name")))
REPLACED: tuple[Field[Any], ...] = (
    Field(
        "card",
        list[str],
        "The behaviours for which the model's card names the heads.",
        lambda row: row.report.known_for(row.effect),
    ),
    *fields_at(
        "report",
        Field(
            "replacement",
            Replacement | None,
            "The replacement of outputs; null if links are cut, or a direction is projected out.",
            lambda report: None if report.cut or report.direction else report.replacement,
        ),
        Field(
            "other_texts",
            int | None,
            "The number of texts of the replacement, or null for the text itself, or nothing.",
            at("others.texts"),
        ),
        Field(
            "draws",
            int | None,
            "The number of them, drawn at random, that it is the mean of, over all lines; or "
            "null without a draw.",
            lambda report: (report.others and sum(report.others.draws)) or None,
        ),
        Field(
            "cut_query",
            str | None,
            "The query whose links are cut, as it was named; of several cuts, with commas between.",
            at("cut.query"),
        ),
        Field("cut_key", str | None, "Their key.", at("cut.key")),
        Field("direction", str | None, "The direction projected out: the name of its file."),
        Field(
            "renormalised",
            bool,
            "Whether the softmax was taken again over the rest of the row.",
            at("cut.renormalise", False),
        ),
    ),
)
TEXTS = Field[Any](
    "texts", int, "Of how many texts it is the mean, each with the same weight.", at("lines", 1)
)
MEASURED: tuple[Field[EffectRow], ...] = (
    *REPLACED,
    *fields_at(
        "report",
        *MEASURED_TOKENS,
        Field("tokens", int, "How many tokens were measured."),
        TEXTS,
        unit(at("measure")),
        Field("before", float, "The measured value, with the parts.", at("baseline")),
    ),
    Field(
        "after",
        float,
        "The same without them.",
        lambda row: row.report.baseline + row.effect.change.mean,
    ),
    *fields_at(
        "effect",
        Field("change", float, "The difference; negative: the parts help.", at("change.mean")),
        Field("error", float | None, ERROR, at("change.error")),
        Field("p_holm", float | None, P_HOLM),
    ),
    *fields_at("effect.own", *OWN_CHANGES),
    *fields_at("report", *EXACT_TOKENS),
)
EFFECT = Fields[EffectRow](
    "EffectRow",
    "The effect of ablating one part.",
    (*RUN, *PART.within(at("effect.parts.0")), *MEASURED),
)
PARTS = Field[Any]("parts", list_of(PART), "", at("effect.parts"))
TOGETHER = Fields[EffectRow](
    "TogetherRow",
    "A token that may come next, with the parts or without all of them.",
    (*RUN, PARTS, *MEASURED, *NEXT_TOKEN),
)
CHANGED: tuple[Field[AblatedToken], ...] = (
    *REPLACED,
    Field(
        "position",
        int,
        "The token's, which the tokens before it predict; in a mean over texts of several "
        "lengths from the end, the last one -1.",
    ),
    Field("token", str, "Its label; `blue|red` where several texts have several."),
    Field("exact", str | None, "Its own text with its leading space; null for several."),
    *fields_at("report", TEXTS),
    Field("before", float, "Its log-probability in nats, with all parts."),
    Field("after", float, "The same without them.", lambda row: row.before + row.change),
    Field("change", float, "The difference; negative: they help."),
    Field("error", float | None, ERROR),
)
TOKEN = Fields[AblatedToken](
    "TokenEffectRow",
    "The change of one token's log-probability without one part.",
    (*RUN, *PART.within(at("effect.parts.0")), *CHANGED),
)
TOKEN_TOGETHER = Fields[AblatedToken](
    "TokenTogetherRow",
    "The change of one token's log-probability without all of the parts.",
    (*RUN, PARTS, *CHANGED),
)


def _estimates(path: str, name: str, about: str) -> tuple[Field[Any], ...]:
    """The number with all parts, that without them, and the change; each with its error."""
    every = (
        ("", "whole", about),
        ("_without", "without", "The same without the parts."),
        ("_change", "change", "The difference."),
    )
    return tuple(
        each
        for suffix, kind, said in every
        for each in estimate_fields(f"{name}{suffix}", said, at(f"{path}.{kind}"))
    )


CURVE = Fields[LossPoint](
    "CurveRow",
    "The loss at a position, with all parts and without those that are named.",
    (
        *RUN,
        PARTS,
        *REPLACED,
        Field("position", int, "The token's, which the tokens before it predict."),
        Field(
            "texts",
            int,
            "How many texts have it.",
            lambda row: int((~np.isnan(row.curve.losses[:, 0, row.position - 1])).sum()),
        ),
        *_estimates("losses", "loss", "The mean loss in nats, with all parts."),
        *fields_at(
            "curve.between",
            Field("early", int, "The early position of the in-context score."),
            Field("late", int, "The late one."),
        ),
        *_estimates(
            "score",
            "in_context",
            f"The in-context score: the loss within up to {AROUND} positions of the late one, less "
            "that of the early one; null if no text has both.",
        ),
    ),
)
JSON = JsonOutput((EFFECT, TOGETHER, TOKEN, TOKEN_TOGETHER, CURVE))


def ablated_tokens(
    effects: TokenEffects, top: int | None, line: int | None
) -> Iterator[AblatedToken]:
    """Each token without each of the strongest parts."""
    tokens = effects.tokens
    labels = distinct_labels(tokens)
    for part in effects.strongest[:top]:
        errors = None if effects.errors is None else effects.errors[part]
        for i, (before, change) in enumerate(
            zip(effects.before, effects.changes[part], strict=True)
        ):
            known = i + 1 not in effects.varied
            yield AblatedToken(
                line,
                effects.report,
                effects.report.effects[part],
                position=effects.first + i,
                token=labels[i + 1],
                exact=tokens[i + 1].exact if known else None,
                before=float(before),
                change=float(change),
                error=None if errors is None else float(errors[i]),
            )


def points(curve: LossCurve, top: int | None, line: int | None) -> Iterator[LossPoint]:
    """Each position."""
    (effect,) = curve.report.effects
    score = curve.in_context
    for position in curve.positions:
        yield LossPoint(
            line,
            curve.report,
            effect,
            curve=curve,
            position=position,
            losses=curve.at(position),
            score=score,
        )


SHOWN = 10
"""Parts that the terminal names."""
ONE_BY_ONE = Form[AblationReport](
    "ablate",
    EFFECT,
    lambda report, top, line: (EffectRow(line, report, each) for each in report.strongest[:top]),
    lambda report: facts(report.capture),
    view="attnviz.commands.ablate.shown:view",
    top=SHOWN,
    mean=mean_of,
)
BOTH = Form[BeforeAfter](
    "ablate",
    TOGETHER,
    rows_together,
    lambda both: facts(both.capture),
    view="attnviz.commands.ablate.shown:view_together",
    picture=refuse_picture,
    mean=mean_together(mean_of),
)
AT_TOKENS = Form[TokenEffects](
    "ablate",
    TOKEN,
    ablated_tokens,
    lambda effects: facts(effects.capture),
    view="attnviz.commands.ablate.shown:view_tokens",
    page="attnviz.commands.ablate.shown:page",
    top=SHOWN,
    mean=mean_tokens,
)
TOGETHER_AT_TOKENS = replace(AT_TOKENS, fields=TOKEN_TOGETHER)
AT_POSITIONS = Form[LossCurve](
    "ablate",
    CURVE,
    points,
    lambda curve: facts(curve.report.capture),
    view="attnviz.commands.ablate.curve_shown:view",
    picture="attnviz.commands.ablate.curve_shown:draw",
    mean=mean_curve,
)
