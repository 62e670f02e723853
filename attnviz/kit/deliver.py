"""The delivery of a command's results: to the terminal, a stream, or a file."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from glob import escape, glob
from itertools import chain
from pathlib import Path
from typing import Any, cast

from rich.console import RenderableType

from attnviz.console import Display, plain_text
from attnviz.draw.picture.paper import Page, draw_for, page_notes
from attnviz.errors import UsageError, option, series
from attnviz.inputs.given import place_of
from attnviz.kit.option import OUTPUT
from attnviz.kit.options import MODEL, Canvas, OutputOptions
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
NEVER_READ = (".html", ".png", ".svg", ".pdf", ".csv", ".tsv")
"""Suffixes that files of models and scans lack: such files in a folder read may be overwritten."""
OWN = b'{\n"schema": "attnviz'
"""The beginning of every JSON object that attnviz writes."""
LINE = "{line}"
"""The placeholder of the line's number in the name of each line's file."""


@dataclass(frozen=True)
class Destination:
    """The target of a result, its format, and the look of a picture, if one was chosen."""

    format: Format
    output: Path | None
    look: Mapping[str, Any]

    @property
    def each_line_apart(self) -> bool:
        """Whether each line of the input gets its own file."""
        return LINE in str(self.output or "")

    def display(self, session: Session) -> Display:
        """The display for a renderer; a file has no colours and all letters."""
        if self.output is None:
            return session.display
        return Display(session.display.width, speller=as_flag)


def destination_of(session: Session, options: OutputOptions) -> Destination:
    """Choose the target of a command's result, checked before anything is run."""
    output = None if str(options.output) == STDOUT else options.output
    name = _wanted(session, options, output)
    form = choose_format(output, name, session.environment.stdout.isatty())
    if form.name not in options.formats:
        hint = f"use {series(options.formats, 'or')}"
        raise UsageError(f"this command does not write {form.name}", hint)
    if isinstance(options, Canvas) and not form.picture:
        hint = f"leave it out, or add {option('output', 'FILE.png')}"
        session.refuse(Canvas, wrong="is for pictures", hint=hint)
    if (width := session.value("paper")) is not None:
        _draw_for_paper(session, width, form)
    if output is not None:
        check_no_input(session, output)
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
        raise UsageError(f"{LINE} in {option('output')} needs a line number", instead)
    return to


def check_no_input(session: Session, output: Path) -> None:
    """Check that no existing file to be written is one that the same call reads.

    Raises:
        UsageError: it is one, by its name or another name of the same file.
    """
    name = re.escape(str(output)).replace(re.escape(LINE), r"\d+")
    there = (Path(each) for each in glob(escape(str(output)).replace(LINE, "*")))
    files = {_inode(p): p for p in there if p.is_file() and re.fullmatch(name, str(p))}
    for place in _inputs(session) if files else ():
        with suppress(OSError):  # no permission, or a text that is too long for a name
            read = _in_folder(place, files.values()) if place.is_dir() else _of_file(place)
            if taken := next((each for each in read if _inode(each) in files), None):
                raise UsageError(
                    f"{option('output', output)} would overwrite {str(taken)!r}, an input of the "
                    "same call",
                    "name another file",
                )


def _inode(path: Path) -> tuple[int, int] | None:
    """The device and inode of a file, which its names share; None without a file."""
    with suppress(OSError, ValueError):
        state = path.stat()
        return state.st_dev, state.st_ino
    return None


def _inputs(session: Session) -> Iterator[Path]:
    """The files that a call reads, by the declarations of its options."""
    assert session.context is not None
    for each in session.context.command.params:
        panel, metavar = getattr(each, "rich_help_panel", None), each.metavar or ""
        value = session.value(each.name or "")
        names = [*map(str, value)] if isinstance(value, list | tuple) else [str(value)]
        if metavar == "TEXT":  # which may be that of a file
            yield from (Path(name) for name in names if os.path.isfile(name))
        elif value is not None and (
            (metavar.startswith(("FILE", "FOLDER", "LAYER:FILE")) and panel != OUTPUT)
            or (metavar == "NAME" and panel in (MODEL, None))
        ):
            names = [n.partition(":")[2] or n if ":" in metavar else n for n in names]
            yield from (Path(place_of(name)) for name in names)
    yield from filter(None, [session.configuration.path, Path("/dev/stdin")])


def _of_file(path: Path) -> Iterator[Path]:
    """A file, and those that its lines name."""
    from attnviz.inputs.beside import images_named  # rarely is there a file already

    yield path
    yield from (path.parent / name for name in images_named(path))


def _in_folder(folder: Path, written: Iterable[Path]) -> Iterator[Path]:
    """The files of a folder that may be read, among its files and those to be written."""
    whole, is_model = folder.resolve(), (folder / "config.json").is_file()
    never = (*NEVER_READ, ".jsonl", ".npz") if is_model else NEVER_READ
    within = (each for each in written if whole in each.resolve().parents)
    for file in filter(Path.is_file, (*within, *folder.iterdir())):
        if file.suffix.lower() not in never:
            with file.open("rb") as stream:
                if stream.read(len(OWN)) != OWN:
                    yield file


def _draw_for_paper(session: Session, width: float, form: Format) -> None:
    """Draw pictures for a page from now on, with their making in their files."""
    if not form.picture:
        hint = f"leave it out, or add {option('output', 'FILE.pdf')}"
        session.refuse("paper", wrong="is for pictures", hint=hint)
    made = {"command": session.typed, "seed": session.value("seed"), "versions": versions_now()}
    draw_for(Page(width, to_json(made)))


def _wanted(session: Session, options: OutputOptions, output: Path | None) -> str | None:
    """The format that was asked for; a configured one yields to a file's suffix."""
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
    """Check that each of several `lines` gets its own file if a file holds only one (`alone`)."""
    if lines and alone and not to.each_line_apart:
        named = option("output", f"line-{LINE}.{to.format.name}")
        raise UsageError(
            f"with {option('lines')}, each line needs its own file",
            f"put {LINE} into the name: {named}",
        )


def deliver(
    session: Session, to: Destination, results: Iterable[tuple[int | None, Iterable[Piece]]]
) -> None:
    """Write results as they arrive: pieces of each, with the number of the input line."""
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
    """The content of a file; for txt, the output of a terminal without colours."""
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
