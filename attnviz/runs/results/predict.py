"""Predictions as results."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attnviz.console import Display
from attnviz.draw.titles import amount, facts
from attnviz.kit.result import Result, Row
from attnviz.records.predict import Prediction, PredictionMean
from attnviz.renderers.rows import predict as rows

if TYPE_CHECKING:
    from rich.console import RenderableType

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
            return rows.logit_part_rows(prediction, top, line)
        if prediction.asked is not None:
            return [rows.answer_row(prediction.asked, line)]
        return rows.candidate_rows(prediction, line)

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import predict as table

        return table.render(prediction, display, top or PARTS)

    kinds = rows.LogitPartRow, rows.AnswerRow, rows.CandidateRow
    captured = prediction.capture
    return Result("predict", prediction, facts(captured), kinds, made, shown, captures=(captured,))


def of_mean(mean: PredictionMean) -> Result[PredictionMean]:
    """How sure the model is over several texts."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import predict as table

        return table.render_mean(mean, display)

    about = f"{mean.model}, mean of {amount(mean.texts, 'text')}"
    kinds = rows.AnswerRow, rows.CandidateRow
    return Result("predict", mean, about, kinds, lambda: rows.mean_rows(mean), shown)
