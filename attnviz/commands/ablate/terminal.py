"""The effects of ablations in a terminal: a grid of all parts, and a table of some."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.ablate.record import AblationReport, BeforeAfter, Effect
from attnviz.commands.ablate.titles import ablate_heading
from attnviz.console import Display
from attnviz.draw.effects import (
    LEGEND,
    by_part,
    difference,
    named,
    own_cells,
    own_columns,
    part_name,
)
from attnviz.draw.labels import distinct_labels, fenced
from attnviz.draw.matrix import largest
from attnviz.draw.terminal.colors import folded, signed_style
from attnviz.draw.terminal.grid import value_grid
from attnviz.draw.terminal.listing import Column, footnotes, listing
from attnviz.draw.titles import probability
from attnviz.errors import readable
from attnviz.records.predict import Candidate


def render(report: AblationReport, display: Display, top: int) -> Iterator[RenderableType]:
    """All parts as a grid, and a table of the `top` strongest effects."""
    yield from folded(Text("\n".join(ablate_heading(report)), "dim"), display.width)
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
    with_own = report.measure == "difference"
    behaviours = [_known_for(report, effect) for effect in effects]
    known = any(behaviours)
    columns = [
        Column("part" if any(not effect.heads for effect in effects) else "head"),
        Column("change", right=True),
        *([Column("± s.e.", right=True)] if with_errors else []),
        *(own_columns(report.answer, report.versus) if with_own else []),
        *([Column("known for")] if known else []),
    ]
    rows = [
        (
            part_name(effect.parts[0], ()),
            f"{effect.change:+.3f}",
            *([_error(effect)] if with_errors else []),
            *(own_cells(effect.own) if with_own else []),
            *([behaviour] if known else []),
        )
        for effect, behaviour in zip(effects, behaviours, strict=True)
    ]
    yield from listing(columns, rows, display.width)
    notes = [LEGEND] if with_own else []
    if with_errors:
        over = "these texts" if report.lines else "these tokens"
        notes.append(
            f"± s.e.: standard error over {over}; a change below two of them may be chance"
        )
    yield from footnotes(notes, display.width)


def render_together(both: BeforeAfter, display: Display) -> Iterator[RenderableType]:
    """The next tokens with the parts and without them, side by side."""
    report = both.report
    yield from folded(Text("\n".join(ablate_heading(report)), "dim"), display.width)
    yield Text()
    yield from folded(Text(_effect_together(both), "bold"), display.width)
    if report.lines is not None:
        return
    yield Text()
    last = distinct_labels(report.capture.query_tokens, unicode=display.unicode)[-1]
    yield from folded(Text(f"next token after {fenced(last)}", "dim"), display.width)
    number = Column("", right=True)
    rows = [
        (*_candidate(before), *_candidate(after))
        for before, after in zip(both.before.candidates, both.after.candidates, strict=True)
    ]
    columns = [Column("before"), number, Column("after"), number]
    yield from listing(columns, rows, display.width)


def _effect_together(both: BeforeAfter) -> str:
    """The effect in a sentence."""
    report = both.report
    (effect,) = report.effects
    names = ", ".join(part_name(part, ()) for part in effect.parts)
    heads_per_layer = report.capture.model.heads_per_layer
    if report.cut is not None and len(effect.parts) == sum(heads_per_layer):
        names = "every head"
    without = f"without the link of {names}" if report.cut else f"without {names}"
    error = f" ± {_error(effect)}" if _error(effect) else ""
    if report.measure == "difference":
        after = report.baseline + effect.change
        return (
            f"{without}: {difference(report.answer, report.versus)} {report.baseline:+.3f} → "
            f"{after:+.3f} ({effect.change:+.3f}{error})"
        )
    if both.answer and report.answer:
        shift = " → ".join(map(probability, both.answer))
        return f"{without}: P({named(report.answer)}) {shift} ({effect.change:+.3f} nats)"
    return f"{without}: {effect.change:+.3f}{error} nats on average, from {report.baseline:.3f}"


def _error(effect: Effect) -> str:
    return "" if effect.error is None else f"{effect.error:.3f}"


def _known_for(report: AblationReport, effect: Effect) -> str:
    heads = (each for each in report.capture.named_heads if each.head in effect.heads)
    return readable(", ".join(each.behaviour for each in heads))


def _candidate(token: Candidate) -> tuple[str, str]:
    return fenced(token.quoted), probability(token.probability)
