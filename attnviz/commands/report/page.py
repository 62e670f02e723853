"""The page of a report: its means, and each question, which opens in place. It needs no script."""

from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote

from attnviz.commands.generate.page import FOLDER as OF_ANSWER
from attnviz.commands.generate.page import TONES, support
from attnviz.commands.report.record import ReportedQuestion, ResultsReport, SourceUse
from attnviz.commands.report.shown import (
    about,
    cells,
    columns,
    counted,
    damage_said,
    meaning,
    measure_titles,
    measures,
    notes_on,
    title,
    two,
)
from attnviz.draw.glossary import find_term
from attnviz.draw.page import COMMON, HEAD, filled, policies, policy, source
from attnviz.errors import readable
from attnviz.records.reasoning import MATTERS

FOLDER = "commands/report/page"
STYLES = (f"{COMMON}.css", f"{OF_ANSWER}/tones.css", f"{FOLDER}/report.css")
KEY = {
    "supported": "supported",
    "unsupported": "not supported, or failed",
    "contradicted": "contradicted",
    "unmeasured": "not measured",
}
"""The margin of a statement, or of the worst one of a question, by class."""
TERMS = (
    "groundedness,statement,contradicted,supported,unrelated text,smallest set,share of attention,"
    "used document,nats"
)
TOGETHER = (
    "A document is needed together with others if deleting only this one costs nothing, as "
    "another one says the same."
)


def page(report: ResultsReport) -> Iterator[str]:
    """The page, piece by piece."""
    names = columns(report)
    style = source(*STYLES).replace("{{numbers}}", str(len(names)))
    before, after = source(HEAD, f"{FOLDER}/report.html").split("{{questions}}")
    notes = *damage_said(report), *notes_on(report), *counted(report)
    terms = [(each.name, each.definition) for each in map(find_term, TERMS.split(",")) if each]
    means = "\n".join(_row(*map(escape, cells)) for cells in measures(report))
    if means:
        titles = "".join(f"<th>{escape(each)}</th>" for each in measure_titles(report))
        means = f"""<table id="means"><thead><tr>{titles}</tr></thead><tbody>
{means}
</tbody></table><p class="hint">{escape(meaning(report))}</p>"""
    values = {
        "policies": policies(policy(style, "")),
        "style": style,
        "title": escape(title(report)),
        "about": escape(about(report)),
        "notes": "\n".join(f"<p>{escape(readable(each))}</p>" for each in notes),
        "words": "\n".join(f"<dt>{escape(n)}</dt><dd>{escape(m)}</dd>" for n, m in terms),
        "means": means,
        "key": " ".join(f'<span class="{name}">{said}</span>' for name, said in KEY.items()),
        "columns": _spans(["question", *names, ""]),
    }
    yield filled(before, values)
    for each in report.to_read:
        yield _question(report, each)
    yield after


def _question(report: ResultsReport, each: ReportedQuestion) -> str:
    """A line that opens to the statements of the answer, and to the segments of the prompt."""
    said = each.text if each.error is None else f"failed: {each.fault}"
    line = _spans([report.name_of(each), *cells(report, each), said or each.answer])
    inner = [f'<p dir="auto">{_text(each.text)}</p>'] if each.text else []
    if each.error is not None:
        inner.append(f"<p>failed: {_text(each.error)}</p>")
    told = [
        (one.text, one.section, *support(one.verdict, one.share, one.contradiction))
        for one in each.statements
    ]
    if told:
        items = (
            f'<li class="{tone}"><bdi>{_text(text)}</bdi> '
            f"<small>{_text(section or said)}</small></li>"
            for text, section, tone, said in told
        )
        inner.append(f"<ul>{''.join(items)}</ul>")
    if each.sources:
        head = "<th>source</th><th>share</th>"
        head += "<th>change (nats)</th><th></th>" if report.tells_use else ""
        inner.append(f"<table><tr>{head}</tr>{''.join(map(_source, each.sources))}</table>")
    if any(n.needed and n.change is not None and n.change >= -MATTERS for n in each.sources):
        inner.append(f'<p class="hint">{TOGETHER}</p>')
    if each.page is not None:
        inner.append(f'<p><a href="{escape(quote(each.page))}">The answer’s own page</a></p>')
    tones = [tone for *_, tone, _ in told]
    tones += ["unsupported"] * (each.error is not None)
    tone = next((name for name in TONES.values() if name in tones), "unmeasured")
    return (
        f'<details class="{tone}"><summary class="row">{line}</summary>\n'
        f"{''.join(inner)}</details>\n"
    )


def _source(each: SourceUse) -> str:
    used = "" if each.used is None else each.use or ("used" if each.used else "not used")
    said = "needed" if each.needed else used
    change = "" if each.change is None else two(each.change, signed=True)
    return _row(f"<bdi>{_text(each.name)}</bdi>", two(each.share), change, said)


def _text(text: str) -> str:
    return escape(readable(text))


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _spans(cells: Iterable[str]) -> str:
    return " ".join(f'<span dir="auto">{_text(cell)}</span>' for cell in cells)
