"""Texts to exhibits: one text, a saved capture, or a line at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz.commands.session import Session
from attnviz.data.exhibit import Exhibit
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.inputs.capture_file import load_capture
from attnviz.inputs.lines import read_lines
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.pipeline import (
    HeadOptions,
    ShowOptions,
    TextOptions,
    capture,
    exhibit,
    heads_to_record,
    load_model,
    pick_heads,
)


@dataclass(frozen=True)
class Request:
    """What was asked for, apart from the text and from where the answer goes.

    `run_options` are the options given that concern a run, which a saved capture has
    behind it.
    """

    model: Source
    text: TextOptions
    heads: HeadOptions
    show: ShowOptions
    run_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """One exhibit; `line` is the number of the line that it answers, None for a single text."""

    exhibit: Exhibit
    line: int | None = None


def answer_text(
    session: Session, request: Request, argument: str | None, file: Path | None
) -> Iterator[Answer]:
    """The one exhibit of a text, or of a saved capture.

    Raises:
        AttnvizError: the text, the model or an option cannot be used.
    """
    given = read_text(argument, file, session.stdin)
    if isinstance(given, SavedCapture):
        if request.run_options:
            raise UsageError(
                "a saved capture was run already", f"leave {', '.join(request.run_options)} out"
            )
        captured = load_capture(given.path)
    else:
        if given.note:
            session.note(given.note)
        model = load_model(request.model)
        heads = heads_to_record(model, request.heads)
        captured = capture(model, given.text, heads, request.text)
    note_what_is_left_out(session, captured.left_out)
    yield Answer(exhibit(pick_heads(captured, request.heads), request.show))


def note_what_is_left_out(session: Session, left_out: tuple[int, int], where: str = "") -> None:
    """One line on stderr where `--truncate` cut the text."""
    before, after = left_out
    if before or after:
        side = "first" if before else "last"
        session.note(f"{where}the {side} {before or after} tokens are left out, to fit the model")


def answer_lines(
    session: Session, request: Request, argument: str | None, file: Path | None
) -> Iterator[Answer]:
    """The exhibit of each line, as soon as the line is there.

    A head that nobody chose is picked on the first good line and kept. A bad line is
    told on stderr and left out, and becomes the exit code of the program.

    Raises:
        UsageError: an option does not fit, before any line is read.
        ModelError: the model cannot be had.
        InputError: at the end, where no line was good.
    """
    lines = read_lines(argument, file, session.stdin)
    model = load_model(request.model)
    options, kept, bad, good = request.heads, None, 0, 0
    heads = heads_to_record(model, options)
    for number, text in lines:
        if isinstance(text, InputError):
            session.complain(str(text))  # it names the line
            bad += 1
            continue
        try:
            captured = capture(model, text, heads, request.text)
            picked = pick_heads(captured, options)
            if kept is not None:
                picked = replace(kept, capture=picked.capture)
            shown = exhibit(picked, request.show)
        except (InputError, UsageError) as error:
            session.complain(f"line {number}: {error}")
            bad += 1
            continue
        if not options.chosen and not options.everything:
            heads, kept = picked.capture.heads, replace(picked, why=f"picked on line {number}")
            options = HeadOptions(heads=",".join(map(str, heads)))
        good += 1
        note_what_is_left_out(session, captured.left_out, f"line {number}: ")
        yield Answer(shown, number)
    if bad and not good:
        raise InputError("no line could be shown", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT
