"""What ablating parts does, as a person reads it: a grid of all parts, and a table of some."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.ablate.record import AblationReport, BeforeAfter, Effect
from attnviz.commands.ablate.titles import ablate_heading
from attnviz.console import Display
from attnviz.draw.labels import distinct_labels, fenced
from attnviz.draw.matrix import by_part, largest
from attnviz.draw.outcome import LEGEND, difference, named, own_cells, own_columns
from attnviz.draw.parts import part_name
from attnviz.draw.terminal.colors import folded, signed_style
from attnviz.draw.terminal.grid import value_grid
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import probability
from attnviz.errors import readable
from attnviz.records.heads import every_head
from attnviz.records.predict import NextTokens


def render(report: AblationReport, display: Display, top: int) -> Iterator[RenderableType]:
    """All parts as a grid, and a table of the `top` strongest effects."""
    yield from _heading(report, display)
    yield Text()
    values, columns = by_part((each.parts[0], each.change) for each in report.effects)
    layers = [f"L{layer}" for layer in range(len(values))]
    yield from value_grid(values, layers, columns, largest(values), signed_style, display)
    yield Text()
    yield from _table(report, report.strongest[:top], display)


def _table(
    report: AblationReport, effects: Sequence[Effect], display: Display
) -> Iterator[RenderableType]:
    """Each effect on a line."""
    with_errors = any(effect.error is not None for effect in effects)
    with_own = report.differences
    known = [_named(report, effect) for effect in effects]
    columns = [
        Column("part" if any(not effect.heads for effect in effects) else "head"),
        Column("change", right=True),
        *([Column("± s.e.", right=True)] if with_errors else []),
        *(own_columns(report.answer, report.versus) if with_own else []),
        *([Column("known for")] if any(known) else []),
    ]
    rows = [
        (
            part_name(effect.parts[0], ()),
            f"{effect.change:+.3f}",
            *([_error(effect)] if with_errors else []),
            *(own_cells(effect.own) if with_own else []),
            *([said] if any(known) else []),
        )
        for effect, said in zip(effects, known, strict=True)
    ]
    yield from listing(columns, rows, display.width)
    notes = []
    if with_own:
        notes.append(LEGEND)
    if with_errors:
        over = "these texts" if report.lines else "these tokens"
        notes.append(
            f"± s.e.: standard error over {over}; a change below two of them may be chance"
        )
    for said in notes:
        yield Text()
        yield from folded(Text(said, style="dim"), display.width)


def render_together(both: BeforeAfter, display: Display) -> Iterator[RenderableType]:
    """What comes next with the heads and without them, side by side."""
    report = both.report
    yield from _heading(report, display)
    yield Text()
    yield from folded(Text(_said_together(both), style="bold"), display.width)
    if report.lines is not None:
        return
    yield Text()
    last = distinct_labels(report.capture.query_tokens, unicode=display.unicode)[-1]
    yield from folded(Text(f"next token after {fenced(last)}", style="dim"), display.width)
    columns = [
        *(Column("before"), Column("", right=True)),
        *(Column("after"), Column("", right=True)),
    ]
    pairs = zip(_said(both.before), _said(both.after), strict=True)
    yield from listing(columns, [(*a, *b) for a, b in pairs], display.width)


def _said_together(both: BeforeAfter) -> str:
    """The effect in a sentence."""
    report = both.report
    (effect,) = report.effects
    names = ", ".join(part_name(part, ()) for part in effect.parts)
    if report.cut is not None and len(effect.parts) == len(every_head(_heads(report))):
        names = "every head"
    without = f"without the link of {names}" if report.cut else f"without {names}"
    error = f" ± {_error(effect)}" if _error(effect) else ""
    if report.differences:
        said = f"{without}: {difference(report.answer, report.versus)}"
        after = report.baseline + effect.change
        return said + f" {report.baseline:+.3f} → {after:+.3f} ({effect.change:+.3f}{error})"
    if both.answer and report.answer:
        before, after = both.answer
        said = f"{without}: P({named(report.answer)}) "
        said += f"{probability(before)} → {probability(after)}"
        return said + f" ({effect.change:+.3f} nats)"
    said = f"{without}: {effect.change:+.3f}{error} nats on average"
    return said + f", from {report.baseline:.3f}"


def _heads(report: AblationReport) -> Sequence[int]:
    return report.capture.model.heads_per_layer


def _heading(report: AblationReport, display: Display) -> Iterator[Text]:
    for said in ablate_heading(report):
        yield from folded(Text(said, style="dim"), display.width)


def _error(effect: Effect) -> str:
    return "" if effect.error is None else f"{effect.error:.3f}"


def _named(report: AblationReport, effect: Effect) -> str:
    named = (each for each in report.capture.named_heads if each.head in effect.heads)
    return readable(", ".join(each.behaviour for each in named))


def _said(next_tokens: NextTokens) -> list[tuple[str, str]]:
    return [(fenced(c.quoted), probability(c.probability)) for c in next_tokens.candidates]
