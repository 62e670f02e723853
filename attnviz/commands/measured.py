"""What `attnviz heads` measures in place of its metrics: retrieval, and labelled links."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, deliver_report
from attnviz.commands.flags import as_flag
from attnviz.commands.session import Session
from attnviz.data.circuits import Circuits
from attnviz.data.labels import LabelReport, LabelScore
from attnviz.data.retrieval import Needles
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.inputs.labels import read_labels
from attnviz.models.catalog import Source
from attnviz.renderers.terminal import circuits as circuits_table
from attnviz.renderers.terminal import labels as labels_table
from attnviz.renderers.terminal import retrieval as retrieval_table
from attnviz.runs.circuits import circuits_of
from attnviz.runs.known import keep
from attnviz.runs.labels import LabelRun
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import load_model
from attnviz.runs.retrieval import measure_retrieval

if TYPE_CHECKING:
    from attnviz.renderers.picture.canvas import Drawn

OF_TEXTS = "file", "probe", "sort", "role"
"""Options of a text's, or the probe's, metrics."""


def _no_text(session: Session) -> None:
    if session.given("text"):
        raise UsageError("this is measured without a text of yours", "leave the text out")


def check_retrieval(session: Session, probed: type[Any]) -> None:
    """Only options that mean something where retrieval is measured."""
    _no_text(session)
    wrong = "does nothing for the measurement of retrieval"
    groups = probed, g.Target, g.Kind, g.WhichHeads, g.HeadTransforms, g.Canvas
    session.refuse(*OF_TEXTS, "special", "truncate", "labels", *groups, wrong=wrong)


def retrieve(
    session: Session, to: Destination, source: Source, options: TextOptions, top: int | None
) -> None:
    """Measure, remember, and list the heads, the strongest first."""
    loaded = load_model(source)
    retrieval = measure_retrieval(loaded, Needles(), options)
    if keep(loaded, retrieval) is None:
        session.note("the scores are not remembered, as the cache folder cannot be written")
    scores = sorted(retrieval.scores, key=lambda each: (-each[1], each[0]))[:top]
    deliver_report(
        session,
        to,
        lambda: [
            {"model": retrieval.model.name, "head": str(head), "retrieval": score}
            for head, score in scores
        ],
        lambda: retrieval_table.render(retrieval, scores, to.display(session)),
    )


def check_circuits(session: Session, probed: type[Any]) -> None:
    """Only options that mean something for weights alone."""
    _no_text(session)
    wrong = "does nothing for circuits, which are read off the weights"
    groups = probed, g.Target, g.WhichHeads, g.HeadTransforms, g.Tokens
    session.refuse(*OF_TEXTS, "retrieval", "labels", *groups, wrong=wrong)


def read_circuits(
    session: Session,
    to: Destination,
    source: Source,
    top: int | None,
    look: Mapping[str, Any],
) -> None:
    """Read copying and composition off the weights."""
    circuits = circuits_of(load_model(source))

    def draw() -> "Drawn":
        from attnviz.renderers.picture import circuits as picture

        return picture.draw(circuits, **look)

    deliver_report(
        session,
        to,
        lambda: list(_circuit_records(circuits, top)),
        lambda: circuits_table.render(circuits, top, to.display(session)),
        draw,
    )


def _circuit_records(circuits: Circuits, top: int | None) -> Iterator[Mapping[str, object]]:
    """A row for each head that may copy, and for each pair that may compose."""
    for each in circuits.copying[:top]:
        yield {
            "model": circuits.model.name,
            "circuit": "copying",
            "head": str(each.head),
            "reader": None,
            "score": each.eigenvalues,
            "expected": 0.0,
            "top": each.top,
            "tokens": each.tokens,
        }
    for pair in circuits.compositions[:top]:
        yield {
            "model": circuits.model.name,
            "circuit": pair.through,
            "head": str(pair.writer),
            "reader": str(pair.reader),
            "score": pair.score,
            "expected": circuits.expected[pair.through],
            "top": None,
            "tokens": None,
        }


def check_labels(session: Session, probed: type[Any]) -> None:
    """Only options that mean something for labelled links."""
    _no_text(session)
    session.refuse(*OF_TEXTS, probed, g.HeadTransforms, wrong="does nothing for labelled links")


def score_labels(
    session: Session,
    to: Destination,
    file: Path,
    run: LabelRun,
    top: int | None,
    look: Mapping[str, Any],
) -> None:
    """Run each text of the file, and list the heads, the best first; a bad line is left out.

    Raises:
        InputError: no line was good.
    """
    text = None
    for text in session.progress(read_labels(file, session.stdin), "text"):
        try:
            if isinstance(text, InputError):
                raise text
            run.add(text)
        except InputError as error:
            session.complain(error.spelled(as_flag))
            session.status = ExitStatus.INPUT
    if text is None:
        raise InputError(f"{str(file)!r} is empty", "give an object on each line")
    report = run.report()
    shown = report.scores[:top]

    def draw() -> "Drawn":
        from attnviz.renderers.picture import labels as picture

        return picture.draw(report, **look)

    deliver_report(
        session,
        to,
        lambda: list(_records(report, shown)),
        lambda: labels_table.render(report, shown, to.display(session)),
        draw,
    )


def _records(report: LabelReport, scores: Iterable[LabelScore]) -> Iterator[Mapping[str, object]]:
    for score in scores:
        yield {
            "model": report.model.name,
            "head": str(score.head),
            "mass": score.mass.mean,
            "mass_error": score.mass.error,
            "strongest": score.strongest.mean,
            "strongest_error": score.strongest.error,
            "texts": report.texts,
            "rows": report.rows,
        }
