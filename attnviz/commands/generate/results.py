"""A results file: the rows of many answers, which a later run goes on with.

The rows of an answer are written at once. What a killed run had begun is cut off, together with the
answer before it, as nothing says whether that one is whole.
"""

import gc
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from attnviz.commands.generate.run import Answering
from attnviz.draw.titles import amount
from attnviz.errors import ExitStatus, InputError, ModelError, UsageError
from attnviz.inputs.text import LARGEST
from attnviz.kit.session import Session, as_flag
from attnviz.kit.write import as_output_error
from attnviz.records.capture import ModelIdentity
from attnviz.records.rows import LINE, Field, Fields, to_json
from attnviz.records.tokens import RESTS, current_call

Id: TypeAlias = str | int | None
QUESTION = 200
"""The most letters of a question in its rows."""
NO_MATTER = frozenset("lines file chat resume pages device max_memory".split())
"""Options that change no number."""
_OF_RUN: tuple[Field[Any], ...] = (
    Field("model", str, "In a results file: the model's name and fingerprint.", optional=True),
    Field("settings", str, "In a results file: the options that were given.", optional=True),
)
OF_ANSWER: tuple[Field[Any], ...] = (
    Field("question", str, "In a results file: the text that asks, cut.", optional=True),
    Field("page", str, "With --pages: the answer's page, as the file sees it.", optional=True),
    *_OF_RUN,
)
FAILED = Fields[Any](
    "FailedRow",
    "In a results file: a line that has no answer.",
    (
        LINE,
        Field("id", str | int | None, "Its own id, where it can be read."),
        Field("error", str, "Why it has none."),
        *_OF_RUN,
    ),
)


@dataclass(frozen=True)
class _Line:
    """A line of the input in a results file: its id, whether it failed, and its first byte."""

    id: Id
    failed: bool
    start: int = 0


@dataclass
class Results:
    """A results file that is being written.

    `file`: open, and held against another run. `made`: the model and the settings of its rows.
    `pages`: the folder of the answers' pages. `lines`: those of the input that it has. `end`: how
    many of its bytes are kept.
    """

    path: Path
    file: BinaryIO
    made: Mapping[str, str]
    pages: Path | None
    lines: dict[int, _Line] = field(default_factory=dict)
    end: int = 0

    def __post_init__(self) -> None:
        """Take over what the file has, but for the last line, whose rows may not all be there."""
        shown, start = repr(str(self.path)), 0
        for number, content in enumerate(iter(lambda: self.file.readline(LARGEST), b""), start=1):
            if not content.endswith(b"\n"):
                break  # a run was killed here
            try:
                row = json.loads(content)
                line, made = int(row["line"]), {key: row[key] for key in self.made}
            except (ValueError, TypeError, KeyError, RecursionError):
                wrong = f"line {number} of {shown} is no row of a results file"
                raise InputError(wrong, "give another file") from None
            for key, value in self.made.items():
                if made[key] != value:
                    raise UsageError(
                        f"{shown} has the {key} {made[key]!r}, and this run {value!r}",
                        "give the same, or another file",
                    )
            self.lines.setdefault(line, _Line(row.get("id"), "error" in row, start))
            start += len(content)
        if self.lines:
            self.end = self.lines.popitem()[1].start

    @property
    def failed(self) -> int:
        """How many lines have no answer."""
        return sum(line.failed for line in self.lines.values())

    def has(self, number: int, text: str | None) -> bool:
        """Whether this line was answered already.

        Raises:
            InputError: another one was.
        """
        there = self.lines.get(number)
        if there is not None and there.id != (given := _id_of(text)):
            raise InputError(
                f"line {number} has the id {given!r}, and {there.id!r} in {str(self.path)!r}",
                "give the same questions, or another file",
            )
        return there is not None

    def page_of(self, line: int) -> Path | None:
        """The file of an answer's page."""
        return None if self.pages is None else self.pages / f"{line}.html"

    def row(self, row: Mapping[str, Any], asked: Answering, line: int) -> dict[str, Any]:
        """A row of an answer, with what a results file adds to it."""
        more: dict[str, Any] = {"question": _question(asked)}
        if page := self.page_of(line):
            more["page"] = Path(os.path.relpath(page, self.path.parent)).as_posix()
        return {**row, **more, **self.made}

    def append(self, number: int, text: str | None, data: bytes, *, failed: bool = False) -> None:
        """Write the rows of a line, all at once."""
        with as_output_error(self.path):
            self.file.seek(self.end)
            self.file.truncate()
            self.file.write(data)
        self.lines[number] = _Line(_id_of(text), failed)
        self.end += len(data)

    def fail(self, number: int, text: str | None, error: str) -> None:
        """Write that a line has no answer, and why."""
        row = {"line": number, "id": _id_of(text), "error": error, **self.made}
        self.append(number, text, f"{to_json(row)}\n".encode(), failed=True)


def _id_of(text: str | None) -> Id:
    """The id of a line, as far as it can be read."""
    try:
        id_ = json.loads(text or "").get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return id_ if isinstance(id_, str | int) else None


def _question(asked: Answering) -> str:
    """The last text that the model reads before it answers."""
    named = [each for each in asked.prompt.segments if each.name not in RESTS]
    start, end = max((slice_ for each in named for slice_ in each.slices), default=(0, None))
    text = " ".join(asked.prompt.text[start:end].split())
    return text if len(text) <= QUESTION else text[: QUESTION - 1] + "…"


@contextmanager
def results_file(path: Path, model: ModelIdentity, pages: Path | None) -> Iterator[Results]:
    """A results file to go on with, which no other run writes meanwhile."""
    settings = current_call().options
    told = (as_flag(key, str(settings[key])) for key in sorted(settings) if key not in NO_MATTER)
    made = {"model": f"{model.name} {model.fingerprint}", "settings": " ".join(told)}
    with as_output_error(path):
        stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
    with stream as file:
        _hold(file, path)
        yield Results(path, file, made, pages)


def _hold(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another run writes {str(path)!r}", "wait for it, or give another file"
        ) from None


def answer_lines(
    session: Session,
    results: Results,
    lines: Iterable[tuple[int, str | InputError]],
    run: Callable[[str, int], Iterable[bytes]],
) -> None:
    """Answer the lines that a results file has not; one that fails is reported and written."""
    ids = {line.id: number for number, line in results.lines.items()}
    gc.freeze()  # so that to collect what an answer leaves, which keeps memory flat, is quick
    for number, line in lines:
        gc.collect()
        text = line if isinstance(line, str) else None
        if results.has(number, text):
            continue
        other = ids.setdefault(_id_of(text), number)
        if other != number and _id_of(text) is not None:
            session.note(f"line {number} has the id {_id_of(text)!r} of line {other}")
        try:
            if isinstance(line, InputError):
                raise line
            results.append(number, text, b"".join(run(line, number)))
        except (InputError, ModelError) as error:
            said = error.spelled(as_flag)
            session.complain(said if error is line else f"line {number}: {said}")
            results.fail(number, text, said)
    good, bad = len(results.lines) - results.failed, results.failed
    if not good:
        raise InputError("no line could be answered", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT
    told = f", and {amount(bad, 'line')} without" if bad else ""
    session.logged(f"{results.path} has {amount(good, 'answer')}{told}")
