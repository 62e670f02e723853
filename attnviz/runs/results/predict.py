"""Predictions as results."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attnviz.console import Display
from attnviz.data.predict import Prediction
from attnviz.renderers.rows import predict as rows
from attnviz.renderers.titles import facts
from attnviz.runs.results.result import Result, Row

if TYPE_CHECKING:
    from rich.console import RenderableType

PARTS = 10
"""Parts of a logit that the terminal shows."""


def of_prediction(prediction: Prediction, top: int | None = None) -> Result[Prediction]:
    """The next tokens, or the likeliest one's logit in parts; `top`: how many parts."""

    def made() -> Sequence[Row]:
        if prediction.attribution is not None:
            return rows.logit_part_rows(prediction, top)
        return rows.candidate_rows(prediction)

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import predict as table

        return table.render(prediction, display, top or PARTS)

    return Result("predict", prediction, facts(prediction.capture), made, shown)
