"""The page of an answer: what was asked and answered, and its sources, for readers who have no
attnviz. Below stands the page of the attention itself, token by token and head by head.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from types import MappingProxyType

import numpy as np

from attnviz.commands.generate import telling
from attnviz.commands.generate.answer import AnswerShares, shown_apart
from attnviz.commands.generate.checked import all_of, table_of_curves
from attnviz.commands.generate.occluded import about_regions, by_image, map_of
from attnviz.commands.generate.shown import about_answer
from attnviz.commands.generate.sources import AnswerReport
from attnviz.commands.show.page import Lead, Start, page_of, start_of
from attnviz.draw.labels import BLUES, BLUES_ON_DARK, between, is_light
from attnviz.draw.page import filled, packed, source
from attnviz.draw.page.images import heat_levels, stage, whole_images
from attnviz.draw.titles import amount, beginning
from attnviz.errors import UsageError, option, readable
from attnviz.kit.choose import strongest_query
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.exhibit import Exhibit, HeadMap
from attnviz.records.grounding import Check, Contradiction, Verdict
from attnviz.records.reasoning import ChainLink
from attnviz.records.transforms import Reduced

FOLDER = "commands/generate/page"
SHADES = 20
"""Steps of the scale of blues, from 0 to the largest share."""


def page(shares: AnswerShares) -> Iterator[str]:
    """The page, piece by piece; `shares` of sentences, with what was checked.

    Raises:
        UsageError: shares have a sign.
        InputError: it is too large for a browser.
    """
    if shares.answer.capture.signed:
        raise UsageError(
            "a page shows weights, but contributions have a sign",
            f"leave {option('contribution')} out",
        )
    report = AnswerReport(shares)
    pictured = source(f"{FOLDER}/seen.js") if _patches(shares.answer.capture) else ""
    lead = Lead(
        markup=filled(source(f"{FOLDER}/answer.html"), _values(report)),
        heading="<h2>Token by token</h2> <p>The numbers behind all of this: each token of the "
        "answer, and how much attention it gave to each token before it.</p>",
        style=source(f"{FOLDER}/tones.css", f"{FOLDER}/answer.css") + _shades(),
        script=source(f"{FOLDER}/answer.js") + pictured,
        facts={"rests": _facts(report)},
    )
    answer, captured = shares.answer, shares.answer.capture
    if captured.layers and shown_apart(answer.choice, *answer.weights.shape):
        exhibit, seen = whole_images(whole_exhibit(captured))
        start = start_of(exhibit)
        if start.unit is None:  # else places are not those of tokens
            keys = answer.columns[report.strongest].keys
            start = replace(start, query=int(answer.weights[:, keys].sum(axis=1).argmax()))
        return page_of(exhibit, start, lead, seen)
    # only the joined rows, where those of each head were not kept
    joined = HeadMap(None, None, answer.how, weights=answer.weights)
    captured = replace(captured, transforms=(Reduced(answer.how, "all"),))
    down, across = map(range, answer.weights.shape)
    exhibit, seen = whole_images(Exhibit(captured, (joined,), tuple(down), tuple(across)))
    return page_of(exhibit, Start(query=strongest_query(exhibit, exhibit.maps[0])), lead, seen)


def _facts(report: AnswerReport) -> Mapping[str, object]:
    """The facts that the page's script needs."""
    shares = report.shares
    by_token = {str(i): each for i, each in report.changes.items()}
    if report.check and report.check.grounds:
        by_token[_numbers(report.together)] = report.check.grounds.changes
    changes = {
        columns: [round(sum(each[part.first : part.after]), 3) for part in shares.parts]
        for columns, each in by_token.items()
    }
    return {
        "names": [report.name(i) for i in range(len(report.answer.columns))],
        "rows": np.round(shares.shares.astype(float), 4).tolist(),
        "whole": np.round(report.whole, 4).tolist(),
        "changes": changes,
        "sources": report.sources,
        "strongest": report.strongest,
        "top": round(report.top, 4),
        "shades": SHADES,
        "about": "In the whole answer.",
        **_heat(report),
    }


