"""The texts of a command line: one, each line, or a file of prompts; and their mean."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from attnviz.draw.titles import model_notes, run_notes, strange_note, without_image
from attnviz.errors import ExitStatus, InputError, RefusedChat, UsageError, option
from attnviz.inputs.given import MEDIA
from attnviz.inputs.text import Stdin, read_lines, read_text
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver, deliver_result
from attnviz.kit.option import Call
from attnviz.kit.options import RUN, TextIn, check_run_already
from attnviz.kit.result import Result, mean_result
from attnviz.kit.session import Session, as_flag
from attnviz.kit.write import ROWS, Piece, record_chunks
from attnviz.models.folder.files import CONFIG
from attnviz.models.placement import KNOWN_MODELS
from attnviz.records.capture import Capture

if TYPE_CHECKING:
    from attnviz.kit.values import Loaded

R = TypeVar("R")
Lines: TypeAlias = Annotated[
    bool,
    g.text_option(
        "--lines",
        help="Treat each line of the input as a separate text, or as JSON with a text and an "
        "image; the mean over all comes last.",
    ),
]
Pairs: TypeAlias = Annotated[
    Path | None,
    g.text_option(
        "--pairs",
        metavar="FILE",
        help="Run many prompts: JSON lines with text, answer, versus, and source for patch and "
        "circuit. The "
        "terminal shows the mean; as rows, it comes last.",
    ),
]
OF_A_TEXT = "answer", "versus", "cut", "align", "queries"
"""Options that may be wrong for one text and right for another."""


def run_texts(
    session: Session,
    call: Call[Result[Any]],
    to: Destination,
    text: TextIn,
    load: Callable[[], "Loaded"],
    *,
    refusal: str = "a saved capture cannot be run again",
    doing: str | None = None,
    lines: bool = False,
    pairs: Path | None = None,
    fields: Sequence[str] = ("text", "text_pair", "answer", "versus"),
) -> None:
    """Run one text, each line, or each prompt of a file; deliver the results, the mean last.

    Args:
        session, call, to, text: of the command line.
        load: loads the model, when the text has been read.
        refusal: the fault of a saved capture in place of the text.
        doing: the label of a bar while one text is run many times; None if it is run once.
        lines: whether each line is a separate text.
        pairs: a file of prompts, each with its own answer.
        fields: the fields of a prompt that the function takes.
    """
    alone = not lines and pairs is None
    if pairs is not None:
        check_prompts_alone(session, "lines")
    if to.each_line_apart:
        raise UsageError(
            "the mean over the lines has no line of its own", "name one file for all lines"
        )
    words = text_alone(session, text, refusal) if alone else ""
    model = load()

    def run_one(number: int, **words: Any) -> Result[Any]:
        """The result for a text; as rows, all parts unless the user names a number."""
        result = call(**words, model=model)
        return replace(result, _line=number, _top=call.options.get("top"))

    if alone:
        with nullcontext() if doing is None else session.running(doing):
            result = run_one(1, text=words)
        note_texts(session, result.captures)
        deliver_result(session, to, result)
        return
    if pairs is None:
        results = _each_result(session, text, partial(_of_line, run_one, file=text.file))
    else:
        results = _each_result(session, TextIn(None, pairs), _of_prompts(run_one, fields))
    _deliver_each(session, to, results, mean_alone=pairs is not None)


def _of_line(run_one: Callable[..., R], line: str, number: int, *, file: Path | None) -> R:
    """Run a line with the images that it names with its text, in place of those of all."""
    from attnviz.inputs.beside import line_text  # commands of one text do not need it

    read = line_text(line, file)
    more: dict[str, Any] = {"image": read.images} if read.images else {}
    more |= {} if read.text_pair is None else {"text_pair": read.text_pair}
    return run_one(number, text=read.text, **more)


def check_prompts_alone(session: Session, *other: str) -> None:
    """Check that no text, and no source, is given in addition to a file of prompts."""
    if session.given("source"):
        raise UsageError(
            f"{option('pairs')} already gives the sources", f"leave {option('source')} out"
        )
    if session.given("text", "file", *other):
        raise UsageError(f"{option('pairs')} already gives the texts", "leave the other text out")


def _of_prompts(
    run_one: Callable[..., R],
    fields: Sequence[str],
    measure_of: Callable[[R], object] = lambda result: result.record.measure,  # type: ignore
) -> Callable[[str, int], R]:
    """Make a function that runs a line of a file of prompts with a command's fields."""
    from attnviz.inputs.prompts import read_prompt

    measures = set[object]()

    def run(line: str, number: int) -> R:
        prompt = read_prompt(line)
        if "text_pair" in prompt and "text_pair" not in fields:
            raise InputError("text_pair is not read here", "leave it out of the line")
        if "source" in fields and "source" not in prompt:
            raise InputError("there is no source", 'add "source" to the line')
        result = run_one(number, **{name: prompt[name] for name in fields if name in prompt})
        measure = measure_of(result) if "answer" in fields else None
        if measures - {measure}:
            raise InputError(
                "this line asks for another measurement than the lines before it",
                "give an answer and a versus on every line, or on none",
            )
        measures.add(measure)
        return result

    return run


