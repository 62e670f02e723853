"""What `attnviz heads` measures, as rows and results: metrics, retrieval, circuits, labels."""

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Literal, TypeAlias

from attnviz.commands.heads.labels import LabelReport, LabelScore
from attnviz.commands.heads.retrieval import Retrieval
from attnviz.draw.titles import amount, facts
from attnviz.errors import readable
from attnviz.kit.result import Form, Result
from attnviz.records.heads import Head
from attnviz.records.metrics import METRICS, Estimate, HeadMetrics, HeadReport, Metric
from attnviz.records.parts import Circuits, Composition, Copying
from attnviz.records.rows import ERROR, Field, Fields, JsonOutput, head_fields, measured, model_name

OfReport: TypeAlias = tuple[HeadReport, HeadMetrics]
OfRetrieval: TypeAlias = tuple[Retrieval, Head, float]
OfCircuits: TypeAlias = tuple[Circuits, Copying | Composition]
OfLabels: TypeAlias = tuple[LabelReport, LabelScore]


def heads_title(report: HeadReport) -> str:
    """What was measured on what."""
    if report.probe:
        return f"{readable(report.capture.model.name)}, probe: {report.probe}"
    return facts(report.capture)


def untold(report: HeadReport) -> str:
    """Which roles were measured over too few rows, and over how many."""
    few = (f"{role.name} ({rows} of {role.rows})" for role, rows in report.untold)
    return f"these roles need more rows: {', '.join(few)}"


def _role(row: OfReport) -> str | None:
    return row[1].role.name if row[1].role else None


def _passed(row: OfReport) -> str | None:
    role = row[1].role
    return f"{role.metric} ≥ {role.least:g}" if role else None


def _of_metric(metric: Metric) -> Iterator[Field[OfReport]]:
    def value(row: OfReport) -> Estimate:
        return row[1].metrics[metric.name]

    yield Field(metric.name, float | None, metric.sentence, lambda row: measured(value(row).mean))
    yield Field(f"{metric.name}_error", float | None, ERROR, lambda row: measured(value(row).error))


HEAD_ROW = Fields[OfReport](
    "HeadRow",
    "The metrics of a head (docs/metrics.md); null where a metric could not be measured.",
    (
        model_name(lambda row: row[0].capture.model.name),
        *head_fields(lambda row: row[1].head),
        Field("role", str | None, "The first role whose threshold is met.", _role),
        Field("passed", str | None, "That threshold: 'induction ≥ 0.4'.", _passed),
        Field(
            "card",
            list[str],
            "The behaviours for which the model's card names the head.",
            lambda row: row[1].named,
        ),
        *(field for metric in METRICS.values() for field in _of_metric(metric)),
        Field(
            "measured", str, "The text or the probe, for a person.", lambda row: heads_title(row[0])
        ),
    ),
)
RETRIEVAL_ROW = Fields[OfRetrieval](
    "RetrievalRow",
    "How a head copies from a long text.",
    (
        model_name(lambda row: row[0].model.name),
        *head_fields(lambda row: row[1]),
        Field(
            "retrieval",
            float,
            "The share of copied tokens that are the head's strongest key.",
            lambda row: row[2],
        ),
    ),
)


def _head(row: OfCircuits) -> Head:
    return row[1].head if isinstance(row[1], Copying) else row[1].writer


def _reader(row: OfCircuits) -> Head | None:
    return row[1].reader if isinstance(row[1], Composition) else None


def _score(row: OfCircuits) -> float | None:
    return measured(row[1].eigenvalues if isinstance(row[1], Copying) else row[1].score)


