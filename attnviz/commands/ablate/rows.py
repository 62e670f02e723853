"""What a model loses without some of its parts, as rows."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from attnviz.commands.ablate.record import AblationReport, BeforeAfter, Effect, Found, mean_of
from attnviz.console import Display
from attnviz.draw.outcome import AnswerName, Exact, OwnChanges, Unit, VersusName, exact, own_changes
from attnviz.draw.titles import facts
from attnviz.kit.result import Result, result_of
from attnviz.records.interventions import Candidate, Replacement
from attnviz.records.predict import NextTokens
from attnviz.records.rows import Error, JsonOutput, LineOrMean, ModelName, declared

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


AblatedKind = Literal["head", "mlp", "layer"]


class PartName(TypedDict):
    """A part of a model; `head` is null but for a head."""

    kind: AblatedKind
    layer: int
    head: int | None


class RunRow(TypedDict):
    """Which text was run through which model."""

    line: LineOrMean
    model: ModelName


class MeasuredRow(TypedDict):
    """What was done to a text, and by how much it changed what is measured."""

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


class AblationRow(MeasuredRow, OwnChanges, Exact):
    """What was done to a text, and all that it changed."""


class EffectRow(RunRow, PartName, AblationRow):
    """The effect of ablating one part."""


def effect_rows(
    report: AblationReport, effects: Sequence[Effect], line: int | None = 1
) -> list[EffectRow]:
    """A row for each of these effects, each of one part; `line` is None for means over lines."""
    run = _run(report, line)
    return [{**run, **_parts(effect)[0], **_row(report, effect)} for effect in effects]


def _run(report: AblationReport, line: int | None) -> RunRow:
    return {"line": line, "model": report.capture.model.name}


def _parts(effect: Effect) -> list[PartName]:
    return [
        {"kind": part.kind, "layer": part.layer or 0, "head": part.head}  # type: ignore[typeddict-item]
        for part in effect.parts
    ]


def _row(report: AblationReport, effect: Effect) -> AblationRow:
    cut = report.cut
    return {
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
        **exact(report.answer, report.versus),
    }


class PartsRow(TypedDict):
    """What is ablated together."""

    parts: list[PartName]


class TogetherRow(RunRow, PartsRow, AblationRow):
    """A token that may come next, with the parts or without all of them."""

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
            **_run(report, line),
            "parts": _parts(effect),
            **_row(report, effect),
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


# Ablations as results.


SHOWN = 10
"""Parts that the terminal names."""


def of_ablation(
    report: AblationReport, top: int | None = None, line: int | None = 1
) -> Result[AblationReport]:
    """The effects of single parts, of the `top` that matter most; None: all, as rows.

    `line`: the number of the input line; None: the mean over all.
    """

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.ablate import terminal as table

        return table.render(report, report.strongest[: top or SHOWN], display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.ablate import picture

        return picture.draw(report, **look)

    about = facts(report.capture)
    return result_of(
        "ablate",
        report,
        about,
        (EffectRow,),
        lambda: effect_rows(report, report.strongest[:top], line),
        shown,
        draw,
        captures=(report.capture,),
    )


def of_together(both: BeforeAfter, line: int | None = 1) -> Result[BeforeAfter]:
    """The next tokens with some parts and without them; `line` as for `of_ablation`."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.ablate import terminal as table

        return table.render_together(both, display)

    about = facts(both.report.capture)
    return result_of(
        "ablate",
        both,
        about,
        (TogetherRow,),
        lambda: together_rows(both, line),
        shown,
        captures=(both.report.capture,),
    )


def of_found(found: Found, top: int | None = None, line: int | None = 1) -> Result[Any]:
    """Whichever of the two it is."""
    if isinstance(found, BeforeAfter):
        return of_together(found, line)
    return of_ablation(found, top, line)


def of_mean(found: Sequence[Found], top: int | None = None) -> Result[Any]:
    """The mean over several texts, of single parts or of all of them together."""
    report = mean_of([f.report if isinstance(f, BeforeAfter) else f for f in found])
    if isinstance(found[0], BeforeAfter):
        nothing = NextTokens(0, None, ())
        return of_together(BeforeAfter(report, nothing, nothing), None)
    return of_ablation(report, top, None)


JSON = JsonOutput(
    (
        declared(EffectRow),
        declared(TogetherRow),
    ),
    (),
)