def prompts_in(
    session: Session, pairs: Path, measure_of: Callable[..., object], fields: Sequence[str]
) -> dict[str, list[str]]:
    """The prompts of a file that are run together, field by field; bad ones are left out.

    `measure_of` takes the fields of one, checks that it can be run, and returns its measure.
    """

    def check(_number: int, **prompt: str) -> tuple[dict[str, str], object]:
        return prompt, measure_of(**prompt)

    run = _of_prompts(check, fields, lambda checked: checked[1])
    lines = session.progress(read_lines(None, pairs, session.stdin), "line")
    found = [prompt for _, (prompt, _) in each_line(session, lines, run, OF_A_TEXT)]
    asked = [name for name in fields if any(name in prompt for prompt in found)]
    for name in asked:
        if not all(name in prompt for prompt in found):
            raise InputError(f"some lines have no {name}", "give one on every line, or on none")
    return {name: [prompt[name] for prompt in found] for name in asked}


def each_line(
    session: Session,
    lines: Iterable[tuple[int, Any]],
    run: Callable[[Any, int], R],
    of_a_text: Collection[str] = (),
    *,
    none: str = "no line could be run",
) -> Iterator[tuple[int, R]]:
    """Yield the result of `run` for each line, with its number; report and leave out bad lines.

    Args:
        session: the session.
        lines: each with its number; a bad one as its error, which names the line.
        run: takes a line and its number.
        of_a_text: options that may be wrong for one text and right for another.
        none: the fault if no line was good.
    """
    bad = good = 0
    for number, line in lines:
        try:
            if isinstance(line, InputError):
                raise line
            result = run(line, number)
        except (InputError, RefusedChat, UsageError) as error:
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


def _each_result(
    session: Session, source: TextIn, run: Callable[[str, int], Result[Any]]
) -> Iterator[Result[Any]]:
    """Yield the result of each line, with notes on stderr about its text."""
    strange, alone = list[bool](), list[str]()
    lines = session.progress(read_lines(source.text, source.file, session.stdin), "line")
    for number, result in each_line(session, lines, run, OF_A_TEXT):
        captured = result.captures[0]
        say(session, run_notes(captured), f"line {number}: ")
        strange.append(captured.strange)
        alone.append(without_image(captured))
        yield result
    note_strange(session, strange, "line", alone)


def _deliver_each(
    session: Session, to: Destination, results: Iterator[Result[Any]], *, mean_alone: bool
) -> None:
    """Deliver the result of each line as it arrives, and at the end the mean.

    A picture and a page show only the mean. `mean_alone`: so does the terminal.
    """
    form = to.format.name
    if to.format.picture or form == "html" or (mean_alone and form == "txt"):
        mean = mean_result(list(results))
        say(session, mean._noted)
        deliver_result(session, to, mean)
    elif form == "json":  # one document
        *before, last = _with_mean(session, to, results)
        deliver_result(session, to, last if last._line is None else last.after(before))
    else:
        deliver(session, to, [(None, _pieces(session, to, results))])


