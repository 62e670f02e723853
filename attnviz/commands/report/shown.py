"""A report in a terminal, and the sentences that its page shares."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.report.record import ReportedQuestion, ResultsReport
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.terminal.cells import Column, cut, folded, footnotes, listing, widest
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.records.grounding import Verdict
from attnviz.records.heads import grouped
from attnviz.records.metrics import Estimate

NAMED = 5
"""The number of questions or documents that a sentence names."""
LABEL, TEXT = 20, 12
"""Cells of a name at most, and of a text at least."""
ABOUT = {
    "groundedness": "groundedness",
    "contradicted": "contradicted statements",
    "unsupported": "unsupported statements",
    "unused": "documents not used",
    "system_share": "system prompt's share",
}
"""Each measure in words."""
MEANING = (
    "Means over questions ± standard error. The groundedness of a question is the mean over its "
    "statements."
)
UNUSED = (
    " A document is not used if it is not needed and its deletion costs no more than that of "
    "unrelated text."
)


def two(value: float | None, *, signed: bool = False) -> str:
    """Two digits, as `.81` or `−.03`; a dash where there is nothing."""
    if value is None or isnan(value):
        return "–"
    written = f"{value:{'+' if signed else ''}z.2f}"
    return written.replace("0.", ".", 1).replace("-", "−")


def with_error(estimate: Estimate, *, signed: bool = False) -> str:
    """`.81 ± .02`; the error where there is one."""
    error = "" if estimate.error is None else f" ± {two(estimate.error)}"
    return f"{two(estimate.mean, signed=signed)}{error}"


def title(report: ResultsReport) -> str:
    """`groundedness .81 ± .02 over 480 questions; 12 had no documents; 3 failed`."""
    n = len(report.values("groundedness"))
    if n:
        mean = with_error(report.estimate("groundedness"))
        said = f"groundedness {mean} over {amount(n, 'question')}"
    else:
        said = f"none of {amount(len(report.questions), 'question')} has a groundedness"
    if pairs := len(report.changes):
        change = with_error(report.change("groundedness"), signed=True)
        said += f", {change} over {amount(pairs, 'pair')} with the earlier file"
    elif report.against is not None:
        said += ", no pair with the earlier file"
    apart = report.told_apart
    counts = {
        "empty": apart["empty"],
        "had no documents": apart["without_documents"],
        "as probable without documents": apart["certain"],
        "failed": len(report.failed),
        "left out": report.lost,
    }
    return "; ".join([said, *(f"{n} {what}" for what, n in counts.items() if n)])


def about(report: ResultsReport) -> str:
    """The file, who made it, and that of the comparison."""
    facts = [report.path, report.model, report.settings]
    if report.against is not None:
        facts.append(f"against {report.against.path}")
    return ", ".join(readable(each) for each in facts if each)


def damage_said(report: ResultsReport) -> Iterator[str]:
    """The lines that are left out of both files, a sentence each."""
    for each in filter(None, (report, report.against)):
        yield from (f"{each.path}: {damage.why}" for damage in each.left_out)


def notes_on(report: ResultsReport) -> Iterator[str]:
    """The facts that a reader of the means has to know."""
    if report.repeated:
        yield f"{amount(len(report.repeated), 'id')} repeated: {listed(map(str, report.repeated))}"
    if report.against is None:
        return
    if of_it := [each for each in report.against.repeated if each not in report.repeated]:
        yield f"{amount(len(of_it), 'id')} repeated in the earlier file: {listed(map(str, of_it))}"
    if names := report.unpaired:
        yield f"{amount(len(names), 'question')} of repeated ids without a pair: {listed(names)}"
    old, new = report.against.model, report.model
    if old != new:
        yield f"the models differ: {readable(new)}, and {readable(old)} before"
    for name, earlier in ("this file", False), ("the earlier file", True):
        if names := report.only_in(earlier=earlier):
            yield f"{amount(len(names), 'question')} only in {name}: {listed(names)}"


def listed(names: Iterable[str]) -> str:
    """The first names, and how many others there are."""
    every = [readable(each) for each in names]
    few = every if len(every) <= NAMED + 1 else [*every[:NAMED], f"{len(every) - NAMED} others"]
    return ", ".join(few)


def counted(report: ResultsReport) -> Iterator[str]:
    """The numbers of bad statements; the documents that none of several questions used."""
    if told := report.told:
        numbers = (f"{said}: {told.count(verdict):,}" for verdict, said in ABOUT_BAD.items())
        yield f"{', '.join(numbers)} of {amount(len(told), 'statement')}"
    if names := [f"{name} ({amount(n, 'question')})" for name, n in report.never_used.items()]:
        yield f"never used: {listed(names)}"


def failures(report: ResultsReport, top: int) -> Iterator[str]:
    """The questions without an answer, for the first `top` reasons."""
    names = grouped((each.fault, report.name_of(each)) for each in report.failed)
    for why, own in list(names.items())[:top]:
        yield f"failed: {listed(own)}: {readable(why)}"
    if others := [*names.values()][top:]:
        reasons = amount(len(others), "other reason")
        yield f"failed: {sum(map(len, others))} more, for {reasons}; --top shows more"


def measures(report: ResultsReport) -> Iterator[Sequence[str]]:
    """Each measure that some question has: its mean, over how many, its change, and the pairs."""
    for name, words in ABOUT.items():
        if n := len(report.values(name)):
            change = []
            if report.against:
                pairs = len(report.differences(name))
                change = [with_error(report.change(name), signed=True), f"{pairs:,}"]
            yield [words, with_error(report.estimate(name)), f"{n:,}", *change]


def measure_titles(report: ResultsReport) -> Sequence[str]:
    """The names of these columns."""
    return ["mean over questions", "", "over", *(["change", "pairs"] if report.against else [])]


def meaning(report: ResultsReport) -> str:
    """The meaning of these numbers."""
    return MEANING + UNUSED * report.tells_use


def cells(report: ResultsReport, each: ReportedQuestion) -> Sequence[str]:
    """The numbers of a question: groundedness, its change, and what is wrong with it."""
    change = [two(report.changes.get(each.line), signed=True)] if report.changes else []
    used = [document.used for document in each.documents if document.used is not None]
    return [
        two(each.groundedness),
        *change,
        *(_of(each.told.count(bad), len(each.told)) for bad in _bad(report)),
        *([_of(used.count(False), len(used))] if report.tells_use else []),
    ]


def columns(report: ResultsReport) -> Sequence[str]:
    """The names of these."""
    change, unused = ["change"] * bool(report.changes), ["unused"] * report.tells_use
    bad = [ABOUT_BAD[each] for each in _bad(report)]
    return ["grounded", *change, *bad, *unused]


ABOUT_BAD: Mapping[Verdict, str] = {"contradicted": "contradicted", "not supported": "unsupported"}


def _bad(report: ResultsReport) -> list[Verdict]:
    """The bad verdicts that have a column: contradicted, if anything is."""
    return [each for each in ABOUT_BAD if each != "contradicted" or each in report.told]


def _of(some: int, every: int) -> str:
    return f"{some} of {every}" if every else "–"


def render(report: ResultsReport, display: Display, top: int) -> Iterator[RenderableType]:
    """Render the title, the means, and the `top` questions to read first."""
    width = display.width
    yield from folded(Text(_letters(title(report), display), "bold"), width)
    yield from folded(Text(about(report), "dim"), width)
    if means := [[_letters(cell, display) for cell in row] for row in measures(report)]:
        yield Text()
        heads = [Column(each, right=n > 0) for n, each in enumerate(measure_titles(report))]
        yield from listing(heads, means, width)
    for said in counted(report):
        yield from folded(Text(said), width)
    answered = [each for each in report.to_read if each.error is None]
    if answered:
        yield Text()
        yield from _questions(report, answered[:top], display)
    if (more := len(answered) - top) > 0:
        yield from footnotes([f"{amount(more, 'more question')}; -o report.html shows all"], width)
    if failed := [*failures(report, top)]:
        yield Text()
    for said in failed:
        yield from folded(Text(said), width)
    if means:
        yield from footnotes([_letters(meaning(report), display)], width)


def _questions(
    report: ResultsReport, questions: Sequence[ReportedQuestion], display: Display
) -> Iterator[Text]:
    """A line for each, with the beginning of its text where there is room."""
    heads = [Column("to read first"), *(Column(each, right=True) for each in columns(report))]
    rows = []
    for each in questions:
        name = fenced(cut(readable(report.name_of(each)), LABEL, unicode=display.unicode))
        rows.append([name, *(_letters(cell, display) for cell in cells(report, each))])
    used = sum(2 + widest([head.name, *each]) for head, *each in zip(heads, *rows, strict=True))
    if (room := display.width - used) >= TEXT:
        heads.append(Column(""))
        for row, each in zip(rows, questions, strict=True):
            row.append(fenced(cut(readable(each.text), room, unicode=display.unicode)))
    yield from listing(heads, rows, display.width)


def _letters(text: str, display: Display) -> str:
    """The text in letters that the display has."""
    return text if display.unicode else text.translate(IN_ASCII)


IN_ASCII = str.maketrans({"–": "-", "±": "+/-", "−": "-"})
