"""A results file, read row by row: what is damaged is named, and is in no mean."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any

from attnviz.commands.report.record import (
    GroundedStatement,
    Id,
    LeftOut,
    ReportedQuestion,
    ResultsReport,
    SourceUse,
)
from attnviz.errors import InputError, option, readable
from attnviz.inputs.beside import json_of
from attnviz.inputs.prompts import Source
from attnviz.inputs.text import STDIN, Stdin, read_lines
from attnviz.records.grounding import Contradiction, Groundedness, Use, Verdict
from attnviz.records.rows import Field, Fields, JsonObject, read_as

HINT = "write one with: attnviz generate --lines --check -o results.jsonl --resume"
NUMBER = int | float
"""jq writes 1.0 as 1."""
_OF_RUN: tuple[Field[Any], ...] = (
    Field("line", int),
    Field("id", str | int | None, optional=True),
    Field("model", str),
    Field("settings", str),
)
FAILED = Fields[Any](all=(*_OF_RUN, Field("error", str)))
SHARE = Fields[Any](
    all=(
        *_OF_RUN,
        Field("row", int),
        *(Field(name, str) for name in ("text", "segment", "part")),
        Field("share", NUMBER),
        *(Field(name, NUMBER | None) for name in ("groundedness", "unrelated")),
        Field("change", NUMBER | None, optional=True),
        Field("needed", bool | None, optional=True),
        Field("use", Use | None, optional=True),
        Field("verdict", Verdict | None, optional=True),
        *(Field(name, str | None, optional=True) for name in ("given", "instead", "says")),
        Field("section", str),
        Field("source", Source | None),
        *(Field(name, str | None, optional=True) for name in ("question", "page")),
    )
)
MOST_DAMAGED = 1000
"""A file with more rows that cannot be read holds no results."""
SUM = 0.02
"""The distance from 1 that the shares of a row may add up to, as those of half precision do."""


def read_results(path: str) -> ResultsReport:
    """Read the questions of a results file.

    Raises:
        InputError: it holds none, or those of several models, or of several settings.
    """
    if path == STDIN:
        raise InputError("results are read from a file", "name it, or give /dev/stdin")
    file = _File(path)
    questions, seen = list[ReportedQuestion](), set[int]()
    for line, rows in groupby(file.rows(), key=lambda row: row.line):
        first, *others = rows
        answer = _Answer(first)
        for row in others:
            answer.add(row)
        wrong = f"line {line} was there before" if line in seen else answer.wrong()
        seen.add(line)
        if wrong:
            name = ReportedQuestion(line, answer.id).name
            why = f"{readable(name)} is left out: {wrong}"
            file.leave_out(LeftOut(answer.first.number, why, question=True))
        else:
            questions.append(answer.question(os.path.dirname(path)))
    if not questions:
        why = f": {file.damage[0].why}" if file.damage else ""
        raise InputError(f"{path!r} holds no results of an evaluation{why}", HINT)
    model, settings = file.made
    return ResultsReport(path, model, settings, tuple(questions), tuple(file.damage))


@dataclass(frozen=True)
class _ResultRow:
    """A row of the file by its number; without `content`, a damaged one.

    One of which nobody knows the line counts for that of the row before.
    """

    number: int
    line: int
    content: JsonObject | None = None


class _DamagedRow(ValueError):
    """A row that is none of results; `line`: the line that it is of, if that can be read."""

    def __init__(self, wrong: str, line: object = None) -> None:
        super().__init__(wrong)
        self.line = line if type(line) is int else None


@dataclass
class _File:
    """A results file; `made`: the model and the settings of its rows, first in row `since`."""

    path: str
    made: tuple[str, str] = ("", "")
    since: int = 0
    damage: list[LeftOut] = field(default_factory=list)

    def leave_out(self, damage: LeftOut) -> None:
        self.damage.append(damage)
        if len(self.damage) > MOST_DAMAGED:
            raise InputError(f"{self.path!r} is not a results file: over 1,000 rows fail", HINT)

    def rows(self) -> Iterator[_ResultRow]:
        """The rows; of damaged ones only those that come after another."""
        last: int | None = None
        nothing = Stdin(None, is_terminal=False)
        for number, text in read_lines(None, Path(self.path), nothing, hint=HINT):
            try:
                content = _checked(text, number)
            except _DamagedRow as error:
                self.leave_out(LeftOut(number, f"row {number} {error}"))
                line = last if error.line is None else error.line
                if line is not None:
                    yield _ResultRow(number, line)
                continue
            self._check_one_run(number, content)
            last = content["line"]
            yield _ResultRow(number, content["line"], content)

    def _check_one_run(self, number: int, content: JsonObject) -> None:
        """See that all rows are of one model with one choice of settings."""
        if not self.since:
            self.made, self.since = (content["model"], content["settings"]), number
            if "--check" not in content["settings"]:
                raise InputError(f"{self.path!r} was made without --check", HINT)
        for what, first in zip(("model", "settings"), self.made, strict=True):
            if content[what] != first:
                raise InputError(
                    f"{self.path!r} has {first!r} in row {self.since} and {content[what]!r} in row "
                    f"{number}, but a report is of one {what.removesuffix('s')}",
                    f"report each by itself; {option('against')} compares two files",
                )


def _checked(text: str | InputError, number: int) -> JsonObject:
    """A row with the fields that are needed of it.

    Raises:
        _DamagedRow: it has others; the message continues after the number of the row.
    """
    try:
        written = json_of(text, HINT) if isinstance(text, str) else text
        if isinstance(written, InputError):
            raise written
    except InputError as error:
        why = error.wrong.removeprefix(f"line {number} ").removeprefix("it ")
        begun = re.match(r'\{"line": ?(\d{1,9}),', text) if isinstance(text, str) else None
        raise _DamagedRow(why, begun and int(begun[1])) from None
    line = written.get("line") if isinstance(written, dict) else None
    failed = isinstance(written, dict) and "error" in written
    if isinstance(written, dict) and "share" in written and "model" not in written:
        raise _DamagedRow("was not written with --resume", line)
    try:
        content: JsonObject = read_as(FAILED if failed else SHARE, written, "the row")
    except ValueError as error:
        raise _DamagedRow(f"is not a row of results: {error}", line) from None
    for name, value in content.items():
        shares = name in ("groundedness", "unrelated")
        if isinstance(value, float) and not (isfinite(value) and (not shares or 0 <= value <= 1)):
            raise _DamagedRow(f"is not a row of results: {name} cannot be {value}", line)
    return content


@dataclass
class _Answer:
    """The rows of a line of the input, added up as they come.

    `at`: the number of segments of the current row so far, and `total` the sum of their shares;
    `images`: it has rows of regions of images.
    """

    first: _ResultRow
    statements: list[GroundedStatement] = field(default_factory=list)
    columns: list["_Column"] = field(default_factory=list)
    at: int = 0
    total: float = 1.0
    whole: bool = True
    images: bool = False

    def __post_init__(self) -> None:
        self.add(self.first)

    @property
    def id(self) -> Id:
        """The id of the question; a blank one names nothing."""
        id_: Id = self.content.get("id")
        return id_ if str(id_).strip() else None

    @property
    def content(self) -> JsonObject:
        return self.first.content or {}

    def add(self, row: _ResultRow) -> None:
        """Add a row, and check that it begins where the one before it ended."""
        content = row.content
        if content is None or content.get("id") != self.content.get("id"):
            self.whole = False
            return
        if "error" in content:
            self.whole &= row is self.first
            return
        if content["part"] == "region":  # of an image, whose own row has all of its share
            self.images = True
            return
        support, section = None, content["section"]
        if re.fullmatch(r"answer( \d+)?", section):
            section = None
            if any(map(str.isalnum, content["text"])):
                support = Groundedness(content["groundedness"], content["unrelated"])
        statement = GroundedStatement(content["text"], support, section, *_said(content, support))
        if content["row"] == len(self.statements) + 1:
            self._end_row()
            self.statements.append(statement)
            self.at, self.total = 0, 0.0
        if content["row"] == 1:
            self.columns.append(_Column(content))
        self.whole &= content["row"] == len(self.statements) and self.at < len(self.columns)
        if self.whole:
            self.whole &= statement == self.statements[-1] and self.columns[self.at].add(content)
        self.at += 1
        self.total += content["share"]

    def _end_row(self) -> None:
        self.whole &= self.at == len(self.columns) and abs(self.total - 1) <= SUM

    def wrong(self) -> str:
        """The fault of a question when all of its rows are read; empty without one."""
        self._end_row()
        mixed = "error" in self.content and bool(self.statements)
        if mixed or not self.whole:
            return "rows of it are missing or damaged"
        return "it has images, and groundedness is only of documents" if self.images else ""

    def question(self, folder: str) -> ReportedQuestion:
        """Make the question, if nothing is wrong; `folder`: that of the file, for its pages."""
        content, page = self.content, self.content.get("page")
        statements = tuple(each for each in self.statements if each.text.strip())
        spoken = any(each.support for each in statements)
        segments = [each for each in self.columns if each.first["part"] == "segment"]
        return ReportedQuestion(
            line=self.first.line,
            id=self.id,
            text=content.get("question") or "",
            statements=statements,
            sources=tuple(each.use(len(self.statements)) for each in segments if spoken),
            page=page and os.path.normpath(os.path.join(folder, page)),
            error=content.get("error"),
        )


def _said(
    content: JsonObject, support: Groundedness | None
) -> tuple[Verdict | None, Contradiction | None]:
    """The verdict of a row, and what contradicts its statement; earlier versions wrote neither."""
    if support is None:
        return None, None
    by_number: Mapping[bool | None, Verdict] = {True: "supported", False: "not supported"}
    verdict = content["verdict"] if "verdict" in content else by_number.get(support.supported)
    given, instead = content.get("given"), content.get("instead")
    if verdict != "contradicted" or given is None or instead is None:
        return verdict, None
    return verdict, Contradiction(given, instead, 0, 0.0, content.get("says") or "")


@dataclass
class _Column:
    """A segment, row by row; `first`: its first row."""

    first: JsonObject
    share: float = 0.0
    change: float | None = 0.0

    def add(self, content: JsonObject) -> bool:
        """Add a row, which is to be of the same segment."""
        change = content.get("change")
        self.share += content["share"]
        self.change = None if change is None or self.change is None else self.change + change
        same = "segment", "part", "source", "needed", "use"
        return all(content.get(name) == self.first.get(name) for name in same)

    def use(self, rows: int) -> SourceUse:
        own = self.first
        share, needed = self.share / rows, own.get("needed")
        use = own.get("use")
        return SourceUse(own["segment"], own["source"], share, self.change, needed, use)
