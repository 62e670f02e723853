"""`attnviz sinks`: how much of its attention each head leaves on the first token."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeAlias

from rich.console import RenderableType

from attnviz.console import Display
from attnviz.draw.terminal.cells import Column, listing
from attnviz.draw.titles import facts
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import run_texts
from attnviz.kit.option import Call, command_of, feature, panel_option
from attnviz.kit.prepare import prepare
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, loaded, model_of
from attnviz.records.capture import Capture
from attnviz.records.heads import Head, every_head
from attnviz.records.rows import Field, Fields, JsonOutput, head_fields

Above: TypeAlias = Annotated[
    float,
    panel_option(g.LOOK, "--above", metavar="W", min=0.0, max=1.0, help="Leave out weaker sinks."),
]


@dataclass(frozen=True)
class Sink:
    """The mean weight (0 to 1) that a head's queries give to the first token."""

    head: Head
    weight: float


SINK = Fields[Sink](
    "SinkRow",
    "The attention that a head leaves on the first token.",
    (
        *head_fields(lambda sink: sink.head),
        Field("weight", float, "The mean over the queries after the first."),
    ),
)
JSON = JsonOutput((SINK,))


@dataclass(frozen=True)
class SinkReport:
    """What is found: `capture` is the run."""

    capture: Capture
    sinks: tuple[Sink, ...]


def render(report: SinkReport, display: Display) -> Iterator[RenderableType]:
    """A line for each head."""
    columns = (Column("head"), Column("first token", right=True))
    rows = [(str(sink.head), f"{sink.weight:.2f}") for sink in report.sinks]
    yield from listing(columns, rows, display.width)


FORM = Form[SinkReport](
    "sinks",
    SINK,
    lambda report, top, line: report.sinks[:top],
    lambda report: facts(report.capture),
    render,
)


@feature()
def sinks(
    text: str, model: AnyModel = "builtin", *, above: Above = 0.0, bos: g.Bos = None
) -> Result[SinkReport]:
    """Measure how much of its attention each head leaves on the first token.

    Args:
        text: a text.
        model: a name as for `load_model`, or a loaded model.
    """
    model = loaded(model)
    prepared = prepare(model._loaded, text, model._text_options(bos, False, None))
    capture = prepared.record(every_head(model.heads_per_layer))
    every = (Sink(head, float(capture.weights(head)[1:, 0].mean())) for head in capture.heads)
    report = SinkReport(capture, tuple(sink for sink in every if sink.weight > above))
    return Result(FORM, report, (capture,))


EXAMPLES = """
attnviz sinks "a fluffy blue creature" --above 0.5
"""
SHORT_HELP = "file above model format output quiet"


@command_of(sinks, "text above bos model run")
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    model: g.WhichModel,
    run: g.ModelRun,
    output: g.RecordOutput,
) -> None:
    """Measure how much of its attention each head leaves on the first token."""
    load = partial(model_of, session, model, run)
    run_texts(session, call, destination_of(session, output), text, load)
