"""A report as rows, one for each question, and as JSON: the means over all, then the rows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnviz.commands.report.record import MEASURES, LeftOut, ReportedQuestion, ResultsReport
from attnviz.commands.report.shown import damage_said, notes_on, title
from attnviz.kit.result import Form, Result
from attnviz.kit.values import FilePath, path_of
from attnviz.records.metrics import Estimate
from attnviz.records.rows import (
    ABSENT,
    Field,
    Fields,
    JsonOutput,
    at,
    estimate_fields,
    list_of,
    object_fields,
)

ROW = Fields[ReportedQuestion](
    "ReportRow",
    "A question, and how well its answer is grounded.",
    (
        Field("line", int, "The number of the input line."),
        Field("id", str | int | None, "Its own id."),
        Field(
            "groundedness",
            float | None,
            "The mean over the statements that have one, or null without any.",
        ),
        Field(
            "change",
            float | None,
            "With --against: this minus that of the earlier file.",
            optional=True,
        ),
        Field(
            "statements",
            int,
            "Those of its thinking do not count.",
            lambda question: sum(each.section is None for each in question.statements),
        ),
        Field(
            "contradicted",
            float | None,
            "The share of tested statements in the place of which documents say something else; "
            "null if none was tested.",
        ),
        Field(
            "unsupported",
            float | None,
            "The share of statements that the documents support no more than unrelated text does; "
            "null if it cannot be said of any.",
        ),
        Field("documents", int, "", lambda question: len(question.documents)),
        Field(
            "unused",
            float | None,
            "The share of documents that are not needed, and cost no more than unrelated text when "
            "they are deleted; null without any, or if none was deleted.",
        ),
        Field(
            "system_share",
            float | None,
            "The share of attention on the system prompt, or null without one.",
        ),
        Field("question", str, "The text that asks, cut.", at("text")),
        Field("answer", str),
        Field("error", str | None, "Why there is no answer."),
        Field("page", str | None, "The answer's own page, from here."),
    ),
)


def _all_rows(report: ResultsReport, top: int | None = None) -> Iterator[ReportedQuestion]:
    unpaired = ABSENT if report.against is None else None
    for each in report.to_read[:top]:
        yield replace(each, change=report.changes.get(each.line, unpaired))


def _change_of(measure: str) -> tuple[Field[Any], Field[Any]]:
    about = "The mean difference over the questions of which both files have it."
    return estimate_fields(measure, about, lambda report: report.change(measure))


COMPARED = Fields[ResultsReport](
    "ComparedObject",
    "The changes from an earlier file.",
    (
        Field("results", str, "The earlier file.", at("against.path")),
        Field("model", str, "Its model.", at("against.model")),
        Field("questions", int, "How many both have.", lambda report: len(report.pairs)),
        *(field for measure in MEASURES for field in _change_of(measure)),
        Field("only_now", list[str], "", lambda report: report.only_in(earlier=False)),
        Field("only_earlier", list[str], "", lambda report: report.only_in(earlier=True)),
    ),
)


LEFT_OUT = Fields[LeftOut](
    "LeftOutObject",
    "A damaged row of the file, or a question of which rows are missing; it is in no mean.",
    (Field("row", int, "Where in the file, from 1."), Field("why", str)),
)


def _over_all(measure: str, about: str) -> list[Field[Any]]:
    """The mean over questions, its standard error, and how many have the number."""
    return [
        *estimate_fields(measure, about, lambda report: report.estimate(measure)),
        Field(f"{measure}_questions", int, "", lambda report: len(report.values(measure))),
    ]


def _apart(name: str, about: str) -> Field[Any]:
    return Field(name, int, about, lambda report: report.told_apart[name])


WHOLE = Fields[ResultsReport](
    "ReportObject",
    "A results file: means over its questions with standard errors, then each question.",
    (
        *object_fields("report"),
        Field("results", str, "The file.", at("path")),
        Field("model", str, "The model's name and its fingerprint."),
        Field("settings", str, "The options that decide the numbers."),
        Field("questions", int, "", lambda report: len(report.questions)),
        Field("answered", int, "", lambda report: len(report.answered)),
        Field("failed", int, "", lambda report: len(report.failed)),
        _apart("empty", "Answers without a letter or digit; as those of the next two, in no mean."),
        _apart("without_documents", "Answers that had none."),
        _apart("certain", "Answers that are as probable without documents."),
        *_over_all("groundedness", "The mean over questions."),
        *_over_all("contradicted", "The share of a question's statements that are contradicted."),
        *_over_all("unsupported", "The share of a question's statements that nothing supports."),
        *_over_all("unused", "The share of a question's documents that were not used."),
        *_over_all("system_share", "The share of attention on the system prompt."),
        Field(
            "statements",
            int,
            "Those of all answers, where support can be said.",
            lambda report: len(report.told),
        ),
        Field("contradicted_statements", int, "", lambda report: report.told.count("contradicted")),
        Field("unsupported_statements", int, "", lambda report: report.told.count("not supported")),
        Field(
            "never_used",
            dict[str, int],
            "Documents that two questions or more have and none used: how many have them.",
        ),
        Field("repeated_ids", list[Any], "", at("repeated")),
        Field("left_out", list_of(LEFT_OUT)),
        Field("against", COMPARED, "", lambda r: r if r.against else ABSENT, optional=True),
        Field("rows", list_of(ROW), "The questions to read first come first.", _all_rows),
    ),
)
JSON = JsonOutput((ROW,), (WHOLE,), rows_as_json=False)
OF_RESULTS = Form[ResultsReport](
    "report",
    ROW,
    lambda report, top, line: _all_rows(report, top),
    title,
    terminal="attnviz.commands.report.shown:render",
    page="attnviz.commands.report.page:page",
    whole=WHOLE,
    top=10,
)


class Evaluation(Result[ResultsReport]):
    """The summary of a results file; made by `attnviz.report`.

    >>> row = '{"line": 1, "row": 1, "text": "blue .", "segment": "letter", "part": "segment", '
    >>> row += '"share": 1, "groundedness": 0.8, "unrelated": 0.1, "section": "answer", '
    >>> row += '"source": "document", "model": "builtin", "settings": "--check"}'
    >>> with open("results.jsonl", "w") as file:
    ...     print(row, file=file)
    >>> attnviz.report("results.jsonl").groundedness.mean
    0.8
    """

    @property
    def groundedness(self) -> Estimate:
        """The mean over the questions that have one, and its standard error."""
        return self.record.estimate("groundedness")

    @property
    def change(self) -> Estimate:
        """The mean change from the earlier file, over the questions of both; NaN without any."""
        return self.record.change("groundedness")

    @property
    def contradicted(self) -> int:
        """The number of statements that documents contradict."""
        return self.record.told.count("contradicted")

    @property
    def unanswered(self) -> int:
        """The number of questions that failed, are left out, or have an empty answer."""
        return self.record.unanswered

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines that are left out, and the differences in settings from the earlier file."""
        return *damage_said(self.record), *notes_on(self.record)

    def page(self) -> str:
        """The page, one HTML document; its links hold in the folder of this process."""
        return "".join(map(str, self.pieces("html")))

    def save(self, path: FilePath, **look: Any) -> None:
        """Write it to a file, whose links to answers' pages are from its own place.

        Args:
            path: its suffix decides: html, the page; json, jsonl, csv or tsv; txt, the table.
            look: there is no picture.

        Raises:
            UsageError: another suffix.
            OutputError: the file cannot be written.
        """
        file = Path(path_of("path", path))
        super(Evaluation, self.seen_from(file.parent)).save(file, **look)

    def seen_from(self, folder: Path) -> "Evaluation":
        """The report with the paths of pages relative to a folder."""
        moved: ResultsReport = self.record.seen_from(str(folder))
        return replace(self, record=moved)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<Evaluation of {self.record.path}: {self.about}>"
