"""What `attnviz heads` measures, as rows: metrics, retrieval, circuits, labelled links."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from attnviz.commands.heads.labels import LabelReport, LabelScore
from attnviz.commands.heads.retrieval import Retrieval
from attnviz.commands.heads.titles import heads_title
from attnviz.console import Display
from attnviz.draw.titles import amount
from attnviz.kit.result import Result, result_of
from attnviz.records.metrics import HeadMetrics, HeadReport
from attnviz.records.parts import Circuits
from attnviz.records.rows import (
    Error,
    HeadNumber,
    JsonOutput,
    LayerNumber,
    ModelName,
    declared,
    measured,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


class HeadRow(TypedDict):
    """The metrics of a head (docs/metrics.md); null where a metric could not be measured."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    role: Annotated[str | None, "The first role whose threshold is met."]
    passed: Annotated[str | None, "That threshold: 'induction ≥ 0.4'."]
    card: Annotated[list[str], "The behaviours for which the model's card names the head."]
    entropy: Annotated[float | None, "Mean entropy of a row, in nats."]
    entropy_error: Error
    normalised: Annotated[float | None, "Entropy as a share of the largest possible one."]
    normalised_error: Error
    distance: Annotated[float | None, "Mean distance from query to key, in tokens."]
    distance_error: Error
    previous: Annotated[float | None, "Mean weight on the previous token."]
    previous_error: Error
    first: Annotated[float | None, "Mean weight on the first token."]
    first_error: Error
    self: Annotated[float | None, "Mean weight on the token itself."]
    self_error: Error
    duplicate: Annotated[float | None, "Mean weight on earlier occurrences of the token."]
    duplicate_error: Error
    induction: Annotated[float | None, "Mean weight on what followed them."]
    induction_error: Error
    measured: Annotated[str, "The text or the probe, for a person."]


def head_rows(report: HeadReport) -> list[HeadRow]:
    """A row for each head, in the report's order."""
    title = heads_title(report)
    return [_head_row(report, each, title) for each in report.heads]


def _head_row(report: HeadReport, each: HeadMetrics, title: str) -> HeadRow:
    def mean(metric: str) -> float | None:
        return measured(each.metrics[metric].mean)

    def error(metric: str) -> float | None:
        return measured(each.metrics[metric].error)

    return {
        "model": report.capture.model.name,
        "layer": each.head.layer,
        "head": each.head.head,
        "role": each.role.name if each.role else None,
        "passed": f"{each.role.metric} ≥ {each.role.least:g}" if each.role else None,
        "card": list(each.named),
        "entropy": mean("entropy"),
        "entropy_error": error("entropy"),
        "normalised": mean("normalised"),
        "normalised_error": error("normalised"),
        "distance": mean("distance"),
        "distance_error": error("distance"),
        "previous": mean("previous"),
        "previous_error": error("previous"),
        "first": mean("first"),
        "first_error": error("first"),
        "self": mean("self"),
        "self_error": error("self"),
        "duplicate": mean("duplicate"),
        "duplicate_error": error("duplicate"),
        "induction": mean("induction"),
        "induction_error": error("induction"),
        "measured": title,
    }