def _patches(capture: Capture) -> list[int]:
    """The keys that stand for a part of an image."""
    return [i for i, token in enumerate(capture.key_tokens) if token.patch is not None]


def _heat(report: AnswerReport) -> Mapping[str, object]:
    """The attention of each statement, and of the whole answer, to the patches of images."""
    answer = report.answer
    weights = answer.carried[:, _patches(answer.capture)]
    if not weights.size:
        return {}
    parts = [weights[each.first : each.after].mean(axis=0) for each in report.shares.parts]
    rows = np.stack([*parts, weights.mean(axis=0)])
    top = float(rows.max()) or 1.0
    return {"heat": packed(heat_levels(rows, top)), "heatTop": top}


def _values(report: AnswerReport) -> Mapping[str, str]:
    """The parts of the page, as markup."""
    check, used = report.check, dict[str, str]()

    def said(sentence: str) -> str:
        return telling.with_terms(sentence, used)

    marked = "whose deletion costs the answer most" if report.costs else "with the most attention"
    if len(report.needed) > 1:
        marked += " of those that are needed"
    read, changes = _texts(report), bool(report.changes) or bool(check and check.subsets)
    values = {
        "heading": f"What an answer {'rests on' if check else 'attended to'}",
        "about": escape(about_answer(report.shares)),
        "question": escape(telling.question(report)),
        "before": said(telling.before(report)),
        "statements": "\n".join(_statements(report)),
        "supported": said(telling.on_support(report)),
        "shares_title": "What the model attended to" + (", and what mattered" if changes else ""),
        "shares_head": _row(
            "th", ["source", "", "share", *telling.measured(report)], {2: "number", 3: "number"}
        ),
        "shares": "\n".join(_shares(report)),
        "shares_mean": " ".join(map(said, telling.on_shares(report))),
        "read_title": "The text of the sources, opened at the strongest",
        "sources": "\n".join(read),
        "read_mean": said(
            "The further the blue of a margin is from the colour of the page, the larger the "
            f"share. The source that is marked is the one {marked}."
        ),
        "columns": _row("th", ["statement", *_column_names(report)]),
        "rows": "\n".join(_rows(report)),
        "matrix_mean": said(telling.on_matrix(report)),
        "more": "\n".join(_more(check)) if check else "",
    }
    terms = sorted(used.items(), key=lambda each: each[0].casefold())
    list_ = "\n".join(f"<dt>{escape(n)}</dt><dd>{escape(m)}</dd>" for n, m in terms)
    notes = "\n".join(
        f'<div popover id="{telling.id_of(n)}"><b>{escape(n)}</b> {escape(m)}</div>'
        for n, m in terms
    )
    return {**values, "terms": list_, "notes": notes}


# Tables and texts.


TONES: Mapping[Verdict, str] = {
    "contradicted": "contradicted",
    "not supported": "unsupported",
    "supported": "supported",
}
"""The classes of verdicts that have a colour."""


def support(
    verdict: Verdict | None, share: float | None, found: Contradiction | None
) -> tuple[str, str]:
    """The class of a statement, and what is said of it."""
    if verdict is None:
        return "unmeasured", ""
    number = "" if share is None else f" {share:.2f}"
    said = f"{verdict}: {readable(found.said)}" if found else f"{verdict}{number}"
    return TONES.get(verdict, "unmeasured"), said


def _supports(report: AnswerReport) -> list[tuple[str, str]]:
    """The support of each statement of the answer."""
    said = report.check.statements if report.check else ()
    if len(said) != len(report.shares.parts):  # of sentences, and these are words
        return [support(None, None, None)] * len(report.shares.parts)
    return [support(each.verdict, each.groundedness.share, each.contradiction) for each in said]


