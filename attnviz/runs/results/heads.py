"""What is measured of heads, as results."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attnviz.console import Display
from attnviz.data.labels import LabelReport
from attnviz.data.retrieval import Retrieval
from attnviz.draw.titles import amount
from attnviz.kit.result import Result
from attnviz.records.metrics import HeadReport
from attnviz.records.parts import Circuits
from attnviz.renderers.rows import heads as rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


def of_report(report: HeadReport) -> Result[HeadReport]:
    """The metrics of heads."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import heads as table

        return table.render(report, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import heads as picture

        return picture.draw(report, **look)

    about = f"{report.capture.model.name}, {amount(len(report.heads), 'head')}"
    return Result(
        "heads",
        report,
        about,
        (rows.HeadRow,),
        lambda: rows.head_rows(report),
        shown,
        draw,
        captures=(report.capture,),
    )


def of_retrieval(retrieval: Retrieval, top: int | None = None) -> Result[Retrieval]:
    """How heads copy; of the `top` that copy most."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import retrieval as table

        return table.render(retrieval, retrieval.ranked[:top], display)

    about = f"{retrieval.model.name}, retrieval"
    return Result(
        "heads",
        retrieval,
        about,
        (rows.RetrievalRow,),
        lambda: rows.retrieval_rows(retrieval, top),
        shown,
        models=(retrieval.model,),
    )


def of_circuits(circuits: Circuits, top: int | None = None) -> Result[Circuits]:
    """What the weights say; of the `top` of each kind."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import circuits as table

        return table.render(circuits, top, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import circuits as picture

        return picture.draw(circuits, **look)

    about = f"{circuits.model.name}, circuits"
    return Result(
        "heads",
        circuits,
        about,
        (rows.CircuitRow,),
        lambda: rows.circuit_rows(circuits, top),
        shown,
        draw,
        models=(circuits.model,),
    )


def of_labels(report: LabelReport, top: int | None = None) -> Result[LabelReport]:
    """The scores on labelled links, of the `top` best heads."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.renderers.terminal import labels as table

        return table.render(report, report.scores[:top], display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import labels as picture

        return picture.draw(report, **look)

    about = f"{report.model.name}, {amount(report.texts, 'labelled text')}"
    return Result(
        "heads",
        report,
        about,
        (rows.LabelRow,),
        lambda: rows.label_rows(report, top),
        shown,
        draw,
        captures=report.runs,
    )
