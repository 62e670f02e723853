"""A results file: the rows of many answers, which a later run continues.

The rows of an answer are written at once. What a killed run had begun is cut off, together with the
answer before it, as nothing says whether that one is whole.
"""

import gc
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, TypeAlias

from attnviz.commands.generate.answer import AnswerShares
from attnviz.draw.titles import amount
from attnviz.errors import ExitStatus, InputError, ModelError, UsageError, option
from attnviz.inputs.beside import digest_of, digest_of_images
from attnviz.inputs.prompts import Document, Prompt, Source
from attnviz.inputs.text import LARGEST
from attnviz.kit.session import Session, as_flag
from attnviz.kit.write import as_output_error, fill
from attnviz.records.capture import ModelIdentity
from attnviz.records.rows import ABSENT, LINE, Field, Fields, JsonObject, Row, read_as, to_json
from attnviz.records.tokens import current_call

Id: TypeAlias = str | int | None
NUMBERED = 8
"""Lines that are named by their numbers."""
QUESTION = 200
"""The most letters of a question in its rows."""
NO_MATTER = frozenset("lines file chat resume pages device max_memory".split())
"""Options that change no number."""


def _added(name: str, about: str, type_: Any = str) -> Field[Any]:
    """A column that rows have only in a results file, which adds it."""
    return Field(name, type_, f"In a results file: {about}.", lambda row: ABSENT, optional=True)