def _statements(report: AnswerReport) -> Iterator[str]:
    for part, (name, said) in zip(report.shares.parts, _supports(report), strict=True):
        yield (
            f'<li><button type="button" class="{name}" aria-pressed="false">'
            f"<bdi>{escape(readable(part.text))}</bdi><b>{escape(said)}</b></button></li>"
        )


def _row(tag: str, cells: Iterable[str], classes: Mapping[int, str] = MappingProxyType({})) -> str:
    made = (
        f"<{tag}{f' class={classes[i]}' if i in classes else ''}>{escape(cell)}</{tag}>"
        for i, cell in enumerate(cells)
    )
    return f"<tr>{''.join(made)}</tr>"


def _shares(report: AnswerReport) -> Iterator[str]:
    """A line for each source, then one for what is none."""
    apart = [i for i in range(len(report.whole)) if i not in report.sources]
    yield "<tbody>"
    yield from (_line(report, [i], report.begun(i)) for i in report.named)
    if report.others:
        yield _line(report, report.others, amount(len(report.others), "other"))
    if report.check and report.check.effects and report.check.grounds and report.together[1:]:
        change = report.check.grounds.change
        title = all_of(report.check)
        yield _line(report, report.together, title, f"{change:+z.2f}")
    yield "</tbody><tbody>"
    yield from (_line(report, [i], report.begun(i)) for i in apart)
    yield "</tbody>"


def _numbers(columns: Sequence[int]) -> str:
    return ",".join(map(str, columns))


def _line(
    report: AnswerReport, columns: Sequence[int], name: str, change: str | None = None
) -> str:
    marks, (first, *more) = "", columns
    said = escape(name)
    uses = report.check.uses if report.check else {}
    if not more and first in report.sources:
        said = f'<button type="button" title="show its text">{said}</button>'
        own = report.answer.columns[first].name
        marks = "<small>strongest</small>" if first == report.strongest else ""
        use = "needed" if own in report.needed else uses.get(own)
        quiet = ' class="quiet"' if use == "not used" else ""
        marks += f"<small{quiet}>{use}</small>" if use else ""
    if not more and change is None:
        change = f"{sum(report.changes[first]):+z.2f}" if first in report.changes else ""
        if report.check and report.check.subsets:
            weight = dict(report.check.subsets.weights).get(report.answer.columns[first].name)
            change = "" if weight is None else f"{weight:+z.2f}"
    cells = ""
    if telling.measured(report):
        value = (change or "").replace("-", "−")
        cells = f'<td class="number change" data-whole="{value}">{value}</td>'
    share = sum(report.whole[i] for i in columns)
    return (
        f'<tr data-of="{_numbers(columns)}"><th scope="row">{said}{marks}</th>'
        '<td><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect height="10" width="{100 * share:.1f}"/></svg></td>'
        f'<td class="number share">{share:.2f}</td>{cells}</tr>'
    )


def _texts(report: AnswerReport) -> Iterator[str]:
    """The text that was read, in its order: each slice of a segment by itself."""
    capture = report.answer.capture
    numbers = {c.name: i for i, c in enumerate(report.answer.columns) if c.part == "segment"}
    slices = [
        (a, b, numbers[each.name])
        for each in capture.segments
        for a, b in each.slices
        if each.name in numbers
    ]
    names = [column.name for column in report.answer.columns]
    for start, end, column in sorted(slices):
        if names[column] in report.answer.images:
            number = report.answer.images.index(names[column])
            yield f'<div data-column="{column}"><b></b>{stage(capture, number)}</div>'
        elif text := capture.text[start:end].strip():
            yield f'<div data-column="{column}"><b></b><p dir="auto">{escape(text)}</p></div>'


def _column_names(report: AnswerReport) -> list[str]:
    names = [report.begun(i) for i in report.named]
    return [*names, amount(len(report.others), "other")] if report.others else names


