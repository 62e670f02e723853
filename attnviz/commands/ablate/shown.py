"""Ablations, shown: sentences, a grid of all parts, a table of some, and a picture."""

from collections.abc import Iterator, Sequence
from html import escape
from math import exp, nan

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.ablate.record import (
    EVERY,
    SEGMENT,
    AblationReport,
    BeforeAfter,
    TokenEffects,
    heads_of,
    is_segment,
)
from attnviz.console import Display
from attnviz.draw.effects import (
    LEGEND,
    OTHER_PARTS,
    by_part,
    difference,
    named,
    numbers,
    own_columns,
    part_name,
    ran,
    tested,
    unit_of,
)
from attnviz.draw.labels import DIVERGING, distinct_labels, fenced, name_of
from attnviz.draw.matrix import digits_for, largest
from attnviz.draw.page import HEAD, filled, policies, policy, source
from attnviz.draw.page.maps import map_style, shade
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.terminal.cells import (
    Column,
    TableColumns,
    folded,
    footnotes,
    next_before_and_after,
    signed_style,
    table,
    words,
)
from attnviz.draw.terminal.grid import value_grid
from attnviz.draw.titles import amount, caption, facts, probability, with_error
from attnviz.errors import readable
from attnviz.records.rows import at


def _part(report: AblationReport) -> str:
    """`head`, `MLP`, `layer`; `part` where there are several kinds."""
    kinds = {part.kind for effect in report.effects for part in effect.parts}
    return {"head": "head", **OTHER_PARTS}[kinds.pop()] if len(kinds) == 1 else "part"


def _replaced(report: AblationReport) -> str:
    """The replacement of a part, or the fate of a link."""
    cut = report.cut
    if cut is not None:
        where = " and ".join(_cut(names, segments=bool(cut.segments)) for names in cut.names)
        links = "link" if cut.number < 2 else f"{cut.number} links"
        rescaled = ", the softmax taken again over the rest of its row" if cut.renormalise else ""
        if rescaled and any(query == EVERY or is_segment(query) for query, _ in cut.names):
            rescaled += " (a row that would have no other keeps its links)"
        return f"a head's {links} {where} removed{rescaled}"
    part = _part(report)
    article = "an" if part == "MLP" else "a"
    output = "what a layer adds" if part == "layer" else f"{article} {part}'s output"
    return f"{output} replaced by {_replacement(report)}"


def _cut(names: tuple[str, str], *, segments: bool) -> str:
    """`from creature to blue`, `from every token to 0`, `within each segment`."""

    def named_as(name: str) -> str:
        if segments and is_segment(name):
            return f"segment {fenced(name[1:])}" if name != SEGMENT else "each segment"
        return "every token" if name == EVERY else fenced(name)

    query, key = map(named_as, names)
    within = segments and query == key and is_segment(names[0])
    return f"within {query}" if within else f"from {query} to {key}"


def _replacement(report: AblationReport) -> str:
    """`0`, `its mean over 200 texts of colors.jsonl`, `… mean of 10 drawn from …`, and so on."""
    others = report.others
    if others is None:
        return "0" if report.replacement == "zero" else "its mean over the positions"
    of_file = f" of {fenced(others.name)}" if others.name else ""
    texts = amount(others.texts, "text") + of_file
    if not others.draws:
        where = " at the same position" if others.by_position else ""
        return f"its mean{where} over {texts}"
    draws, long = (
        " to ".join(f"{number:,}" for number in sorted({min(each), max(each)}))
        for each in (others.draws, others.long_enough)
    )
    whole = {*others.long_enough} == {others.texts}
    texts = texts if whole else f"{long} of {texts} that are long enough"
    drawn = f"{draws} drawn from {'' if whole else 'the '}{texts} (seed {others.seed})"
    drawn = f"all {texts}" if others.draws == others.long_enough else drawn
    return f"what it is at the same position of another text: mean of {drawn}"


def _measured(report: AblationReport) -> str:
    """The measurement, and its value without ablation."""
    answer, mean = report.answer, report.lines is not None
    if report.measure == "difference":
        sentence = f"{difference(answer, report.versus)} = {report.baseline:+z.3f}"
        return f"mean of {sentence}" if mean else sentence
    if answer is not None and report.first is not None and not mean:
        sentence = f"P({named(answer)}) = {probability(answer.probability)}, rank {report.rank:,}"
        if report.rank != 1:
            sentence += f"; top: {named(report.first)}, {probability(report.first.probability)}"
        return sentence
    if answer is not None:
        tokens = named(answer)
    elif report.own_answers:
        tokens = "each text's answer"
    else:
        tokens = "the tokens" if mean else f"the {amount(report.tokens, 'token')}"
        tokens += " that followed"
    return f"mean log-probability of {tokens}: {report.baseline:.3f} nats"