def _pieces(session: Session, to: Destination, results: Iterator[Result[Any]]) -> Iterator[Piece]:
    """The pieces to write, as they arrive."""
    from attnviz.draw.terminal.around import line_heading

    first, display = True, to.display(session)
    for result in _with_mean(session, to, results):
        own = replace(result, _before=())
        if to.format.name == "txt":
            yield line_heading(own._line, first=first)
            yield from own.shown(display)
        else:
            yield from record_chunks(own._rows(), to.format.name, own.command, header=first)
        first = False


def _with_mean(
    session: Session, to: Destination, results: Iterator[Result[Any]]
) -> Iterator[Result[Any]]:
    """Yield the results as they arrive, then the mean, unless the rows of each text suffice."""
    every = list[Result[Any]]()
    for result in results:
        every.append(result)
        yield result
    if result._form.mean is None:
        return
    try:
        mean = mean_result(every)
    except InputError as error:
        if to.format.name not in ("json", *ROWS):
            raise
        session.complain(error.spelled(as_flag))
    else:
        say(session, mean._noted)
        yield mean


# The text of a command: read, with notes about it on stderr.


def text_or_capture(session: Session, source: TextIn) -> str | Capture:
    """The text, or the saved capture in its place."""
    read = _read(session, source)
    if isinstance(read, Path):
        from attnviz.inputs.captures import load_capture

        check_run_already(session.given(*RUN))
        captured = load_capture(read)
        if read.suffix.lower() == ".jsonl" and not captured.causal:
            session.note("these rows are not causal: a query attends to a later token")
        say(session, model_notes(captured.model))
        return captured
    return read


def text_alone(
    session: Session, source: TextIn, refusal: str, hint: str = "give the text again"
) -> str:
    """The text, for a command that needs a run."""
    return _to_run(_read(session, source), refusal, hint)


def texts_alone(session: Session, texts: Sequence[str]) -> list[str]:
    """Several texts to compare, each of which needs a run."""
    read = (_read(session, TextIn(text), alone=False) for text in texts)
    refusal, hint = "saved captures are not compared", "give the texts again"
    return [_to_run(each, refusal, hint) for each in read]


def _to_run(read: str | Path, refusal: str, hint: str) -> str:
    if isinstance(read, Path):
        raise UsageError(refusal, hint)
    return read


def _read(session: Session, source: TextIn, *, alone: bool = True) -> str | Path:
    medium = any(session.value(each.option) for each in MEDIA.values())
    stdin = session.stdin
    if medium and source == TextIn() and not stdin.is_terminal:  # a pipe may stay open for long
        from attnviz.models.catalog import reads_apart

        stdin = Stdin(None, False) if reads_apart(session.value("model")) else stdin
    name = str(source.file or source.text)
    if name.lower().endswith(".jsonl") and None in (source.file, source.text):
        from attnviz.inputs.steps import holds_steps

        if holds_steps(Path(name)):
            return Path(name)
    read = read_text(source.text, source.file, stdin, alone=alone, medium=medium)
    if isinstance(read, Path):
        return read
    if read.note:
        session.note(read.note)
    elif source.text in KNOWN_MODELS or os.path.isfile(os.path.join(source.text or "", CONFIG)):
        meant = option("model", source.text)
        session.note(f"{source.text!r} is read as the text, but is a model: did you mean {meant}?")
    return read.text


def say(session: Session, notes: Sequence[str], where: str = "") -> None:
    """Write each note on a line of stderr; `where` names the text that it is about."""
    for note in notes:
        session.note(where + note)


def note_texts(session: Session, captures: Sequence[Capture]) -> None:
    """Write notes on stderr about each run, and one on texts unlike the model's training."""
    for n, captured in enumerate(captures, start=1):
        where = f"text {n}: " if len(captures) > 1 else ""
        say(session, run_notes(captured), where)
    strange = [captured.strange for captured in captures]
    note_strange(session, strange, "text", [*map(without_image, captures)])


def note_strange(
    session: Session, strange: Sequence[bool], what: str, alone: Sequence[str] = ()
) -> None:
    """Write a line on stderr if some of these texts are unlike the model's training.

    `alone`: for each text, whether it lacks an image; the note comes once, if all lack one.
    """
    unseen = dict.fromkeys(alone) if all(alone) else ()
    say(session, [*filter(None, [strange_note(sum(strange), len(strange), what)]), *unseen])