CIRCUIT_ROW = Fields[OfCircuits](
    "CircuitRow",
    "A head that may copy, or a pair of heads that may compose.",
    (
        model_name(lambda row: row[0].model.name),
        Field(
            "circuit",
            Literal["copying", "query", "key", "value"],
            "Copying, or through what the reader reads the writer.",
            lambda row: getattr(row[1], "through", "copying"),
        ),
        Field(
            "layer",
            int,
            "The layer of the head; of a pair, of the writer.",
            lambda row: _head(row).layer,
        ),
        Field("head", int, "The head's number in it.", lambda row: _head(row).head),
        Field(
            "reader_layer",
            int | None,
            "The layer of a pair's reader.",
            lambda row: getattr(_reader(row), "layer", None),
        ),
        Field(
            "reader_head",
            int | None,
            "The reader's number in it.",
            lambda row: getattr(_reader(row), "head", None),
        ),
        Field(
            "score",
            float | None,
            "Copying: the sum of the eigenvalues over the sum of their sizes, from -1 to 1; else "
            "the composition score. Null where a circuit is 0.",
            _score,
        ),
        Field(
            "expected",
            float,
            "The mean score of random matrices of these shapes.",
            lambda row: row[0].expected[row[1].through] if isinstance(row[1], Composition) else 0.0,
        ),
        Field(
            "top",
            float | None,
            "Copying: the share of tokens that raise themselves most.",
            lambda row: measured(getattr(row[1], "top", None)),
        ),
        Field(
            "tokens",
            int | None,
            "Copying: how many tokens were looked at.",
            lambda row: getattr(row[1], "tokens", None),
        ),
    ),
)
LABEL_ROW = Fields[OfLabels](
    "LabelRow",
    "How much of a head's attention goes to the true keys; means over texts.",
    (
        model_name(lambda row: row[0].model.name),
        *head_fields(lambda row: row[1].head),
        Field(
            "mass",
            float | None,
            "Mean weight on all true keys of a row.",
            lambda row: measured(row[1].mass.mean),
        ),
        Field("mass_error", float | None, ERROR, lambda row: measured(row[1].mass.error)),
        Field(
            "strongest",
            float | None,
            "The share of rows whose strongest key is a true one.",
            lambda row: measured(row[1].strongest.mean),
        ),
        Field("strongest_error", float | None, ERROR, lambda row: measured(row[1].strongest.error)),
        Field("texts", int, "How many texts.", lambda row: row[0].texts),
        Field("rows", int, "How many labelled rows.", lambda row: row[0].rows),
    ),
)
JSON = JsonOutput((HEAD_ROW, RETRIEVAL_ROW, CIRCUIT_ROW, LABEL_ROW))


def of_report(report: HeadReport) -> Result[HeadReport]:
    """The metrics of heads."""
    return Result(REPORT, report, captures=(report.capture,))


def of_retrieval(retrieval: Retrieval, top: int | None = None) -> Result[Retrieval]:
    """How heads copy; of the `top` that copy most."""
    return Result(RETRIEVAL, retrieval, models=(retrieval.model,), _top=top)


def of_circuits(circuits: Circuits, top: int | None = None) -> Result[Circuits]:
    """What the weights say; of the `top` of each kind."""
    return Result(CIRCUITS, circuits, models=(circuits.model,), _top=top)


def of_labels(report: LabelReport, top: int | None = None) -> Result[LabelReport]:
    """The scores on labelled links, of the `top` best heads."""
    return Result(LABELS, report, captures=report.runs, _top=top)


REPORT = Form[HeadReport](
    "heads",
    HEAD_ROW,
    lambda report, top, line: ((report, each) for each in report.heads),
    lambda report: f"{report.capture.model.name}, {amount(len(report.heads), 'head')}",
    "attnviz.commands.heads.terminal:render",
    "attnviz.commands.heads.picture:draw",
)
RETRIEVAL = Form[Retrieval](
    "heads",
    RETRIEVAL_ROW,
    lambda retrieval, top, line: ((retrieval, *each) for each in retrieval.ranked[:top]),
    lambda retrieval: f"{retrieval.model.name}, retrieval",
    "attnviz.commands.heads.retrieval:render",
    top=sys.maxsize,
)
CIRCUITS = Form[Circuits](
    "heads",
    CIRCUIT_ROW,
    lambda circuits, top, line: (
        (circuits, each) for each in (*circuits.copying[:top], *islice(circuits.compositions, top))
    ),
    lambda circuits: f"{circuits.model.name}, circuits",
    "attnviz.commands.heads.circuits:render",
    "attnviz.commands.heads.circuits:draw",
    top=10,
)
LABELS = Form[LabelReport](
    "heads",
    LABEL_ROW,
    lambda report, top, line: ((report, score) for score in report.scores[:top]),
    lambda report: f"{report.model.name}, {amount(report.texts, 'labelled text')}",
    "attnviz.commands.heads.labels:render",
    "attnviz.commands.heads.labels:draw",
    top=sys.maxsize,
)