def _change_of(report: AblationReport) -> str:
    """The unit of a change, and the meaning of its sign."""
    measured = "this difference" if report.measure == "difference" else "log-probability"
    part = "link" if report.cut else _part(report)
    return f"change in {measured} ({unit_of(report.measure)}); negative = the {part} helps"


def _heading(report: AblationReport, display: Display) -> Iterator[Text]:
    """The run and what replaces a part; what is measured; what the sign of a change means."""
    first = f"{ran(report.capture, report.lines, 'text', facts)}; {_replaced(report)}"
    lines = "\n".join((first, _measured(report), _change_of(report)))
    yield from folded(Text(lines, "dim"), display.width)
    yield Text()


def render(report: AblationReport, display: Display, top: int) -> Iterator[RenderableType]:
    """Render all parts as a grid, and a table of the `top` strongest effects."""
    yield from _heading(report, display)
    values, names = by_part((each.parts[0], each.change.mean) for each in report.effects)
    layers = [f"L{layer}" for layer in range(len(values))]
    yield from value_grid(values, layers, names, largest(values), signed_style, display)
    yield Text()
    effects = report.strongest[:top]
    with_errors = any(effect.change.error is not None for effect in effects)
    with_own = report.measure == "difference"
    part = "part" if any(not heads_of(effect) for effect in effects) else "head"
    columns = [
        words(part, lambda effect: part_name(effect.parts[0], ())),
        numbers("change", at("change"), errors=with_errors),
        *([own_columns(report)] if with_own else []),
    ]
    if any(map(report.known_for, effects)):
        columns.append(words("known for", lambda e: readable(", ".join(report.known_for(e)))))
    yield from table(effects, columns, display.width)
    notes = [LEGEND] if with_own else []
    if with_errors:
        over = "texts" if report.lines else "tokens" if report.tokens > 1 else "draws"
        chance = tested([each.p_holm for each in report.effects], _part(report), report.lines or 1)
        notes.append(
            f"± s.e.: standard error over these {over}; "
            + (chance or "a change below two of them may be chance")
        )
    yield from footnotes(notes, display.width)


def render_together(both: BeforeAfter, display: Display) -> Iterator[RenderableType]:
    """Render the next tokens with the parts and without them, side by side."""
    report = both.report
    yield from _heading(report, display)
    yield from folded(Text(_effect_together(both), "bold"), display.width)
    if report.lines is not None:
        return
    yield from next_before_and_after(report.capture, both.before, both.after, display)


def _effect_together(both: BeforeAfter) -> str:
    """The effect in a sentence."""
    report = both.report
    (effect,) = report.effects
    names = ", ".join(part_name(part, ()) for part in effect.parts)
    if report.cut is not None and len(effect.parts) == sum(report.capture.model.heads_per_layer):
        names = "every head"
    links = "the link" if report.cut and report.cut.number == 1 else "these links"
    without = f"without {links} of {names}" if report.cut else f"without {names}"
    change, after = effect.change, report.baseline + effect.change.mean
    if report.measure == "difference":
        return (
            f"{without}: {difference(report.answer, report.versus)} {report.baseline:+z.3f} → "
            f"{after:+z.3f} ({with_error(change)})"
        )
    if report.answer and report.lines is None and report.replacement != "resample":
        shift = " → ".join(probability(exp(log)) for log in (report.baseline, after))
        return f"{without}: P({named(report.answer)}) {shift} ({change.mean:+z.3f} nats)"
    return f"{without}: {with_error(change)} nats on average, from {report.baseline:.3f}"