class RetrievalRow(TypedDict):
    """How a head copies from a long text."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    retrieval: Annotated[float, "The share of copied tokens that are the head's strongest key."]


def retrieval_rows(retrieval: Retrieval, top: int | None = None) -> list[RetrievalRow]:
    """A row for each head, the strongest first."""
    return [
        {
            "model": retrieval.model.name,
            "layer": head.layer,
            "head": head.head,
            "retrieval": score,
        }
        for head, score in retrieval.ranked[:top]
    ]


class CircuitRow(TypedDict):
    """A head that may copy, or a pair of heads that may compose."""

    model: ModelName
    circuit: Annotated[
        Literal["copying", "query", "key", "value"],
        "Copying, or through what the reader reads the writer.",
    ]
    layer: Annotated[int, "The layer of the head; of a pair, of the writer."]
    head: Annotated[int, "The head's number in it."]
    reader_layer: Annotated[int | None, "The layer of a pair's reader."]
    reader_head: Annotated[int | None, "The reader's number in it."]
    score: Annotated[
        float | None,
        "Copying: the sum of the eigenvalues over the sum of their sizes, from -1 to 1; else the "
        "composition score. Null where a circuit is 0.",
    ]
    expected: Annotated[float, "The mean score of random matrices of these shapes."]
    top: Annotated[float | None, "Copying: the share of tokens that raise themselves most."]
    tokens: Annotated[int | None, "Copying: how many tokens were looked at."]


def circuit_rows(circuits: Circuits, top: int | None = None) -> list[CircuitRow]:
    """The `top` heads that may copy, then the `top` pairs that may compose."""
    return [*_copying(circuits, top), *_composing(circuits, top)]


def _copying(circuits: Circuits, top: int | None) -> Iterator[CircuitRow]:
    for each in circuits.copying[:top]:
        yield {
            "model": circuits.model.name,
            "circuit": "copying",
            "layer": each.head.layer,
            "head": each.head.head,
            "reader_layer": None,
            "reader_head": None,
            "score": measured(each.eigenvalues),
            "expected": 0.0,
            "top": measured(each.top),
            "tokens": each.tokens,
        }


def _composing(circuits: Circuits, top: int | None) -> Iterator[CircuitRow]:
    for pair in islice(circuits.compositions, top):
        yield {
            "model": circuits.model.name,
            "circuit": pair.through,
            "layer": pair.writer.layer,
            "head": pair.writer.head,
            "reader_layer": pair.reader.layer,
            "reader_head": pair.reader.head,
            "score": measured(pair.score),
            "expected": circuits.expected[pair.through],
            "top": None,
            "tokens": None,
        }


class LabelRow(TypedDict):
    """How much of a head's attention goes to the true keys; means over texts."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    mass: Annotated[float | None, "Mean weight on all true keys of a row."]
    mass_error: Error
    strongest: Annotated[float | None, "The share of rows whose strongest key is a true one."]
    strongest_error: Error
    texts: Annotated[int, "How many texts."]
    rows: Annotated[int, "How many labelled rows."]


def label_rows(report: LabelReport, top: int | None = None) -> list[LabelRow]:
    """A row for each head, the best first."""
    scores: Sequence[LabelScore] = report.scores[:top]
    return [
        {
            "model": report.model.name,
            "layer": score.head.layer,
            "head": score.head.head,
            "mass": measured(score.mass.mean),
            "mass_error": measured(score.mass.error),
            "strongest": measured(score.strongest.mean),
            "strongest_error": measured(score.strongest.error),
            "texts": report.texts,
            "rows": report.rows,
        }
        for score in scores
    ]


# What is measured of heads, as results.


def of_report(report: HeadReport) -> Result[HeadReport]:
    """The metrics of heads."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.heads import terminal as table

        return table.render(report, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.heads import picture

        return picture.draw(report, **look)

    about = f"{report.capture.model.name}, {amount(len(report.heads), 'head')}"
    return result_of(
        "heads",
        report,
        about,
        (HeadRow,),
        lambda: head_rows(report),
        shown,
        draw,
        captures=(report.capture,),
    )


def of_retrieval(retrieval: Retrieval, top: int | None = None) -> Result[Retrieval]:
    """How heads copy; of the `top` that copy most."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.heads import retrieval as table

        return table.render(retrieval, retrieval.ranked[:top], display)

    about = f"{retrieval.model.name}, retrieval"
    return result_of(
        "heads",
        retrieval,
        about,
        (RetrievalRow,),
        lambda: retrieval_rows(retrieval, top),
        shown,
        models=(retrieval.model,),
    )


def of_circuits(circuits: Circuits, top: int | None = None) -> Result[Circuits]:
    """What the weights say; of the `top` of each kind."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.heads import circuits as table

        return table.render(circuits, top, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.heads import circuits as picture

        return picture.draw(circuits, **look)

    about = f"{circuits.model.name}, circuits"
    return result_of(
        "heads",
        circuits,
        about,
        (CircuitRow,),
        lambda: circuit_rows(circuits, top),
        shown,
        draw,
        models=(circuits.model,),
    )


def of_labels(report: LabelReport, top: int | None = None) -> Result[LabelReport]:
    """The scores on labelled links, of the `top` best heads."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.heads import labels as table

        return table.render(report, report.scores[:top], display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.heads import labels as picture

        return picture.draw(report, **look)

    about = f"{report.model.name}, {amount(report.texts, 'labelled text')}"
    return result_of(
        "heads",
        report,
        about,
        (LabelRow,),
        lambda: label_rows(report, top),
        shown,
        draw,
        captures=report.runs,
    )


JSON = JsonOutput(
    (
        declared(HeadRow),
        declared(RetrievalRow),
        declared(CircuitRow),
        declared(LabelRow),
    ),
    (),
)
