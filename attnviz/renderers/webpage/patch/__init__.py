"""A page of what patched vectors change: the map with every number, and both texts.

It has no script: a cell says its numbers in its title.
"""

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from attnviz.data.patch import PatchEffect, PatchReport
from attnviz.data.tokens import Token
from attnviz.harmless import readable
from attnviz.renderers.arrangement import largest
from attnviz.renderers.colors import PALE, signed_color
from attnviz.renderers.interventions import mean_of_texts, patch_ends, patching
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.patch import map_of, site_name
from attnviz.renderers.titles import facts
from attnviz.renderers.webpage.document import filled, policy, source

STEPS = 10
"""Shades of each sign."""
SHOWN = 12


def page(report: PatchReport) -> list[str]:
    """The page, as one piece."""
    style = source("common.css", "patch/patch.css") + _shades()
    title = patching(report)
    values = {
        "policy": escape(policy(style, "")),
        "title": escape(title[0].upper() + title[1:]),
        "about": escape(mean_of_texts(report) if report.lines else facts(report.capture)),
        "ends": escape(patch_ends(report)),
        "style": style,
        "texts": "" if report.lines else _texts(report),
        "head": _head(report),
        "rows": "\n".join(_rows(report)),
        "largest_head": "<tr><th>part</th><th>share</th><th>change</th></tr>",
        "largest": "\n".join(_largest(report)),
    }
    return [filled(source("patch/patch.html"), values)]


def _shades() -> str:
    """A class for each shade, as the policy allows no style at an element."""
    made = []
    for step in range(-STEPS, STEPS + 1):
        share = step / STEPS
        ground = "".join(f"{part:02x}" for part in signed_color(share))
        ink = "000" if abs(share) < PALE else "fff"
        made.append(f".{_shade(share)} {{ background: #{ground}; color: #{ink}; }}\n")
    return "".join(made)


def _shade(share: float) -> str:
    step = round(max(-1.0, min(1.0, share)) * STEPS)
    return f"{'n' if step < 0 else 'p'}{abs(step)}"


def _texts(report: PatchReport) -> str:
    """Both texts; the tokens in which they differ are marked."""
    ours, theirs = report.capture.query_tokens, report.source.query_tokens
    places = report.places
    unlike = {
        i for i, place in enumerate(places) if place is None or theirs[place].id != ours[i].id
    }
    other = {place for i, place in enumerate(places) if i in unlike and place is not None}
    other |= set(range(len(theirs))) - {place for place in places if place is not None}
    return f"{_text('text', ours, unlike)}\n{_text('source', theirs, other)}"


def _text(name: str, tokens: Sequence[Token], marked: set[int]) -> str:
    said = []
    for token in tokens:
        label = escape(readable(token.label))
        said.append(f"<mark>{label}</mark>" if token.index in marked else label)
    return f'<p class="text"><b>{name}</b> {" ".join(said)}</p>'


def _head(report: PatchReport) -> str:
    if report.kind == "head":
        names = [f"<th>H{head}</th>" for head in range(map_of(report).shape[1])]
    else:
        labels = distinct_labels(report.capture.query_tokens)
        names = [
            f'<th class="token"><span>{escape(labels[position])}</span></th>'
            for position in report.positions
        ]
    return f"<tr><th></th>{''.join(names)}</tr>"


def _rows(report: PatchReport) -> Iterator[str]:
    values = map_of(report)
    labels = distinct_labels(report.capture.query_tokens)
    most = max(1.0, largest(values))
    column = {position: i for i, position in enumerate(report.positions)}
    of = {
        (e.site.layer, e.site.head if e.position is None else column[e.position]): e
        for e in report.effects
    }
    for layer, row in enumerate(values):
        if np.isnan(row).all():
            continue
        cells = (_cell(of.get((layer, i)), labels, most) for i in range(len(row)))
        yield f"<tr><th>L{layer}</th>{''.join(cells)}</tr>"


def _cell(effect: PatchEffect | None, labels: Sequence[str], most: float) -> str:
    if effect is None:
        return "<td></td>"
    share = effect.share.mean
    said = escape(f"{site_name(effect, labels)}: {_numbers(effect)}")
    return f'<td class="{_shade(share / most)}" title="{said}" tabindex="0">{share:z.2f}</td>'


def _numbers(effect: PatchEffect) -> str:
    """Every number of an effect in a sentence."""
    share, change = effect.share, effect.change
    said = f"share {share.mean:+.3f}{_error(share.error)}"
    said += f", change {change.mean:+.3f}{_error(change.error)}"
    return said


def _error(error: float | None) -> str:
    return "" if error is None else f" ± {error:.3f}"


def _largest(report: PatchReport) -> Iterator[str]:
    labels = distinct_labels(report.capture.query_tokens)
    for effect in report.strongest[:SHOWN]:
        name = escape(site_name(effect, labels))
        numbers = (effect.share, effect.change)
        cells = "".join(f"<td>{each.mean:+.3f}{_error(each.error)}</td>" for each in numbers)
        yield f"<tr><th>{name}</th>{cells}</tr>"
