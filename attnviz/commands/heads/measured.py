"""What `attnviz heads` measures in place of its metrics: retrieval, and labelled links."""

from pathlib import Path
from typing import Any

from attnviz.commands.heads.circuits import circuits_of
from attnviz.commands.heads.labels import LabelRun, read_labels
from attnviz.commands.heads.retrieval import Needles, keep, measure_retrieval
from attnviz.commands.heads.rows import of_circuits, of_labels, of_retrieval
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result
from attnviz.kit.prepare import TextOptions
from attnviz.kit.session import Session, as_flag
from attnviz.models.catalog import Source

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
    loaded = session.load(source)
    retrieval = measure_retrieval(loaded, Needles(), options)
    if keep(loaded, retrieval) is None:
        session.note("the scores are not remembered, as the cache folder cannot be written")
    deliver_result(session, to, of_retrieval(retrieval, top))


def check_circuits(session: Session, probed: type[Any]) -> None:
    """Only options that mean something for weights alone."""
    _no_text(session)
    wrong = "does nothing for circuits, which are read off the weights"
    groups = probed, g.Target, g.WhichHeads, g.HeadTransforms, g.Tokens
    session.refuse(*OF_TEXTS, "retrieval", "labels", *groups, wrong=wrong)


def read_circuits(
    session: Session, to: Destination, source: Source, top: int | None, canvas: g.Canvas
) -> None:
    """Read copying and composition off the weights."""
    deliver_result(session, to, of_circuits(circuits_of(session.load(source)), top), canvas)


def check_labels(session: Session, probed: type[Any]) -> None:
    """Only options that mean something for labelled links."""
    _no_text(session)
    session.refuse(*OF_TEXTS, probed, g.HeadTransforms, wrong="does nothing for labelled links")


def score_labels(
    session: Session, to: Destination, file: Path, run: LabelRun, top: int | None, canvas: g.Canvas
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
    deliver_result(session, to, of_labels(run.report(), top), canvas)
