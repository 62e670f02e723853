"""The page of a patch. It has no script: the title of a cell holds its numbers."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from attnviz.commands.patch.graph import draw_graph
from attnviz.commands.patch.record import PatchEffect, PatchReport
from attnviz.commands.patch.shown import (
    agreement_of,
    cells_of,
    chance,
    column_names,
    ends_of,
    map_of,
    patching,
    place_names,
    runs_of,
    shares_of,
    site_name,
)
from attnviz.draw.effects import unit_of
from attnviz.draw.labels import DIVERGING, fenced
from attnviz.draw.matrix import digits_of, largest
from attnviz.draw.page import HEAD, filled, policies, policy, source
from attnviz.draw.page.maps import map_style, shade
from attnviz.draw.titles import facts, with_error
from attnviz.errors import readable
from attnviz.records.tokens import Token

FOLDER = "commands/patch/page"
SHOWN = 12
UNDERLINED = '<p class="hint">underlined: where the texts differ, or are not aligned</p>'


def page(report: PatchReport) -> list[str]:
    """The page, as one piece."""
    style = map_style()
    title = patching(report)
    notes = [*agreement_of(report), *([chance(report)] if (report.lines or 1) > 1 else [])]
    places = place_names(report)
    largest_changes = [
        f"<tr><th>{escape(fenced(site_name(each, places)))}</th>"
        f"<td>{with_error(each.share)}</td><td>{with_error(each.change)}</td></tr>"
        for each in report.strongest[:SHOWN]
    ]
    values = {
        "policies": policies(policy(style, "")),
        "title": escape(title[0].upper() + title[1:]),
        "about": escape(runs_of(report, facts)),
        "ends": escape(ends_of(report)),
        "share": escape(shares_of(report)),
        "style": style,
        "texts": "" if report.lines else _texts(report),
        "legend": "" if report.lines else UNDERLINED,
        "maps": "\n".join(_maps(report)),
        "graph": _graph(report) if report.receivers else "",
        "unit": unit_of(report.measure),
        "largest": "\n".join(largest_changes),
        "errors": escape("; ".join(notes)),
    }
    return [filled(source(HEAD, f"{FOLDER}/patch.html"), values)]


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


def _maps(report: PatchReport) -> Iterator[str]:
    """A map for each receiver, on one scale."""
    places, most = place_names(report), max(1.0, largest(map_of(report)))
    for own in report.by_receiver:
        values, effects = map_of(own), cells_of(own)
        if report.kind == "head":
            names = [f"<th>H{head}</th>" for head in range(values.shape[1])]
        else:
            names = [
                f'<th class="token"><span>{escape(fenced(name))}</span></th>'
                for name in column_names(own)
            ]
        title = f"<caption>to {own.receivers[0]}</caption>" if len(report.receivers) > 1 else ""
        digits = digits_of(values)
        yield f'<div class="map"><table>{title}<thead><tr><th></th>{"".join(names)}</tr></thead>'
        for layer, row in enumerate(values):
            if not np.isnan(row).all():
                cells = (
                    _cell(effects.get((layer, i)), places, most, digits) for i in range(len(row))
                )
                yield f"<tr><th>L{layer}</th>{''.join(cells)}</tr>"
        yield "</table></div>"


def _graph(report: PatchReport) -> str:
    """The strongest paths as a picture within the page."""
    from attnviz.draw.picture.canvas import figure_bytes
    from attnviz.draw.picture.frame import sheet

    with sheet(["paths"], dpi=100, cmap=DIVERGING) as (figure, fonts):
        draw_graph(report, figure, fonts, 0.0)
    drawn = b64encode(figure_bytes(figure, "svg")).decode()
    words = "The strongest paths: layers upward, each arrow as wide as its share."
    return f'<p class="hint">{words}</p><img alt="{words}" src="data:image/svg+xml;base64,{drawn}">'


def _cell(effect: PatchEffect | None, places: Mapping[int, str], most: float, digits: int) -> str:
    if effect is None:
        return "<td></td>"
    name, share, own = site_name(effect, places), effect.share, effect.own
    title = f"{fenced(name)}: share {with_error(share)}, change {with_error(effect.change)}"
    if effect.exact:
        title += f", exact {with_error(effect.exact)}"
    if own and not np.isnan(own.versus_logit):
        title += f"; log p of the answer {own.answer_log_probability:+.3f}"
        title += f", of the other token {own.versus_log_probability:+.3f}"
    tone = shade(share.mean / most)
    return f'<td class="{tone}" title="{escape(title)}">{share.mean:z.{digits}f}</td>'
