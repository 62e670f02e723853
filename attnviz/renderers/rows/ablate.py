"""What a model loses without some heads, as rows."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, TypedDict

from attnviz.data.ablate import AblationReport, BeforeAfter, Effect, Replacement
from attnviz.data.predict import Candidate
from attnviz.renderers.rows.common import (
    Error,
    HeadName,
    HeadNumber,
    LayerNumber,
    LineOrMean,
    ModelName,
    head_name,
)

Answer: TypeAlias = Annotated[
    str | None, "The token that is measured; null: all tokens, or each text's own answer."
]


class EffectRow(TypedDict):
    """The effect of ablating one head."""

    line: LineOrMean
    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    card: Annotated[list[str], "The behaviours for which the model's card names the head."]
    replacement: Annotated[Replacement, "What replaces the head's output."]
    answer: Annotated[
        str | None,
        "The token whose probability is measured; null: all tokens, or each text's own answer.",
    ]
    tokens: Annotated[int, "How many tokens were measured."]
    texts: Annotated[int, "Of how many texts it is the mean, each with the same weight."]
    before: Annotated[float, "Mean log-probability with the head, in nats."]
    after: Annotated[float, "The same without it."]
    change: Annotated[float, "The difference, in nats; negative: the head helps."]
    error: Error
    answer_exact: str | None


def effect_rows(
    report: AblationReport, effects: Sequence[Effect], line: int | None = 1
) -> list[EffectRow]:
    """A row for each of these effects, each of one head; `line` is None for means over lines."""
    return [
        {
            "line": line,
            "model": report.capture.model.name,
            "layer": effect.heads[0].layer,
            "head": effect.heads[0].head,
            "card": _behaviours(report, effect),
            "replacement": report.replacement,
            "answer": report.answer.label if report.answer else None,
            "tokens": report.tokens,
            "texts": report.lines or 1,
            "before": report.baseline,
            "after": report.baseline + effect.change,
            "change": effect.change,
            "error": effect.error,
            "answer_exact": report.answer.exact if report.answer else None,
        }
        for effect in effects
    ]


def _behaviours(report: AblationReport, effect: Effect) -> list[str]:
    return [each.behaviour for each in report.capture.named_heads if each.head in effect.heads]


class TogetherRow(TypedDict):
    """A token that may come next, with the heads or without all of them."""

    line: LineOrMean
    model: ModelName
    heads: list[HeadName]
    card: Annotated[list[str], "The behaviours for which the model's card names the heads."]
    replacement: Annotated[Replacement, "What replaces the heads' outputs."]
    answer: Annotated[
        str | None,
        "The token whose probability is measured; null: all tokens, or each text's own answer.",
    ]
    tokens: Annotated[int, "How many tokens were measured."]
    texts: Annotated[int, "Of how many texts it is the mean, each with the same weight."]
    before: Annotated[float, "Mean log-probability with the heads, in nats."]
    after: Annotated[float, "The same without them."]
    change: Annotated[float, "The difference, in nats; negative: the heads help."]
    error: Error
    answer_exact: str | None
    when: Annotated[Literal["before", "after"] | None, "With the heads, or without them."]
    rank: Annotated[int | None, "Counted from 1, the likeliest."]
    id: int | None
    token: str | None
    probability: float | None
    exact: str | None


def together_rows(both: BeforeAfter, line: int | None = 1) -> list[TogetherRow]:
    """A row for each candidate before and after, with the effect on all of them.

    The mean over lines, where `line` is None, has no candidates: one row.
    """
    report = both.report
    (effect,) = report.effects
    pairs: list[tuple[Literal["before", "after"] | None, Sequence[Candidate | None]]] = [
        ("before", both.before.candidates),
        ("after", both.after.candidates),
    ]
    if line is None:
        pairs = [(None, [None])]
    return [
        {
            "line": line,
            "model": report.capture.model.name,
            "heads": [head_name(head) for head in effect.heads],
            "card": _behaviours(report, effect),
            "replacement": report.replacement,
            "answer": report.answer.label if report.answer else None,
            "tokens": report.tokens,
            "texts": report.lines or 1,
            "before": report.baseline,
            "after": report.baseline + effect.change,
            "change": effect.change,
            "error": effect.error,
            "answer_exact": report.answer.exact if report.answer else None,
            "when": when,
            "rank": rank if candidate else None,
            "id": candidate.id if candidate else None,
            "token": candidate.label if candidate else None,
            "probability": candidate.probability if candidate else None,
            "exact": candidate.exact if candidate else None,
        }
        for when, candidates in pairs
        for rank, candidate in enumerate(candidates, start=1)
    ]