def draw(report: AblationReport, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """Draw all parts as one picture: layers down; heads, MLP and layer across."""
    values, columns = by_part((effect.parts[0], effect.change.mean) for effect in report.effects)
    most = largest(values) or 1.0
    across = None if set(columns).isdisjoint(OTHER_PARTS.values()) else columns
    name = f"change ({unit_of(report.measure)})"
    errors = None
    if report.lines is not None:
        each = (
            (e.parts[0], nan if e.change.error is None else e.change.error) for e in report.effects
        )
        errors, _ = by_part(each)
    pane = Pane(name, values, -most, most, digits_for(most), columns=across, errors=errors)
    title, about, below = about_picture(report)
    return draw_panes(title, [pane], about=about, below=below, dpi=dpi, cmap=cmap)


def about_picture(report: AblationReport) -> tuple[str, str, list[str]]:
    """A picture's title, and the lines above and below it."""
    title = _replaced(report)
    below = [_measured(report), _change_of(report)]
    about = ran(report.capture, report.lines, "text", caption)
    return title[0].upper() + title[1:], about, below


# The change at each token without each part.


MOST_TOKENS = 60
"""The terminal shows no grid of longer texts."""
NAMED = 3
"""Tokens that are named for each part."""
CELL = 7


def token_labels(effects: TokenEffects, *, unicode: bool = True) -> list[str]:
    """The names of the measured tokens; `-1 was` where they are counted from the end."""
    labels = distinct_labels(effects.tokens, unicode=unicode)[1:]
    if effects.first == 1:
        return list(labels)
    return [f"{position} {label}" for position, label in enumerate(labels, effects.first)]


def render_tokens(effects: TokenEffects, display: Display, top: int) -> Iterator[RenderableType]:
    """Render the strongest parts: a grid of them and tokens, and a table of each one's tokens."""
    yield from _heading(effects.report, display)
    chosen = effects.strongest[:top]
    labels = token_labels(effects, unicode=display.unicode)
    if len(labels) <= MOST_TOKENS:
        margin = min(max(map(len, labels)), display.width // 3) + 1
        across = chosen[: max(1, (display.width - margin) // CELL)]
        values = effects.changes[across].T
        columns = [named_part(effects, i) for i in across]
        most = largest(effects.changes)
        yield from value_grid(values, labels, columns, most, signed_style, display)
        if len(across) < len(chosen):
            wider = f"use a wider terminal, or {display.speller('output', 'FILE.png')}"
            few = f"the first {len(across)} of these {len(chosen)} parts: {wider}"
            yield from folded(Text(few, style="dim"), display.width)
        yield Text()
    yield from _tokens_table(effects, chosen, labels, display)


def _tokens_table(
    effects: TokenEffects, chosen: Sequence[int], labels: Sequence[str], display: Display
) -> Iterator[Text]:
    """Each part on a line: its mean change, and the tokens that change most."""
    report = effects.report

    def most_changed(i: int) -> Sequence[str]:
        changes = effects.changes[i]
        most = np.argsort(-np.abs(changes), kind="stable")[:NAMED].tolist()
        return [", ".join(f"{fenced(name_of(labels[t]))} {changes[t]:+z.3f}" for t in most)]

    behaviours = {i: readable(", ".join(report.known_for(report.effects[i]))) for i in chosen}
    columns: list[TableColumns] = [
        words("part", lambda i: named_part(effects, i)),
        words("mean", lambda i: f"{report.effects[i].change.mean:+z.3f}", right=True),
        ([Column("tokens that change most", wraps=True)], most_changed),
    ]
    if any(behaviours.values()):
        columns.append(words("known for", behaviours.__getitem__))
    yield from table(chosen, columns, display.width)
    notes = ["the part with the largest change of a single token comes first"]
    if effects.first < 0:
        notes.append(
            "the texts have several lengths: tokens are counted from the end, as far as all texts "
            "have them; a part's mean is over all tokens"
        )
    if varied := sorted(effects.varied - {0}):
        notes.append(f"{fenced(labels[varied[0] - 1])}: the texts differ at this position")
    yield from footnotes(notes, display.width)


def named_part(effects: TokenEffects, i: int) -> str:
    """The name of a part by its number."""
    return part_name(effects.report.effects[i].parts[0], ())


def draw_tokens(effects: TokenEffects, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """Draw all parts down, and the tokens that were predicted across."""
    values = effects.changes
    most = largest(values) or 1.0
    name = f"change at each token ({unit_of('tokens')})"
    labels = [name_of(label) for label in token_labels(effects)]
    parts = [named_part(effects, i) for i in range(len(values))]
    pane = Pane(name, values, -most, most, digits_for(most), columns=labels, rows=parts)
    title, about, below = about_picture(effects.report)
    return draw_panes(title, [pane], about=about, below=below, dpi=dpi, cmap=cmap)


def page(effects: TokenEffects) -> list[str]:
    """A page of all parts and tokens; it has no script: titles of cells hold their numbers."""
    title, about, below = about_picture(effects.report)
    style, most = map_style(), largest(effects.changes) or 1.0
    labels = [escape(fenced(each)) for each in token_labels(effects)]
    names = "".join(f'<th class="token"><span>{label}</span></th>' for label in labels)
    rows = [f"<thead><tr><th></th>{names}</tr></thead>"]
    for i in effects.strongest:
        part, cells = named_part(effects, i), list[str]()
        for k, value in enumerate(effects.changes[i].tolist()):
            error = "" if effects.errors is None else f" ± {effects.errors[i, k]:.4f}"
            told = f"{part} at {labels[k]}: {value:+.4f}{error} nats"
            cells.append(f'<td class="{shade(value / most)}" title="{told}">{value:z.2f}</td>')
        rows.append(f"<tr><th>{part}</th>{''.join(cells)}</tr>")
    values = {
        "policies": policies(policy(style, "")),
        "style": style,
        "title": escape(f"{title}: the change at each token"),
        "about": escape(about),
        "below": escape("; ".join(below)),
        "rows": "\n".join(rows),
    }
    return [filled(source(HEAD, "commands/ablate/page/tokens.html"), values)]
