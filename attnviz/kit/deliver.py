"""The one deliverer: what a command made goes to the terminal, a stream, or a file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

from rich.console import RenderableType

from attnviz.console import Display, plain_text
from attnviz.draw.picture.paper import Page, draw_for, page_notes
from attnviz.errors import UsageError, option
from attnviz.kit.options import Canvas, OutputOptions
from attnviz.kit.result import Result
from attnviz.kit.session import Session, as_flag
from attnviz.kit.write import (
    FORMATS,
    Format,
    Piece,
    check_target,
    choose_format,
    encoded,
    is_terminal,
    write_bytes,
    write_stream,
)
from attnviz.records.rows import to_json, versions_now

STDOUT = "-"
LINE = "{line}"
"""Stands for the number of the line in the name of a file that each line gets."""


@dataclass(frozen=True)
class Destination:
    """Where a result goes, in which format, and the look of a picture, where one was chosen."""

    format: Format
    output: Path | None
    look: Mapping[str, Any]

    @property
    def each_line_apart(self) -> bool:
        """Whether each line of the input gets a file of its own."""
        return LINE in str(self.output or "")

    def display(self, session: Session) -> Display:
        """The display that a renderer may count on; a file has no colours and all letters."""
        if self.output is None:
            return session.display
        return Display(session.display.width, speller=as_flag)


def destination_of(session: Session, options: OutputOptions) -> Destination:
    """Where the result of a command goes; seen to be possible before anything is run."""
    output = None if str(options.output) == STDOUT else options.output
    name = _wanted(session, options, output)
    form = choose_format(output, name, session.environment.stdout.isatty())
    if form.name not in options.formats:
        *first, last = options.formats
        raise UsageError(
            f"this command does not write {form.name}", f"use {', '.join(first)} or {last}"
        )
    if isinstance(options, Canvas) and not form.picture:
        hint = f"leave it out, or add {option('output', 'FILE.png')}"
        session.refuse(Canvas, wrong="is for pictures", hint=hint)
    if (width := session.value("paper")) is not None:
        _draw_for_paper(session, width, form)
    if output is not None:
        check_target(Path(str(output).replace(LINE, "1")))
        if form.binary and is_terminal(output):
            raise UsageError(
                f"{form.name} is not text, and a terminal cannot show it",
                f"write it to a file with {option('output', f'FILE{form.suffix}')}",
            )
    look = options.look if isinstance(options, Canvas) else {}
    to = Destination(form, output, look)
    if to.each_line_apart and not (session.value("lines") or session.value("pairs")):
        instead = "name one file" if session.value("lines") is None else f"add {option('lines')}"
        raise UsageError(f"{LINE} in {option('output')} stands for a line number", instead)
    return to


def _draw_for_paper(session: Session, width: float, form: Format) -> None:
    """Draw pictures for a page from now on, with how they are made in their files."""
    if not form.picture:
        hint = f"leave it out, or add {option('output', 'FILE.pdf')}"
        session.refuse("paper", wrong="is for pictures", hint=hint)
    made = {"command": session.typed, "seed": session.value("seed"), "versions": versions_now()}
    draw_for(Page(width, to_json(made)))


def _wanted(session: Session, options: OutputOptions, output: Path | None) -> str | None:
    """The format that was asked for; a configured one yields to a file, and to what is written."""
    if options.format is None or not session.configured("format"):
        return options.format
    if options.format not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"{option('format', options.format)} is not a format", f"formats are {known}"
        )
    elsewhere = options.format not in options.formats or (output is not None and output.suffix)
    return None if elsewhere else options.format


def check_lines(to: Destination, *, alone: bool, lines: bool) -> None:
    """See that each of several `lines` gets a file of its own where a file holds one `alone`."""
    if lines and alone and not to.each_line_apart:
        named = option("output", f"line-{LINE}.{to.format.name}")
        raise UsageError(
            f"with {option('lines')}, each line makes a file of its own",
            f"put {LINE} into the name: {named}",
        )


def deliver(
    session: Session, to: Destination, results: Iterable[tuple[int | None, Iterable[Piece]]]
) -> None:
    """Send results out as they come: pieces of each, with the number of the input line."""
    if to.output is None:
        for _, pieces in results:
            if to.format.name == "txt":
                session.show(cast("Iterable[RenderableType]", pieces))
            else:
                write_stream(session.environment.stdout.buffer, encoded(pieces))
    elif to.each_line_apart:
        for line, pieces in results:
            path = Path(str(to.output).replace(LINE, str(line or 1)))
            write_bytes(path, _encoded(session, to, pieces))
            session.wrote(path)
    else:
        of_all = (_encoded(session, to, pieces) for _, pieces in results)
        write_bytes(to.output, chain.from_iterable(of_all))
        session.wrote(to.output)


def _encoded(session: Session, to: Destination, pieces: Iterable[Piece]) -> Iterator[bytes]:
    """The content of a file; of txt, what a terminal without colours would show."""
    if to.format.name == "txt":
        shown = cast("Iterable[RenderableType]", pieces)
        yield plain_text(shown, session.display.width).encode()
    else:
        yield from encoded(pieces)


def deliver_result(session: Session, to: Destination, result: Result[Any]) -> None:
    """Deliver a result: as rows, as a table for a person, or as a picture."""
    if to.format.picture:
        from attnviz.draw.picture.canvas import figure_bytes

        drawn = result.drawn(**to.look)
        deliver(session, to, [(None, [figure_bytes(drawn.figure, to.format.name)])])
        for note in (*drawn.notes, *page_notes(drawn.figure)):
            session.note(note)
        return
    deliver(session, to, [(None, result.pieces(to.format.name, to.display(session)))])
