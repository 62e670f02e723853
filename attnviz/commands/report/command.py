"""`attnviz report`: what a results file of `generate` comes to."""

from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from attnviz.commands.report.record import ResultsReport
from attnviz.commands.report.results import read_results
from attnviz.commands.report.rows import OF_RESULTS, Evaluation
from attnviz.commands.report.shown import damage_said, notes_on
from attnviz.draw.titles import amount
from attnviz.errors import ExitStatus, InputError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import say
from attnviz.kit.option import Call, Cli, command_of, feature, positional
from attnviz.kit.session import Session, as_flag
from attnviz.kit.values import FilePath, path_of

Earlier: TypeAlias = Annotated[
    FilePath | None,
    Cli(Path | None),
    g.text_option(
        "--against",
        metavar="FILE",
        help="The results of an earlier run: what got worse comes first.",
    ),
]
FailUnder: TypeAlias = Annotated[
    float | None,
    g.output_option(
        "--fail-under",
        metavar="X",
        min=0.0,
        max=1.0,
        help="End with exit code 6 where the mean groundedness is below X, or there is none.",
    ),
]
FailDrop: TypeAlias = Annotated[
    float | None,
    g.output_option(
        "--fail-drop",
        metavar="X",
        min=0.0,
        max=1.0,
        help="With --against: end with exit code 6 where the mean change of groundedness is below "
        "−X, or there is none.",
    ),
]
MaxFailed: TypeAlias = Annotated[
    int | None,
    g.output_option(
        "--max-failed",
        metavar="N",
        min=0,
        help="End with exit code 6 where more than N questions have no answer.",
        show_default="0 with another --fail option, else any number",
    ),
]
FailOn: TypeAlias = Annotated[
    Literal["contradicted"] | None,
    g.output_option(
        "--fail-on", help="End with exit code 6 where documents contradict a statement."
    ),
]
TopQuestions: TypeAlias = Annotated[
    int | None,
    g.top_option(
        "Show the K questions to read first.", show_default=f"{OF_RESULTS.top}; all as rows"
    ),
]


@feature()
def report(path: FilePath, *, against: Earlier = None) -> Evaluation:
    """Read a results file: how well its answers are grounded, and which of them to read first.

    >>> row = '{"line": 1, "row": 1, "text": "blue .", "segment": "letter", "part": "segment", '
    >>> row += '"share": 1, "groundedness": 0.8, "unrelated": 0.1, "section": "answer", '
    >>> row += '"source": "document", "model": "builtin", "settings": "--check"}'
    >>> with open("results.jsonl", "w") as file:
    ...     print(row, file=file)
    >>> attnviz.report("results.jsonl")
    <Evaluation of results.jsonl: groundedness .80 over 1 question>

    Args:
        path: what `attnviz generate --lines --check -o results.jsonl --resume` wrote.

    Raises:
        InputError: a file holds no results, or those of two models or settings; or the two files
            are of different settings.
    """
    found = read_results(path_of("path", path))
    if against is not None:
        found = replace(found, against=(old := read_results(path_of("against", against))))
        if old.settings != found.settings:
            raise InputError(
                f"{found.path!r} was made with {found.settings!r}, but {old.path!r} with "
                f"{old.settings!r}",
                "compare results of the same settings",
            )
    return Evaluation(OF_RESULTS, found)


EXAMPLES = """
attnviz generate --lines --file sample:questions --check -o results.jsonl --resume
attnviz report results.jsonl
attnviz report results.jsonl -o report.html
attnviz report results.jsonl --against old.jsonl --fail-drop 0.05
attnviz report results.jsonl --fail-under 0.8 -f json | jq .groundedness
attnviz report results.jsonl -f jsonl | jq -r 'select(.unsupported > 0).id'
"""
SHORT_HELP = "against fail_on fail_under fail_drop max_failed top format output quiet"


@command_of(report, "file against fail_on fail_under fail_drop max_failed top")
def command_line(
    session: Session,
    call: Call[Evaluation],
    *,
    file: Annotated[
        Path,
        positional(
            "FILE", "The results: what generate --lines --check --resume -o FILE.jsonl wrote."
        ),
    ],
    fail_on: FailOn = None,
    fail_under: FailUnder = None,
    fail_drop: FailDrop = None,
    max_failed: MaxFailed = None,
    top: TopQuestions = None,
    output: g.EvaluationOutput,
) -> None:
    """Show how well many answers are grounded, and which of them to read first."""
    to = destination_of(session, output)
    if to.format.name in ("json", "html"):
        session.refuse("top", wrong=f"does nothing for {to.format.name}")
    if call["against"] is None:
        session.refuse("fail_drop", wrong="needs an earlier file", hint=f"give {option('against')}")
    found = call(file)
    for why in damage_said(found.record):
        session.complain(why)
        session.status = ExitStatus.INPUT
    say(session, [*notes_on(found.record)])
    contradicted = fail_on is not None
    for why in _too_bad(found.record, contradicted, fail_under, fail_drop, max_failed):
        session.complain(why)
        session.status = ExitStatus.BELOW
    seen = found if to.output is None else found.seen_from(to.output.parent)
    deliver_result(session, to, replace(seen, _top=top))


LEAST = 1e-9
"""The distance below a limit up to which a mean counts as reaching it, because of rounding."""


def _too_bad(
    report: ResultsReport,
    contradicted: bool,
    under: float | None,
    drop: float | None,
    failed: int | None,
) -> Iterator[str]:
    """The values that are worse than these options allow, a sentence each."""
    if not contradicted and (under, drop, failed) == (None, None, None):
        return
    if contradicted and not report.told:
        yield f"no statement was tested, and {as_flag('fail_on')} asks for that"
    if contradicted and (bad := report.told.count("contradicted")):
        yield f"{amount(bad, 'statement')} contradicted by documents"
    if (number := report.unanswered) > (allowed := failed or 0):
        every = amount(len(report.questions) + report.lost, "question")
        has = "has" if number == 1 else "have"
        yield f"{number} of {every} {has} no answer, and {as_flag('max_failed')} is {allowed}"
    if under is not None and not (mean := report.estimate("groundedness").mean) >= under - LEAST:
        said = "no question has a groundedness" if isnan(mean) else f"groundedness is {mean:.6g}"
        yield f"{said}, and {as_flag('fail_under')} asks for {under:g}"
    if drop is not None and not (mean := report.change("groundedness").mean) >= -drop - LEAST:
        fell = "no question has a groundedness in both files"
        fell = fell if isnan(mean) else f"groundedness fell by {-mean:.6g}"
        yield f"{fell}, and {as_flag('fail_drop')} allows {drop:g}"
