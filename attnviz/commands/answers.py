"""Texts to exhibits: one text, a saved capture, or a line at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from attnviz.commands.session import Session
from attnviz.data.exhibit import Exhibit
from attnviz.errors import AttnvizError, ExitStatus, InputError, UsageError
from attnviz.inputs.capture_file import load_capture
from attnviz.inputs.lines import read_lines
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.pipeline import (
    HeadOptions,
    ModelOptions,
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
    """What was asked for, apart from the text and from where the answer goes."""

    model: ModelOptions
    text: TextOptions
    heads: HeadOptions
    show: ShowOptions


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
        if request.text != TextOptions():
            raise UsageError(
                "a saved capture has its tokens already",
                "leave --bos, --no-bos, --special and --truncate out",
            )
        picked = pick_heads(load_capture(given.path), request.heads)
    else:
        if given.note:
            session.note(given.note)
        model = load_model(request.model)
        heads = heads_to_record(model, request.heads)
        picked = pick_heads(capture(model, given.text, heads, request.text), request.heads)
    yield Answer(exhibit(picked, request.show))


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
    options, about, bad, good = request.heads, "", 0, 0
    heads = heads_to_record(model, options)
    for number, text in lines:
        try:
            if isinstance(text, InputError):
                raise text
            picked = pick_heads(capture(model, text, heads, request.text), options)
            answer = Answer(
                exhibit(replace(picked, about=about or picked.about), request.show), number
            )
        except (InputError, UsageError) as error:
            session.complain(_of_line(number, error))
            bad += 1
            continue
        if not options.chosen and not options.everything:
            heads, about = picked.capture.heads, picked.about
            options = HeadOptions(heads=",".join(map(str, heads)))
        good += 1
        yield answer
    if bad and not good:
        raise InputError("no line could be shown", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT


def _of_line(number: int, error: AttnvizError) -> str:
    where = f"line {number}"
    return str(error) if where in str(error) else f"{where}: {error}"
