"""Each line of the input as a text of its own, and the mean over all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, check_lines, deliver, deliver_result
from attnviz.commands.flags import as_flag
from attnviz.commands.grouping import panel_option
from attnviz.commands.session import Session
from attnviz.commands.texts import note_strange, say
from attnviz.draw.terminal.around import line_heading
from attnviz.draw.titles import run_notes
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.inputs.text import read_lines
from attnviz.records.capture import Capture
from attnviz.records.rows import made_to_dict
from attnviz.runs.results.result import Result
from attnviz.writers.formats import Piece
from attnviz.writers.records import record_chunks

T = TypeVar("T")
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


def captured(answered: Answered) -> Capture:
    """The run of a line, for notes."""
    return answered[1].captures[0]


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
    given: g.TextIn,
    found: Callable[[str, int], T],
    of: Callable[[T], Capture],
    of_a_text: Sequence[str] = (),
) -> Iterator[T]:
    """What is found of each line; a bad line is reported on stderr and left out.

    Args:
        session: the session.
        given: where the lines are.
        found: runs a text, the number of whose line it gets.
        of: the capture of what was found, for notes.
        of_a_text: options that may be wrong for one text and right for another.

    Raises:
        InputError: at the end, where no line was good.
    """
    bad, strange = 0, list[bool]()
    for number, text in session.progress(read_lines(given.text, given.file, session.stdin), "line"):
        try:
            if isinstance(text, InputError):  # it names the line
                raise text
            answer = found(text, number)
        except (InputError, UsageError) as error:
            if isinstance(error, UsageError) and error.about not in of_a_text:
                raise
            where = "" if error is text else f"line {number}: "
            session.complain(where + error.spelled(as_flag))
            bad += 1
            continue
        captured = of(answer)
        say(session, run_notes(captured), f"line {number}: ")
        strange.append(captured.strange)
        yield answer
    note_strange(session, strange, "line")
    if not strange:
        raise InputError("no line could be run", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT


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
