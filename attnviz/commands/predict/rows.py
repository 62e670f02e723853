"""What a model predicts, as rows: candidates, or the parts of a logit."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

from attnviz.console import Display
from attnviz.draw.labels import distinct_labels
from attnviz.draw.outcome import Exact, Unit, exact
from attnviz.draw.parts import part_name
from attnviz.draw.titles import amount, facts
from attnviz.kit.result import Result, result_of
from attnviz.records.interventions import PredictedAnswer, Question
from attnviz.records.metrics import Estimate
from attnviz.records.predict import Attribution, NextTokens, Prediction, PredictionMean
from attnviz.records.rows import JsonOutput, LineNumber, LineOrMean, Row, declared, measured

if TYPE_CHECKING:
    from rich.console import RenderableType


class CandidateRow(TypedDict):
    """A token that may come next after a position."""

    line: LineOrMean
    position: Annotated[int | None, "The position after which it may come; of a mask, its own."]
    after: Annotated[str | None, "The token there; null where a mask is filled."]
    layer: Annotated[int | None, "As if the model ended after this layer; null: the whole model."]
    rank: Annotated[int | None, "Counted from 1, the likeliest."]
    id: int | None
    token: str | None
    probability: Annotated[float | None, "Of the candidate; its mean over the lines."]
    followed: Annotated[str | None, "The token that really follows; null at the end."]
    followed_probability: float | None
    followed_rank: int | None
    after_exact: str | None
    exact: str | None
    followed_exact: str | None
    error: Annotated[float | None, "Of a mean over lines, its standard error."]


def candidate_rows(prediction: Prediction, line: int = 1) -> list[CandidateRow]:
    """A row for each candidate: of every position, of every layer, of the whole model."""
    every = (*prediction.each, *prediction.lens[:-1], prediction.last)
    return [row for each in every for row in _candidates(prediction, each, line)]


def _candidates(
    prediction: Prediction, next_tokens: NextTokens, line: int
) -> Iterator[CandidateRow]:
    true = next_tokens.followed
    after = prediction.capture.query_tokens[next_tokens.position]
    for rank, candidate in enumerate(next_tokens.candidates, start=1):
        yield {
            "line": line,
            "position": next_tokens.position,
            "after": None if prediction.fills else after.label,
            "layer": next_tokens.layer,
            "rank": rank,
            "id": candidate.id,
            "token": candidate.label,
            "probability": candidate.probability,
            "followed": true.label if true else None,
            "followed_probability": true.probability if true else None,
            "followed_rank": next_tokens.rank,
            "after_exact": None if prediction.fills else after.exact,
            "exact": candidate.exact,
            "followed_exact": true.exact if true else None,
            "error": None,
        }


def mean_rows(mean: PredictionMean) -> "list[CandidateRow] | list[AnswerRow]":
    """The means over the lines: of an answer, or of the likeliest token and those that followed."""
    if mean.question is not None and mean.measured is not None:
        return [_question(mean.question, mean.measured, None)]
    rows = [_mean(mean.likeliest)]
    if mean.followed is not None:
        rows.append(_mean(mean.followed, followed=True))
    return rows


def _mean(found: Estimate, *, followed: bool = False) -> CandidateRow:
    return {
        "line": None,
        "position": None,
        "after": None,
        "layer": None,
        "rank": None if followed else 1,
        "id": None,
        "token": None,
        "probability": None if followed else found.mean,
        "followed": None,
        "followed_probability": found.mean if followed else None,
        "followed_rank": None,
        "after_exact": None,
        "exact": None,
        "followed_exact": None,
        "error": found.error,
    }


class AnsweredRow(TypedDict):
    """What is predicted of an answer, and what of another token."""

    line: LineOrMean
    answer: str
    versus: Annotated[str | None, "The token whose logit is subtracted."]
    unit: Unit
    measured: Annotated[
        float,
        "The difference of both logits; the log-probability of the answer where there is no "
        "versus.",
    ]
    error: Annotated[float | None, "Of a mean over lines, its standard error."]
    answer_rank: Annotated[int | None, "Counted from 1, the likeliest; null: a mean."]
    answer_logit: float | None
    answer_log_probability: Annotated[float | None, "In nats."]
    versus_rank: int | None
    versus_logit: float | None
    versus_log_probability: Annotated[float | None, "In nats."]


class AnswerRow(AnsweredRow, Exact):
    """What is predicted of an answer, alone or rather than another token."""


def answer_row(asked: PredictedAnswer, line: int = 1) -> AnswerRow:
    """The one row of an answer."""
    outcome, ranks = asked.outcome, (*asked.ranks, None)
    return {
        **_question(asked.question, Estimate(outcome.measured), line),
        "answer_rank": ranks[0],
        "answer_logit": outcome.answer_logit,
        "answer_log_probability": outcome.answer_log_probability,
        "versus_rank": ranks[1],
        "versus_logit": measured(outcome.versus_logit),
        "versus_log_probability": measured(outcome.versus_log_probability),
    }


def _question(question: Question, found: Estimate, line: int | None) -> AnswerRow:
    """A row of which nothing is known but what is measured."""
    versus = question.versus
    return {
        "line": line,
        "answer": question.answer.label,
        "versus": versus.label if versus else None,
        "unit": "logits" if versus else "nats",
        "measured": found.mean,
        "error": found.error,
        "answer_rank": None,
        "answer_logit": None,
        "answer_log_probability": None,
        "versus_rank": None,
        "versus_logit": None,
        "versus_log_probability": None,
        **exact(question.answer, versus),
    }


class LogitPartRow(TypedDict):
    """A part of the model, and what it adds to the likeliest token's logit."""

    line: LineNumber
    token: Annotated[str, "The likeliest token."]
    versus: Annotated[str | None, "The token whose logit is subtracted."]
    logit: Annotated[float, "The logit, or the difference."]
    part: Annotated[str, "The part, for a person."]
    kind: str
    layer: int | None
    head: int | None
    source: Annotated[int | None, "The token that the part is from."]
    value: Annotated[float, "What it adds."]