_OF_RUN = (
    _added("input", "a digest of the line, its images, and the documents before it"),
    _added("model", "the model's name and fingerprint"),
    _added("settings", "the options that were given"),
)
OF_ANSWER = (
    _added(
        "source",
        "the role of the segment for the answer, or null between the others",
        Source | None,
    ),
    _added("question", "the text that asks, cut"),
    _added("page", "the answer's page, as the file sees it"),
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
_ID = Field[Any]("id", str | int | None, optional=True)
_READ = Fields[Any](
    all=(
        *(LINE, _ID),
        *(Field(name, str) for name in ("input", "model", "settings")),
        *(Field(name, str | None, optional=True) for name in ("error", "page", "heads")),
    )
)
_BEGINNINGS = b'{"line": 1, "row": ', b'{"line": 1, "id": '
"""The beginnings of a row of line 1."""


@dataclass(frozen=True)
class Before:
    """The input before every line: documents, and image and template files.

    `folder`: that of the lines.

    The `digest` is that of their content.
    """

    documents: Sequence[Document]
    files: Sequence[Path]
    folder: Path

    @cached_property
    def digest(self) -> str:
        return "".join([*map(repr, self.documents), *map(digest_of, self.files)])


@dataclass(frozen=True)
class _Line:
    """A line of the input in a results file: `start` is the first byte of its rows."""

    id: Id
    input: str
    failed: bool
    start: int = 0


@dataclass
class Results:
    """A results file that is being written.

    `file`: open, and held against another run. `made`: the model and the settings of its rows.
    `heads`: those whose rows are joined.
    `pages`: the folder of the answers' pages. `lines`: those of the input that it has. `end`: how
    many of its bytes are kept. `now`: the line that is being answered, and its number.
    """

    path: Path
    file: FileIO
    made: Mapping[str, str]
    heads: str
    pages: Path | None
    before: Before
    lines: dict[int, _Line] = field(default_factory=dict)
    end: int = 0
    now: tuple[int, str | None] = (0, None)

    def __post_init__(self) -> None:
        """Take over what the file has, but for the last line, whose rows may not all be there."""
        start = 0
        buffered = BufferedReader(self.file)  # without it each byte is read by itself
        for number, content in enumerate(iter(lambda: buffered.readline(LARGEST), b""), start=1):
            row = _row_of(content)
            if not content.endswith(b"\n") and (row or _is_begun(content)) and not buffered.peek(1):
                break  # a run was killed here
            if row is None:
                wrong = f"line {number} of {str(self.path)!r} is not a row of a results file"
                raise InputError(wrong, "give another file")
            self._check_one_run(row)
            there = _Line(row.get("id"), row["input"], "error" in row, start)
            self.lines.setdefault(row["line"], there)
            start += len(content)
        buffered.detach()  # else it closes the file with it
        if self.lines:
            self.end = self.lines.popitem()[1].start
        elif self.pages is not None and len(list(self.pages.glob("*.html"))) > 1:
            raise UsageError(
                f"{str(self.pages)!r} has the pages of another run", "name another folder"
            )

    def _check_one_run(self, row: JsonObject) -> None:
        """See that a row is of this model with these settings."""
        shown = repr(str(self.path))
        for key, value in {**self.made, "heads": self.heads}.items():
            if row.get(key, value) != value:
                raise UsageError(
                    f"{shown} has the {key} {row[key]!r}, but this run {value!r}",
                    "give the same, or another file",
                )
        if "error" not in row and ("page" in row) != (self.pages is not None):
            how = "with" if "page" in row else "without"
            wrong = f"{shown} was made {how} {option('pages')}"
            raise UsageError(wrong, "do the same, or give another file")

    @property
    def failed(self) -> list[int]:
        """The lines that have no answer."""
        return [number for number, line in self.lines.items() if line.failed]

    def has(self, number: int, text: str | None) -> bool:
        """Whether this line was answered already; else it is the next one.

        Raises:
            InputError: another one was.
        """
        self.now = number, text
        there = self.lines.get(number)
        if there is not None and there.input != self.digest:
            raise InputError(
                f"line {number} is not the one that {str(self.path)!r} has an answer to",
                "give the same lines, documents and images, or another file",
            )
        return there is not None

    @property
    def digest(self) -> str:
        """The digest of the line, its images, and the documents and images before all lines."""
        images = digest_of_images(self.now[1] or "", self.before.folder)
        said = f"{self.before.digest}{self.now[1]}{images}"
        return sha256(said.encode("utf-8", "replace")).hexdigest()[:16]

    def page_of(self, line: int) -> Path | None:
        """The file of an answer's page."""
        return None if self.pages is None else self.pages / f"{line}.html"

    def rows(
        self, shares: AnswerShares, rows: Iterable[Mapping[str, Any]], prompt: Prompt
    ) -> Iterator[Row]:
        """The rows of an answer, with what a results file adds to them."""
        asks = " ".join(prompt.question.split())
        more: dict[str, Any] = {
            "question": asks if len(asks) <= QUESTION else asks[: QUESTION - 1] + "…"
        }
        if page := self.page_of(self.now[0]):
            more["page"] = Path(os.path.relpath(page, self.path.parent)).as_posix()
        every = shares.answer.sections
        sections = [next(s.name for s in every if part.first < s.after) for part in shares.parts]
        for row in rows:
            source = prompt.source(row["segment"]) if row["part"] == "segment" else None
            of_row = {"section": sections[row["row"] - 1], "source": source}
            yield {**row, **of_row, **more, "input": self.digest, **self.made}

    def append(self, data: bytes, *, failed: bool = False) -> None:
        """Write the rows of the line: all, or where the disk is full, none."""
        number, text = self.now
        with as_output_error(self.path):
            self.file.seek(self.end)
            self.file.truncate()
        try:
            fill(self.path, self.file, [data])
        except BaseException:
            with suppress(OSError):
                self.file.truncate(self.end)
            raise
        self.lines[number] = _Line(_id_of(text), self.digest, failed)
        self.end += len(data)

    def fail(self, error: str) -> None:
        """Write that the line has no answer, and why."""
        number, text = self.now
        about = {"line": number, "id": _id_of(text), "error": error, "input": self.digest}
        self.append(f"{to_json({**about, **self.made})}\n".encode(), failed=True)


def _row_of(content: bytes | str, fields: Fields[Any] = _READ) -> JsonObject | None:
    """The fields of a row that are read of it, where it is one."""
    try:
        row: JsonObject = read_as(fields, json.loads(content), "the row")
        return row
    except (ValueError, RecursionError):
        return None


def _is_begun(content: bytes) -> bool:
    """Whether this is the beginning of a row, and no whole value."""
    with suppress(ValueError, RecursionError):
        json.loads(content)
        return False
    begun = re.sub(rb"\d+", b"1", content[:64], count=1)
    return any(each.startswith(begun) or begun.startswith(each) for each in _BEGINNINGS)


def _id_of(text: str | None) -> Id:
    """The id of a line, as far as it can be read."""
    row = _row_of(text or "", Fields(all=(_ID,)))
    return row.get("id") if row else None


@contextmanager
def results_file(
    path: Path, model: ModelIdentity, pages: Path | None, before: Before, heads: str
) -> Iterator[Results]:
    """A results file to go on with, which no other run writes meanwhile."""
    settings = current_call().options
    told = (as_flag(key, str(settings[key])) for key in sorted(settings) if key not in NO_MATTER)
    made = {"model": f"{model.name} {model.fingerprint}", "settings": " ".join(told)}
    with as_output_error(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with FileIO(descriptor, "r+b") as file:
        _hold(file, path)
        yield Results(path, file, made, heads, pages, before)


def _hold(file: FileIO, path: Path) -> None:
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
    seen = set[int]()
    for number, line in lines:
        gc.collect()
        text = line if isinstance(line, str) else None
        seen.add(number)
        if results.has(number, text):
            continue
        other = ids.setdefault(_id_of(text), number)
        if other != number and _id_of(text) is not None:
            session.note(f"line {number} has the id {_id_of(text)!r} of line {other}")
        try:
            if isinstance(line, InputError):
                raise line
            results.append(b"".join(run(line, number)))
        except (InputError, ModelError) as error:
            said = error.spelled(as_flag)
            session.complain(said if error is line else f"line {number}: {said}")
            results.fail(said)
    _end(session, results, seen)


def _end(session: Session, results: Results, seen: Collection[int]) -> None:
    """Say how many lines have an answer, and which have none, or are there no more."""
    bad, good = results.failed, len(results.lines) - len(results.failed)
    if gone := [number for number in results.lines if number not in seen]:
        session.note(f"{results.path} also has {_numbered(gone)}, which the input has not")
    if not good:
        raise InputError("no line could be answered", "see the errors above")
    if bad:
        session.status = ExitStatus.INPUT
    with as_output_error(results.path):
        results.file.truncate(results.end)  # rows of a line that the input has no more
    told = f", and none for {_numbered(bad)}" if bad else ""
    session.logged(f"{results.path} has {amount(good, 'answer')}{told}")


def _numbered(lines: Sequence[int]) -> str:
    """`line 3`, `lines 3, 4`, `100 lines (3, 4, … )`."""
    listed = ", ".join(map(str, lines[:NUMBERED]))
    if len(lines) > NUMBERED:
        return f"{len(lines)} lines ({listed}, …)"
    return f"line{'s' * (len(lines) > 1)} {listed}"
