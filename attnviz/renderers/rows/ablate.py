"""What a model loses without some of its parts, as rows."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from attnviz.data.ablate import AblationReport, BeforeAfter, Effect
from attnviz.data.interventions import Replacement
from attnviz.data.outcome import Candidate
from attnviz.renderers.rows.common import Error, LineOrMean, ModelName
from attnviz.renderers.rows.outcome import (
    AnswerName,
    OwnChanges,
    TokenText,
    Unit,
    VersusName,
    Words,
    own_changes,
    words_of,
)

AblatedKind = Literal["head", "mlp", "layer"]


class PartName(TypedDict):
    """A part of a model; `head` is null but for a head."""

    kind: AblatedKind
    layer: int
    head: int | None


class AblationRow(OwnChanges, Words):
    """What was done to a text, and what it changed."""

    line: LineOrMean
    model: ModelName
    card: Annotated[list[str], "The behaviours for which the model's card names the heads."]
    replacement: Annotated[Replacement | None, "What replaces outputs; null where links are cut."]
    cut_query: Annotated[str | None, "The query whose links are cut, as it was named."]
    cut_key: Annotated[str | None, "Their key."]
    renormalised: Annotated[bool, "Whether the weights left sum to 1 again."]
    answer: AnswerName
    versus: VersusName
    tokens: Annotated[int, "How many tokens were measured."]
    texts: Annotated[int, "Of how many texts it is the mean, each with the same weight."]
    unit: Unit
    before: Annotated[float, "What is measured, with the parts."]
    after: Annotated[float, "The same without them."]
    change: Annotated[float, "The difference; negative: the parts help."]
    error: Error
    answer_exact: TokenText
    versus_exact: TokenText


class EffectRow(AblationRow):
    """The effect of ablating one part."""

    kind: AblatedKind
    layer: int
    head: Annotated[int | None, "The head's number in its layer; null but for a head."]


def effect_rows(
    report: AblationReport, effects: Sequence[Effect], line: int | None = 1
) -> list[EffectRow]:
    """A row for each of these effects, each of one part; `line` is None for means over lines."""
    return [{**_part_name(effect), **_row(report, effect, line)} for effect in effects]


def _part_name(effect: Effect) -> PartName:
    return _parts(effect)[0]


def _parts(effect: Effect) -> list[PartName]:
    return [
        {"kind": part.kind, "layer": part.layer or 0, "head": part.head}  # type: ignore[typeddict-item]
        for part in effect.parts
    ]


def _row(report: AblationReport, effect: Effect, line: int | None) -> AblationRow:
    cut = report.cut
    return {
        "line": line,
        "model": report.capture.model.name,
        "card": [e.behaviour for e in report.capture.named_heads if e.head in effect.heads],
        "replacement": None if cut else report.replacement,
        "cut_query": cut.query if cut else None,
        "cut_key": cut.key if cut else None,
        "renormalised": cut is not None and cut.renormalise,
        "answer": report.answer.label if report.answer else None,
        "versus": report.versus.label if report.versus else None,
        "tokens": report.tokens,
        "texts": report.lines or 1,
        "unit": "logits" if report.differences else "nats",
        "before": report.baseline,
        "after": report.baseline + effect.change,
        "change": effect.change,
        "error": effect.error,
        **own_changes(effect.own),
        "answer_exact": report.answer.exact if report.answer else None,
        "versus_exact": report.versus.exact if report.versus else None,
        **words_of(report.answer, report.versus),
    }


class TogetherRow(AblationRow):
    """A token that may come next, with the parts or without all of them."""

    parts: list[PartName]
    when: Annotated[Literal["before", "after"] | None, "With the parts, or without them."]
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
            "parts": _parts(effect),
            **_row(report, effect, line),
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
