"""Texts to exhibits: one text, a saved capture, or a line at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.commands.options import refuse_run_options
from attnviz.commands.session import Session
from attnviz.data.exhibit import Exhibit
from attnviz.data.verify import EXACT
from attnviz.errors import ExitStatus, InexactError, InputError, UsageError
from attnviz.inputs.capture_file import load_capture
from attnviz.inputs.lines import read_lines
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.catalog import Source
from attnviz.runs.options import HeadOptions, TextOptions
from attnviz.runs.prepare import load_model, verify
from attnviz.runs.show import Needs, exhibit, pick_heads, see
from attnviz.transforms.apply import ShowOptions

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


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
    needs: Needs
    verify: bool = False
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
        refuse_run_options(request.run_options)
        picked = pick_heads(load_capture(given.path), request.heads)
        shown = exhibit(picked, request.show)
    else:
        if given.note:
            session.note(given.note)
        model = load_model(request.model)
        if request.verify:
            _verify(session, model, request, given.text)
        _, shown = see(model, given.text, request.text, request.heads, request.show, request.needs)
    note_what_is_left_out(session, shown.capture.left_out)
    _note_layers_without(session, shown)
    yield Answer(shown)


def note_what_is_left_out(session: Session, left_out: tuple[int, int], where: str = "") -> None:
    """One line on stderr where `--truncate` cut the text."""
    before, after = left_out
    if before or after:
        side = "first" if before else "last"
        session.note(f"{where}the {side} {before or after} tokens are left out, to fit the model")


def _note_layers_without(session: Session, shown: Exhibit) -> None:
    """One line on stderr where a hybrid's layers stand side by side, and some have no attention."""
    heads_per_layer = shown.capture.model.heads_per_layer
    without = [str(layer) for layer, heads in enumerate(heads_per_layer) if not heads]
    if without and len(shown.maps) > 1:
        layers = f"layer{'s' * (len(without) > 1)} {', '.join(without)}"
        session.note(f"{layers} of this model {'have' if len(without) > 1 else 'has'} no attention")


def _verify(session: Session, model: "LoadedModel", request: Request, text: str) -> None:
    """Say on stderr how exact the capture of a text is.

    Raises:
        InexactError: it is not as exact as float32 allows.
    """
    found = verify(model, request.model, text, request.text)
    said = (
        f"output with and without capture: largest difference {found.output:.1e}; "
        f"weights and transformers' eager attention: {found.weights:.1e} ({found.dtype})"
    )
    if not found.exact:
        raise InexactError(said, f"more than {EXACT:g} is a bug; please report it")
    session.consoles.err.print(said, markup=False, highlight=False)


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
    for number, text in lines:
        if isinstance(text, InputError):
            session.complain(str(text))  # it names the line
            bad += 1
            continue
        try:
            if request.verify:
                _verify(session, model, request, text)
            picked, shown = see(model, text, request.text, options, request.show, request.needs)
        except (InputError, UsageError) as error:
            session.complain(f"line {number}: {error}")
            bad += 1
            continue
        if kept is not None:
            shown = replace(shown, about=kept.about)
        elif not options.named and not options.everything:
            kept = replace(picked, why=f"picked on line {number}")
            options = HeadOptions(heads=",".join(map(str, picked.heads)))
        good += 1
        note_what_is_left_out(session, shown.capture.left_out, f"line {number}: ")
        yield Answer(shown, number)
    if bad and not good:
        raise InputError("no line could be shown", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT
