"""A page of the effects of patched vectors: the map with every number, and both texts.

It has no script: the title of a cell holds its numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from attnviz.commands.patch.record import PatchEffect, PatchReport
from attnviz.commands.patch.terminal import map_of, place_names, site_name
from attnviz.commands.patch.titles import OVER_PAIRS, patch_ends, patching, ran, shares_of
from attnviz.draw.effects import unit_of
from attnviz.draw.labels import PALE, fenced, signed_color
from attnviz.draw.matrix import largest
from attnviz.draw.page.document import COMMON, filled, policy, source
from attnviz.draw.titles import facts
from attnviz.errors import readable
from attnviz.records.metrics import Estimate
from attnviz.records.tokens import Token

FOLDER = "commands/patch/page"
STEPS = 20
"""Shades of each sign."""
SHOWN = 12
LEGEND = '<p class="hint">underlined: where the texts differ, or are not aligned</p>'


def page(report: PatchReport) -> list[str]:
    """The page, as one piece."""
    style = source(f"{COMMON}.css", f"{FOLDER}/patch.css") + _shades()
    title = patching(report)
    values = {
        "policy": escape(policy(style, "")),
        "title": escape(title[0].upper() + title[1:]),
        "about": escape(ran(report, facts)),
        "ends": escape(patch_ends(report)),
        "share": escape(shares_of(report)),
        "style": style,
        "texts": "" if report.lines else _texts(report),
        "legend": "" if report.lines else LEGEND,
        "head": _head(report),
        "rows": "\n".join(_rows(report)),
        "unit": unit_of(report.measure),
        "largest": "\n".join(_largest(report)),
        "errors": OVER_PAIRS if (report.lines or 1) > 1 else "",
    }
    return [filled(source(f"{FOLDER}/patch.html"), values)]


def _shades() -> str:
    """A class for each shade, as the policy allows no style at an element.

    Zero has the page's own ground, be it light or dark.
    """
    rules = []
    for step in range(1, STEPS + 1):
        share = step / STEPS
        ink = " color: #fff;" if share >= PALE else ""
        for sign in (-1, 1):
            color = "".join(f"{part:02x}" for part in signed_color(sign))
            ground = f"color-mix(in srgb, #{color} {share:.0%}, var(--ground))"
            rules.append(f".{_shade(sign * share)} {{ background: {ground};{ink} }}\n")
    return "".join(rules)


def _shade(share: float) -> str:
    step = round(max(-1.0, min(1.0, share)) * STEPS)
    return f"{'n' if step < 0 else 'p'}{abs(step)}"


def _texts(report: PatchReport) -> str:
    """Both texts; the tokens in which they differ are marked."""
    ours, theirs = report.capture.query_tokens, report.source.query_tokens
    same = [
        (i, place)
        for i, place in enumerate(report.places)
        if place is not None and theirs[place].id == ours[i].id
    ]
    mine, other = {i for i, _ in same}, {place for _, place in same}
    return f"{_text('text', ours, mine)}\n{_text('source', theirs, other)}"


def _text(name: str, tokens: Sequence[Token], same: set[int]) -> str:
    labels = []
    for token in tokens:
        label = f"<bdi>{escape(readable(token.label))}</bdi>"
        labels.append(label if token.index in same else f"<mark>{label}</mark>")
    return f'<p class="text"><b>{name}</b> {" ".join(labels)}</p>'


def _head(report: PatchReport) -> str:
    if report.kind == "head":
        names = [f"<th>H{head}</th>" for head in range(map_of(report).shape[1])]
    else:
        names = [
            f'<th class="token"><span>{escape(fenced(name))}</span></th>'
            for name in place_names(report).values()
        ]
    return f"<tr><th></th>{''.join(names)}</tr>"


def _rows(report: PatchReport) -> Iterator[str]:
    values, places = map_of(report), place_names(report)
    most = max(1.0, largest(values))
    column = {position: i for i, position in enumerate(report.positions)}
    of = {
        (e.site.layer, e.site.head if e.position is None else column[e.position]): e
        for e in report.effects
    }
    for layer, row in enumerate(values):
        if np.isnan(row).all():
            continue
        cells = (_cell(of.get((layer, i)), places, most) for i in range(len(row)))
        yield f"<tr><th>L{layer}</th>{''.join(cells)}</tr>"


def _cell(effect: PatchEffect | None, places: Mapping[int, str], most: float) -> str:
    if effect is None:
        return "<td></td>"
    share, change = effect.share, effect.change
    title = f"{fenced(site_name(effect, places))}: share {_number(share)}, change {_number(change)}"
    own = effect.own
    if not np.isnan(own.versus_logit):
        title += f"; log p of the answer {own.answer_log_probability:+.3f}"
        title += f", of the other token {own.versus_log_probability:+.3f}"
    shade = _shade(share.mean / most)
    return f'<td class="{shade}" title="{escape(title)}">{share.mean:z.2f}</td>'


def _number(number: Estimate) -> str:
    return f"{number.mean:+.3f}" + ("" if number.error is None else f" ± {number.error:.3f}")


def _largest(report: PatchReport) -> Iterator[str]:
    places = place_names(report)
    for effect in report.strongest[:SHOWN]:
        name = escape(fenced(site_name(effect, places)))
        cells = "".join(f"<td>{_number(each)}</td>" for each in (effect.share, effect.change))
        yield f"<tr><th>{name}</th>{cells}</tr>"
