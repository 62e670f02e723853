"""Options: where things go, and what is said beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer

from attnviz.commands import completion
from attnviz.commands.groups.panels import of_output
from attnviz.commands.session import Session
from attnviz.writers.formats import PICTURES, ROWS


def _set(name: str) -> Callable[[typer.Context, bool], bool]:
    """A callback that tells the session of a flag, even where a later option is wrong."""

    def tell(context: typer.Context, value: bool) -> bool:
        if isinstance(context.obj, Session):
            setattr(context.obj, name, value)
        return value

    return tell


@dataclass(frozen=True)
class Noise:
    """What is said on stderr."""

    quiet: bool = of_output(
        False,
        "--quiet",
        "-q",
        help="Print no notes and no progress on stderr.",
        callback=_set("quiet"),
    )
    debug: bool = of_output(
        False,
        "--debug",
        help="Show the traceback of an error.",
        callback=_set("debug"),
        is_eager=True,
    )


def _format(*formats: str, note: str = "") -> Any:
    *first, last = ("txt (as in the terminal)", *formats)
    said = f"{', '.join(first)} or {last}{note}."
    return of_output(
        None,
        "--format",
        "-f",
        metavar="FORMAT",
        help=said,
        show_default="txt",
        autocompletion=completion.formats(("txt", *formats)),
    )


RECORDS = ("txt", "json", *ROWS)


@dataclass(frozen=True)
class OutputOptions:
    """Where a result goes, and in which of the formats that the command writes."""

    formats: ClassVar[tuple[str, ...]] = (*RECORDS, "npz", "html", *PICTURES)
    format: str | None = _format(*formats[1:])
    output: Path | None = of_output(
        None,
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file; its suffix sets the format. -: to standard output.",
    )


@dataclass(frozen=True)
class RecordOutput(OutputOptions):
    """Where records go."""

    formats = RECORDS
    format: str | None = _format(*formats[1:])


@dataclass(frozen=True)
class ReportOutput(OutputOptions):
    """Where records go, or a picture of them."""

    formats = (*RECORDS, *PICTURES)
    format: str | None = _format(*formats[1:])


@dataclass(frozen=True)
class ComparisonOutput(ReportOutput):
    """Where records go, a picture of them, or a matrix."""

    formats = (*RECORDS, "npz", *PICTURES)
    format: str | None = _format(*formats[1:])


@dataclass(frozen=True)
class PageOutput(ReportOutput):
    """Where records go, a picture of them, or a page."""

    formats = (*RECORDS, "html", *PICTURES)
    format: str | None = _format(*formats[1:])


@dataclass(frozen=True)
class CalculationOutput(OutputOptions):
    """Where a calculation goes."""

    formats = ("txt", "json", "npz")
    format: str | None = _format("json", "npz", note=" (every number, in full)")


@dataclass(frozen=True)
class ObjectOutput(OutputOptions):
    """Where one object goes."""

    formats = ("txt", "json")
    format: str | None = _format("json")
