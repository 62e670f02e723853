"""Each line of the input as a text of its own, and the mean over all of them."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from attnviz.draw.titles import model_notes, run_notes, strange_note
from attnviz.errors import ExitStatus, InputError, UsageError, option
from attnviz.inputs.text import SavedCapture, read_lines, read_text
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, check_lines, deliver, deliver_result
from attnviz.kit.formats import Piece, record_chunks
from attnviz.kit.option import panel_option
from attnviz.kit.options import RUN, TextIn, check_run_already
from attnviz.kit.result import Result
from attnviz.kit.session import Session, as_flag
from attnviz.models.folder.files import CONFIG
from attnviz.models.placement import KNOWN_MODELS
from attnviz.records.capture import Capture
from attnviz.records.predict import Measure
from attnviz.records.rows import made_to_dict

if TYPE_CHECKING:
    from attnviz.inputs.prompts import PromptLine

R = TypeVar("R")
Lines: TypeAlias = Annotated[
    bool,
    panel_option(
        g.TEXT,
        "--lines",
        help="Treat each line of the input as a separate text; the mean over all comes last.",
    ),
]
Answered = tuple[int, Result[Any]]
"""A line's number, and what was found of its text."""
OF_A_TEXT = "answer", "versus", "cut", "align", "queries"
"""Options that may be wrong for one text and right for another."""


def check_one_file(to: Destination, *, lines: bool) -> None:
    """See that all lines go to one place, as their mean does.

    Raises:
        UsageError: a file for each line is asked for, or for a line where there is none.
    """
    check_lines(to, alone=False, lines=lines)
    if to.each_line_apart:
        raise UsageError(
            "the mean over the lines has no line of its own", "name one file for all lines"
        )


def each_line(
    session: Session,
    lines: Iterable[tuple[int, Any]],
    run: Callable[[Any, int], R],
    of_a_text: Collection[str] = (),
    *,
    none: str = "no line could be run",
) -> Iterator[tuple[int, R]]:
    """What `run` makes of each line, with its number; a bad one is reported and left out.

    Args:
        session: the session.
        lines: each with its number; in the place of a bad one its error, which names the line.
        run: takes a line and its number.
        of_a_text: options that may be wrong for one text and right for another.
        none: what is wrong where no line was good.

    Raises:
        InputError: at the end, where no line was good.
    """
    bad = good = 0
    for number, line in lines:
        try:
            if isinstance(line, InputError):
                raise line
            result = run(line, number)
        except (InputError, UsageError) as error:
            if isinstance(error, UsageError) and error.about not in of_a_text:
                raise  # it would be the same on every line
            where = "" if error is line else f"line {number}: "
            session.complain(where + error.spelled(as_flag))
            bad += 1
            continue
        good += 1
        yield number, result
    if not good:
        raise InputError(none, "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT


def each_result(
    session: Session, given: g.TextIn, run: Callable[[str, int], Result[Any]]
) -> Iterator[Answered]:
    """The result of each line, with notes on stderr about its text; raises as `each_line`."""
    strange = list[bool]()
    lines = session.progress(read_lines(given.text, given.file, session.stdin), "line")
    for number, result in each_line(session, lines, run, OF_A_TEXT):
        captured = result.captures[0]
        say(session, run_notes(captured), f"line {number}: ")
        strange.append(captured.strange)
        yield number, result
    note_strange(session, strange, "line")


def deliver_lines(
    session: Session,
    to: Destination,
    answers: Iterable[Answered],
    mean: Callable[[], Result[Any] | None],
    canvas: g.Canvas | None = None,
    *,
    mean_alone: bool = False,
) -> None:
    """Deliver the result of each line as it comes, and at the end the mean.

    A picture and a page are of the mean alone. `mean_alone`: so is what the terminal shows.

    Raises:
        OutputError: the file or the stream cannot take them.
    """
    if to.format.picture or to.format.name == "html" or (mean_alone and to.format.name == "txt"):
        for _ in answers:
            pass
        result = mean()
        assert result is not None
        deliver_result(session, to, result, canvas)
    else:
        deliver(session, to, [(None, _pieces(session, to, answers, mean))])


def _pieces(
    session: Session,
    to: Destination,
    answers: Iterable[Answered],
    mean: Callable[[], Result[Any] | None],
) -> Iterator[Piece]:
    """What goes out, as it comes; json is one document."""
    from attnviz.draw.terminal.around import line_heading

    form, display = to.format.name, to.display(session)
    rows, results, command = list[Any](), list[Result[Any]](), ""
    for number, result in _with_mean(answers, mean):
        if form == "txt":
            yield line_heading(number, first=not command)
            yield from result.shown(display)
        elif form == "json":
            rows += result.rows
            results.append(result)
        else:
            yield from record_chunks(result.rows, form, result.command, header=not command)
        command = result.command
    if rows:
        captures = [captured for result in results for captured in result.captures]
        made = made_to_dict(captures, told=results[0].asked)
        yield from record_chunks(rows, form, command, made=made)


def _with_mean(
    answers: Iterable[Answered], mean: Callable[[], Result[Any] | None]
) -> Iterator[tuple[int | None, Result[Any]]]:
    yield from answers
    result = mean()
    if result is not None:
        yield None, result


# The text of a command: read, with what there is to say about it on stderr.


def text_or_capture(session: Session, given: TextIn) -> str | Capture:
    """The text, or the saved capture in its place.

    Raises:
        InputError: it cannot be read.
        UsageError: there is none; or a saved capture with options that concern a run.
    """
    read = _read(session, given)
    if isinstance(read, SavedCapture):
        from attnviz.inputs.captures import load_capture

        check_run_already(session.given(*RUN))
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


# A file of prompts, each with an answer of its own.


Pairs: TypeAlias = Annotated[
    Path | None,
    panel_option(
        g.TEXT,
        "--pairs",
        metavar="FILE",
        help="Run many prompts: JSON lines with text, answer, versus, and source for patch. The "
        "terminal shows the mean; as rows, it comes last.",
    ),
]


def check_pairs(session: Session, to: Destination, *, lines: bool = False) -> None:
    """Only options that mean something for a file of prompts.

    Raises:
        UsageError: a text is given beside them, or a file for each of them.
    """
    if lines or session.given("text", "file"):
        raise UsageError(f"the texts are those of {option('pairs')}", "leave the other text out")
    check_one_file(to, lines=True)


def each_pair(
    session: Session,
    file: Path,
    answer: str | None,
    versus: str | None,
    measure_of: Callable[[str | None, str | None], Measure],
    found: Callable[["PromptLine", int], Result[Any]],
) -> Iterator[Answered]:
    """What is found of each prompt; a bad line is reported on stderr and left out.

    Args:
        session: the session.
        file: of JSON lines.
        answer, versus: what is measured, where a line does not say it.
        measure_of: the unit of effects for an answer and a versus.
        found: runs a prompt, with what is measured after it and the number of its line.

    Raises:
        InputError: at the end, where no line was good.
    """
    from attnviz.inputs.prompts import read_prompt

    measures = set[Measure]()

    def run(line: str, number: int) -> Result[Any]:
        prompt = read_prompt(line)
        word, other = prompt.asked(answer, versus)
        measure = measure_of(word, other)
        if measures - {measure}:
            raise InputError(
                "this line asks for another measurement than the lines before it",
                "give an answer and a versus on every line, or on none",
            )
        result = found(replace(prompt, answer=word, versus=other), number)
        measures.add(measure)
        return result

    return each_result(session, g.TextIn(None, file), run)