def _rows(report: AnswerReport) -> Iterator[str]:
    """A row for each statement, a cell for each source."""
    top = report.top
    groups = [[i] for i in report.named] + ([report.others] if report.others else [])
    supports = _supports(report)
    for n, part in enumerate(report.shares.parts):
        cells = []
        for k, columns in enumerate(groups):
            share = float(report.shares.shares[n, columns].sum())
            shade = round(SHADES * min(1.0, share / top))
            index = 0 if n == k == 0 else -1
            of = columns[0] if len(columns) == 1 else ""
            cells.append(f'<td class="s{shade}" data-of="{of}" tabindex="{index}">{share:.2f}</td>')
        text = escape(f"{n + 1}  {readable(part.text)}")
        yield f'<tr><th scope="row" class="{supports[n][0]}">{text}</th>{"".join(cells)}</tr>'


def _more(check: Check) -> Iterator[str]:
    """The further results of some checks: regions of images, curves, and the links of a chain."""
    for own in by_image(check.occlusions):
        head, regions = map_of(own)
        rows = ([each.replace("-", "−") for each in row] for row in regions)
        title = f"{own[0].segment}: regions made grey, by their pixels"
        yield _table(escape(title), ["", *head], rows, f"{REGIONS} {about_regions(own)}.")
    if check.curves:
        names, points = table_of_curves(check.curves)
        yield _table("With more and more of the sources", names, points, CURVES)
    if check.chain is not None:
        links = (
            [e.part, e.source, f"{e.share:.2f}", _nats(e.change), _another(e)]
            for e in check.chain.links
        )
        titles = ["part of the answer", "attends most to", "share", "cut (nats)", "another"]
        holds = "holds" if check.chain.holds else "does not hold"
        yield _table("From the answer back to its source", titles, links, CHAIN.format(holds))


def _another(link: ChainLink) -> str:
    """The largest loss with another source, and which one it is."""
    named = f" ({beginning(link.other_source)})" if link.other_source else ""
    return f"{_nats(link.other)}{named}"


REGIONS = (
    "The change of the answer's log-probability, in nats, where a region of the image has its mean "
    "colour, and the model reads it again;"
)
CURVES = (
    "The log-probability of the answer, in nats, as tokens of the sources are deleted from "
    "all, or inserted into none; those with the most attention first, beside the range of random "
    "orders."
)
CHAIN = (
    "The chain {}: each link is to cost more than any other when it is cut. “Another” is the "
    "costliest cut of another link."
)


def _nats(change: float | None) -> str:
    return "" if change is None else f"{change:+z.2f}".replace("-", "−")


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], hint: str) -> str:
    body = "".join(_row("td", map(readable, row)) for row in rows)
    return (
        f'<section><h2>{title}</h2><div class="wide"><table><thead>{_row("th", head)}</thead>'
        f'<tbody>{body}</tbody></table></div><p class="hint">{hint}</p></section>'
    )


def _shades() -> str:
    """A class for each step of the scale, with the colours of both themes, as the policy allows no
    style at an element."""
    rules = []
    pairs = zip(between(BLUES, SHADES + 1), between(BLUES_ON_DARK, SHADES + 1), strict=True)
    for step, (light, dark) in enumerate(pairs):
        inks = ("#1a1a1a" if is_light(each) else "#fff" for each in (light, dark))
        colors = ("#" + bytes(each).hex() for each in (light, dark))
        shade, ink = (f"light-dark({', '.join(each)})" for each in (colors, inks))
        rules.append(
            f"#matrix .s{step} {{ background: {shade}; color: {ink}; }}\n"
            f"#sources .s{step} {{ border-color: {shade}; }}\n"
        )
    ends = [f"#{bytes(each[2 * len(each) // 3]).hex()}" for each in (BLUES, BLUES_ON_DARK)]
    return f"#rests {{ --bar: light-dark({', '.join(ends)}); }}\n" + "".join(rules)