def logit_part_rows(
    prediction: Prediction, top: int | None = None, line: int = 1
) -> list[LogitPartRow]:
    """A row for each part of the logit, the strongest first."""
    made, labels = prediction.attribution, distinct_labels(prediction.capture.query_tokens)
    assert made is not None
    strongest = made.shares.strongest(len(made.shares.parts))[:top]
    return [_part(made, i, labels, line) for i in strongest]


def _part(made: Attribution, i: int, labels: tuple[str, ...], line: int) -> LogitPartRow:
    part = made.shares.parts[i]
    return {
        "line": line,
        "token": made.token.label,
        "versus": made.versus.label if made.versus else None,
        "logit": made.logit,
        "part": part_name(part, labels),
        "kind": part.kind,
        "layer": part.layer,
        "head": part.head,
        "source": part.source,
        "value": float(made.shares.values[0, i]),
    }


# Predictions as results.


PARTS = 10
"""Parts of a logit that the terminal shows."""


def of_prediction(
    prediction: Prediction, top: int | None = None, line: int = 1
) -> Result[Prediction]:
    """The next tokens, or the likeliest one's logit in parts.

    Args:
        prediction: what was predicted.
        top: how many parts of a logit.
        line: the number of the input line.
    """

    def made() -> Sequence[Row]:
        if prediction.attribution is not None:
            return logit_part_rows(prediction, top, line)
        if prediction.asked is not None:
            return [answer_row(prediction.asked, line)]
        return candidate_rows(prediction, line)

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.predict import terminal as table

        return table.render(prediction, display, top or PARTS)

    kinds = LogitPartRow, AnswerRow, CandidateRow
    captured = prediction.capture
    return result_of(
        "predict", prediction, facts(captured), kinds, made, shown, captures=(captured,)
    )


def of_mean(mean: PredictionMean) -> Result[PredictionMean]:
    """How sure the model is over several texts."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.predict import terminal as table

        return table.render_mean(mean, display)

    about = f"{mean.model}, mean of {amount(mean.texts, 'text')}"
    kinds = AnswerRow, CandidateRow
    return result_of("predict", mean, about, kinds, lambda: mean_rows(mean), shown)


JSON = JsonOutput(
    (
        declared(CandidateRow),
        declared(AnswerRow),
        declared(LogitPartRow),
    ),
    (),
)
