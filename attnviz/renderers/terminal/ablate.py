"""What ablating heads does, as a person reads it: a grid of all heads, and a table of some."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.data.ablate import AblationReport, BeforeAfter, Effect
from attnviz.data.predict import NextTokens
from attnviz.harmless import readable
from attnviz.renderers.arrangement import by_head, largest
from attnviz.renderers.direction import fenced
from attnviz.renderers.labels import distinct_labels, name_of
from attnviz.renderers.numbers import probability
from attnviz.renderers.terminal.colors import signed_style
from attnviz.renderers.terminal.headgrid import head_grid
from attnviz.renderers.terminal.listing import Column, listing
from attnviz.renderers.terminal.prose import folded
from attnviz.renderers.titles import ablate_title


def render(
    report: AblationReport, effects: Sequence[Effect], display: Display
) -> Iterator[RenderableType]:
    """All heads as a grid, and of them those effects as a table."""
    yield from _heading(report, display)
    yield Text()
    values = by_head((effect.heads[0], effect.change) for effect in report.effects)
    yield from head_grid(values, largest(values), signed_style, display)
    yield Text()
    with_errors = any(effect.error is not None for effect in effects)
    columns = [
        Column("head"),
        Column("change", right=True),
        *([Column("± s.e.", right=True)] if with_errors else []),
        Column("known for"),
    ]
    rows = [
        (
            str(effect.heads[0]),
            f"{effect.change:+.3f}",
            *([_error(effect)] if with_errors else []),
            _named(report, effect),
        )
        for effect in effects
    ]
    yield from listing(columns, rows, display.width)
    if with_errors:
        yield Text()
        over = "these texts" if report.lines else "these tokens"
        said = f"± s.e.: standard error over {over}; a change below two of them may be chance"
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
    names = ", ".join(map(str, effect.heads))
    if both.answer and report.answer:
        before, after = both.answer
        said = f"without {names}: P({fenced(name_of(report.answer.label))}) "
        said += f"{probability(before)} → {probability(after)}"
        return said + f" ({effect.change:+.3f} nats)"
    error = f" ± {_error(effect)}" if _error(effect) else ""
    said = f"without {names}: {effect.change:+.3f}{error} nats on average"
    return said + f", from {report.baseline:.3f}"


def _heading(report: AblationReport, display: Display) -> list[Text]:
    return folded(Text(ablate_title(report), style="dim"), display.width)


def _error(effect: Effect) -> str:
    return "" if effect.error is None else f"{effect.error:.3f}"


def _named(report: AblationReport, effect: Effect) -> str:
    named = (each for each in report.capture.named_heads if each.head in effect.heads)
    return readable(", ".join(each.behaviour for each in named))


def _said(next_tokens: NextTokens) -> list[tuple[str, str]]:
    return [(fenced(c.quoted), probability(c.probability)) for c in next_tokens.candidates]
