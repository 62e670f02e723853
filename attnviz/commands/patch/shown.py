"""Patched vectors, shown: sentences, a map and a table in a terminal, a picture, and a page.

The page has no script: the title of a cell holds its numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.patch.rows import PatchedTogether, PatchEffect, PatchReport
from attnviz.console import Display
from attnviz.draw.effects import (
    LEGEND,
    listed_parts,
    own_cells,
    own_columns,
    ran,
    tested,
    unit_of,
    what_is_measured,
)
from attnviz.draw.labels import (
    DIVERGING,
    PALE,
    SIGNED,
    SIGNED_ON_DARK,
    Rgb,
    distinct_labels,
    fenced,
)
from attnviz.draw.matrix import digits_for, largest
from attnviz.draw.page import COMMON, HEAD, filled, policies, policy, source
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.terminal.cells import (
    Column,
    folded,
    footnotes,
    listing,
    next_before_and_after,
    signed_style,
)
from attnviz.draw.terminal.grid import head_grid, value_grid
from attnviz.draw.titles import amount, beginning, caption, facts
from attnviz.errors import readable
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.metrics import Estimate
from attnviz.records.tokens import Token

SITES = {
    "head": "heads' outputs",
    "attention": "outputs of attention",
    "mlp": "outputs of MLPs",
    "residual": "the residual stream",
}
SHARE = "share: 0 is the text, 1 the source"
OVER_PAIRS = "±: standard error over these pairs; "
CHANCE = "what is below two of them may be chance"
APART = 0.5
"""Where the two texts are nearer than this (in logits), any change is a large share."""


def _ran(report: PatchReport, name: Callable[[Capture], str]) -> str:
    return ran(report.capture, report.lines, "pair", name)


def _shares_of(report: PatchReport) -> str:
    """The meaning of a share, with a warning where the two texts hardly differ."""
    apart = abs(report.ends.measured - report.before.measured)
    if apart >= APART:
        return SHARE
    return f"{SHARE}; the two are only {apart:.3f} apart, so that shares say little"


def _patching(report: PatchReport) -> str:
    """The vectors taken from the source, and where."""
    where = _where(report) if report.kind == "head" else "one position"
    return f"{SITES[report.kind]} taken from the source at {where}"


def _where(report: PatchReport) -> str:
    """How many positions are patched at once."""
    every = len(report.positions) == len(report.places)
    return "all positions" if every else amount(len(report.positions), "position")


def _ends_of(report: PatchReport) -> str:
    """The measurement, and its value after the text and after the source."""
    measured = what_is_measured(report.measure, report.answer, report.versus)
    mean = "mean of " if report.lines else ""
    before, ends = report.before.measured, report.ends.measured
    return f"{mean}{measured}: {before:+.3f} after the text, {ends:+.3f} after the source"


# The map: layers down, heads or positions across.


def _cells_of(report: PatchReport) -> dict[tuple[int, int], PatchEffect]:
    """Each effect by its layer, and by its head or the number of its position."""
    column = {position: i for i, position in enumerate(report.positions)}
    return {
        (e.site.layer, (e.site.head or 0) if e.position is None else column[e.position]): e
        for e in report.effects
    }


def _map_of(report: PatchReport) -> FloatArray:
    """The shares (layers, heads), or (layers, patched positions); NaN where nothing was patched."""
    cells = _cells_of(report)
    shares = np.full([max(at) + 1 for at in zip(*cells, strict=True)], np.nan, np.float32)
    for at, effect in cells.items():
        shares[at] = effect.share.mean
    return shares


def _place_names(report: PatchReport, *, unicode: bool = True) -> dict[int, str]:
    """A name for each patched position: `blue`; `blue ← red` where the source has another token.

    `blue, …`: the first pair has `blue` there, and other pairs have other tokens.
    """
    captures = report.capture, report.source
    labels = [distinct_labels(each.query_tokens, unicode=unicode) for each in captures]
    arrow, more = (" ← ", ", …") if unicode else (" <- ", ", ...")
    names = {}
    for position in report.positions:
        ours, theirs = report.tokens_at(position)
        tokens = [ours] if ours.id == theirs.id else [ours, theirs]
        name = arrow.join(own[token.index] for own, token in zip(labels, tokens, strict=False))
        names[position] = name + (more if position in report.varied else "")
    return names


_KINDS = {"attention": "attention", "mlp": "MLP", "residual": "residual stream"}


def _site_name(effect: PatchEffect, places: Mapping[int, str]) -> str:
    """`L3H2`, `L2 MLP at blue ← red`; `places`: the names of patched positions."""
    site = effect.site
    if site.head is not None:
        return f"L{site.layer}H{site.head}"
    at = "" if effect.position is None else f" at {places[effect.position]}"
    return f"L{site.layer} {_KINDS[site.kind]}{at}"


# In a terminal.


def _heading(report: PatchReport, patching: str, display: Display) -> Iterator[Text]:
    """The run and what is patched; both ends; the meaning of a share."""
    lines = "\n".join((f"{_ran(report, facts)}; {patching}", _ends_of(report), _shares_of(report)))
    yield from folded(Text(lines, "dim"), display.width)
    yield Text()


def render(report: PatchReport, display: Display, top: int) -> Iterator[RenderableType]:
    """The map of all shares, and a table of the `top` strongest effects."""
    yield from _heading(report, _patching(report), display)
    values = _map_of(report)
    if report.kind == "head":
        yield from head_grid(values, largest(values), signed_style, display)
    else:
        names = list(_place_names(report, unicode=display.unicode).values())
        layers = [f"L{layer}" for layer in range(len(values))]
        yield from value_grid(values.T, names, layers, largest(values), signed_style, display)
    yield Text()
    yield from _table(report, report.strongest[:top], display)


def _table(report: PatchReport, effects: Sequence[PatchEffect], display: Display) -> Iterator[Text]:
    """Each effect on a line."""
    places = _place_names(report, unicode=display.unicode)
    with_errors, with_own = (report.lines or 1) > 1, report.measure == "difference"
    error = [Column("± s.e.", right=True)] if with_errors else []
    columns = [
        Column("part"),
        *(Column("share", right=True), *error),
        *(Column(f"change ({unit_of(report.measure)})", right=True), *error),
        *(own_columns(report.answer, report.versus) if with_own else []),
    ]
    rows = [
        (
            fenced(_site_name(effect, places)),
            *(*_cells(effect.share), *_cells(effect.change)),
            *(own_cells(effect.own) if with_own else []),
        )
        for effect in effects
    ]
    yield from listing(columns, rows, display.width)
    what = "head" if report.kind == "head" else "part"
    chance = tested([each.p_holm for each in report.effects], what, report.lines or 1) or CHANCE
    notes = [*([LEGEND] if with_own else []), *([OVER_PAIRS + chance] if with_errors else [])]
    yield from footnotes(notes, display.width)


def render_together(both: PatchedTogether, display: Display) -> Iterator[RenderableType]:
    """The effect of all parts, and the next tokens before and after."""
    report = both.report
    (effect,) = report.effects
    patching = f"outputs of several parts taken from the source at {_where(report)}"
    yield from _heading(report, patching, display)
    names = listed_parts(effect.parts, report.capture.model.heads_per_layer)
    before, change, unit = report.before.measured, effect.change, unit_of(report.measure)
    moved = f"{before:+.3f} → {before + change.mean:+.3f} ({_number(change)} {unit})"
    sentence = f"with {names} of the source: {moved}, share {_number(effect.share)}"
    yield from folded(Text(sentence, "bold"), display.width)
    if report.lines is None:
        yield from next_before_and_after(report.capture, both.before, both.after, display)
    elif report.lines > 1:
        yield from footnotes([OVER_PAIRS + CHANCE], display.width)


def _cells(number: Estimate) -> Sequence[str]:
    """A number, and its standard error where it has one."""
    error = [] if number.error is None else [f"{number.error:.3f}"]
    return f"{number.mean:+.3f}", *error


def draw(report: PatchReport, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """The map as a picture."""
    values = _map_of(report)
    most = max(1.0, largest(values))
    columns = None if report.kind == "head" else list(_place_names(report).values())
    pane = Pane(SHARE, values, -most, most, digits_for(most), columns=columns)
    below = [_ends_of(report)]
    if not report.lines:
        below.insert(0, f"source: “{beginning(report.source.text)}”")
    title = _patching(report)
    title = title[0].upper() + title[1:]
    return draw_panes(title, [pane], about=_ran(report, caption), below=below, dpi=dpi, cmap=cmap)


# The page.

FOLDER = "commands/patch/page"
STEPS = 20
"""Shades of each sign."""
SHOWN = 12
UNDERLINED = '<p class="hint">underlined: where the texts differ, or are not aligned</p>'


def page(report: PatchReport) -> list[str]:
    """The page, as one piece."""
    style = source(f"{COMMON}.css", f"{FOLDER}/patch.css") + _shades()
    title = _patching(report)
    values = {
        "policies": policies(policy(style, "")),
        "title": escape(title[0].upper() + title[1:]),
        "about": escape(_ran(report, facts)),
        "ends": escape(_ends_of(report)),
        "share": escape(_shares_of(report)),
        "style": style,
        "texts": "" if report.lines else _texts(report),
        "legend": "" if report.lines else UNDERLINED,
        "head": _head(report),
        "rows": "\n".join(_rows(report)),
        "unit": unit_of(report.measure),
        "largest": "\n".join(_largest(report)),
        "errors": OVER_PAIRS if (report.lines or 1) > 1 else "",
    }
    return [filled(source(HEAD, f"{FOLDER}/patch.html"), values)]


def _shades() -> str:
    """A class for each shade, as the policy allows no style at an element.

    Zero has the page's own ground, be it light or dark.
    """
    rules = []
    for step in range(1, STEPS + 1):
        share = step / STEPS
        ink = " color: var(--ground);" if share >= PALE else ""
        for sign, end in ((-1, "--below"), (1, "--above")):
            ground = f"color-mix(in srgb, var({end}) {share:.0%}, var(--ground))"
            rules.append(f".{_shade(sign * share)} {{ background: {ground};{ink} }}\n")
    return f"{_ends(SIGNED)}@media (prefers-color-scheme: dark) {{ {_ends(SIGNED_ON_DARK)} }}\n" + (
        "".join(rules)
    )


def _ends(colors: Sequence[Rgb]) -> str:
    """The colours at both ends as variables of the page."""
    _, below, above = ("".join(f"{part:02x}" for part in color) for color in colors)
    return f":root {{ --below: #{below}; --above: #{above}; }}\n"


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
        names = [f"<th>H{head}</th>" for head in range(_map_of(report).shape[1])]
    else:
        names = [
            f'<th class="token"><span>{escape(fenced(name))}</span></th>'
            for name in _place_names(report).values()
        ]
    return f"<tr><th></th>{''.join(names)}</tr>"


def _rows(report: PatchReport) -> Iterator[str]:
    values, places, effects = _map_of(report), _place_names(report), _cells_of(report)
    most = max(1.0, largest(values))
    for layer, row in enumerate(values):
        if not np.isnan(row).all():
            cells = (_cell(effects.get((layer, i)), places, most) for i in range(len(row)))
            yield f"<tr><th>L{layer}</th>{''.join(cells)}</tr>"


def _cell(effect: PatchEffect | None, places: Mapping[int, str], most: float) -> str:
    if effect is None:
        return "<td></td>"
    name, share, own = _site_name(effect, places), effect.share, effect.own
    title = f"{fenced(name)}: share {_number(share)}, change {_number(effect.change)}"
    if not np.isnan(own.versus_logit):
        title += f"; log p of the answer {own.answer_log_probability:+.3f}"
        title += f", of the other token {own.versus_log_probability:+.3f}"
    shade = _shade(share.mean / most)
    return f'<td class="{shade}" title="{escape(title)}">{share.mean:z.2f}</td>'


def _number(number: Estimate) -> str:
    return f"{number.mean:+.3f}" + ("" if number.error is None else f" ± {number.error:.3f}")


def _largest(report: PatchReport) -> Iterator[str]:
    places = _place_names(report)
    for effect in report.strongest[:SHOWN]:
        name = escape(fenced(_site_name(effect, places)))
        cells = "".join(f"<td>{_number(each)}</td>" for each in (effect.share, effect.change))
        yield f"<tr><th>{name}</th>{cells}</tr>"
