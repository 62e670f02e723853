"""The text of a command: read, with what there is to say about it on stderr."""

import os
from collections.abc import Sequence

from attnviz.commands.groups.model import RUN
from attnviz.commands.groups.text import TextIn
from attnviz.commands.session import Session
from attnviz.draw.titles import model_notes, run_notes, strange_note
from attnviz.errors import UsageError, option
from attnviz.inputs.captures import load_capture
from attnviz.inputs.text import SavedCapture, read_text
from attnviz.models.folder.files import CONFIG
from attnviz.models.placement import KNOWN_MODELS
from attnviz.records.capture import Capture


def text_or_capture(session: Session, given: TextIn) -> str | Capture:
    """The text, or the saved capture in its place.

    Raises:
        InputError: it cannot be read.
        UsageError: there is none; or a saved capture with options that concern a run.
    """
    read = _read(session, given)
    if isinstance(read, SavedCapture):
        refused = session.spelled(*RUN)
        if refused:
            raise UsageError("a saved capture was run already", f"leave {refused} out")
        captured = load_capture(read.path)
        say(session, model_notes(captured.model))
        return captured
    return read


def text_alone(
    session: Session,
    given: TextIn,
    refusal: str,
    hint: str = "give the text again",
    *,
    alone: bool = True,
) -> str:
    """The text, or (not `alone`) one of several, for a command that needs a run.

    Raises:
        InputError: it cannot be read.
        UsageError: there is none, or a saved capture in its place.
    """
    read = _read(session, given, alone=alone)
    if isinstance(read, SavedCapture):
        raise UsageError(refusal, hint)
    return read


def _read(session: Session, given: TextIn, *, alone: bool = True) -> str | SavedCapture:
    read = read_text(given.text, given.file, session.stdin, alone=alone)
    if isinstance(read, SavedCapture):
        return read
    if read.note:
        session.note(read.note)
    elif given.text in KNOWN_MODELS or os.path.isfile(os.path.join(given.text or "", CONFIG)):
        meant = option("model", given.text)
        session.note(f"{given.text!r} is taken as the text, and is a model: did you mean {meant}?")
    return read.text


def say(session: Session, notes: Sequence[str], where: str = "") -> None:
    """Each note on a line of stderr; `where` names the text that it is about."""
    for note in notes:
        session.note(where + note)


def note_texts(session: Session, captures: Sequence[Capture]) -> None:
    """Lines on stderr about each run, and one where the model has seen no texts like these."""
    for n, captured in enumerate(captures, start=1):
        where = f"text {n}: " if len(captures) > 1 else ""
        say(session, run_notes(captured), where)
    note_strange(session, [captured.strange for captured in captures], "text")


def note_strange(session: Session, strange: Sequence[bool], what: str) -> None:
    """One line on stderr where the model has not seen texts like some of these."""
    note = strange_note(sum(strange), len(strange), what)
    if note:
        session.note(note)
