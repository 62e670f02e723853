"""What ablating heads does, as a person reads it: a grid of all heads, and the worst of them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.data.ablations import AblationReport, BeforeAfter, Effect
from attnviz.data.predictions import Outlook
from attnviz.data.tokens import readable
from attnviz.renderers.direction import fenced
from attnviz.renderers.headgrid import digits_for, head_grid, largest
from attnviz.renderers.heading import facts
from attnviz.renderers.headpanes import Pane, draw_panes, matrix
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.listing import Column, listing
from attnviz.renderers.paint import DIVERGING
from attnviz.renderers.prose import folded
from attnviz.renderers.signed import signed_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render(
    report: AblationReport, effects: Sequence[Effect], display: Display
) -> Iterator[RenderableType]:
    """All heads as a grid, and of them those effects as a table."""
    yield from _heading(report, display)
    yield Text()
    values = matrix((effect.heads[0], effect.change) for effect in report.effects)
    yield from head_grid(values, largest(values), signed_style, display)
    yield Text()
    with_errors = any(effect.error is not None for effect in effects)
    columns = [
        Column("head"),
        Column("change", right=True),
        *([Column("± s.e.", right=True)] if with_errors else []),
        Column("what the model's card names it for"),
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
        said = "± s.e.: standard error over these tokens; less than two of it may be chance"
        yield from folded(Text(said, style="dim"), display.width)


def render_together(found: BeforeAfter, display: Display) -> Iterator[RenderableType]:
    """What comes next with the heads and without them, side by side."""
    report = found.report
    (effect,) = report.effects
    yield from _heading(report, display)
    yield Text()
    names = ", ".join(map(str, effect.heads))
    if found.told and report.answer:
        before, after = found.told
        said = f"without {names}: {fenced(report.answer.label)} {before:.3f} → {after:.3f}"
        change = f" ({effect.change:+.3f} nats)"
    else:
        error = f" ± {_error(effect)}" if _error(effect) else ""
        said = f"without {names}: {effect.change:+.3f}{error} nats on the mean"
        change = f", from {report.baseline:.3f}"
    yield from folded(Text(said + change, style="bold"), display.width)
    yield Text()
    last = distinct_labels(report.frame.query_tokens, unicode=display.unicode)[-1]
    yield from folded(Text(f"what comes after {fenced(last)}", style="dim"), display.width)
    columns = [
        *(Column("before"), Column("", right=True)),
        *(Column("after"), Column("", right=True)),
    ]
    pairs = zip(_said(found.before), _said(found.after), strict=True)
    yield from listing(columns, [(*a, *b) for a, b in pairs], display.width)


def draw(report: AblationReport, *, dpi: int, cmap: str = DIVERGING) -> "Figure":
    """All heads as one picture; raises what `draw_panes` does."""
    values = matrix((effect.heads[0], effect.change) for effect in report.effects)
    most = largest(values) or 1.0
    title = f"change in nats, -{most:.3g} to {most:.3g}"
    pane = Pane(title, values, -most, most, digits_for(most))
    return draw_panes(heading(report), [pane], dpi=dpi, cmap=cmap)


def heading(report: AblationReport) -> str:
    """What was run, what is looked at, and what stands in for a head."""
    replaced = "0" if report.replacement == "zero" else "its mean over the positions"
    if report.answer is not None and report.first is not None:
        word, best = report.answer, report.first
        told = (
            f"{fenced(word.label)} next: probability {word.probability:.3f}, rank {report.rank:,}"
        )
        if report.rank != 1:
            told += f" ({fenced(best.label)} {best.probability:.3f} is first)"
    else:
        n = report.tokens
        told = (
            f"mean log-probability of the {n:,} token{'s' * (n != 1)} that followed: "
            f"{report.baseline:.3f} nats"
        )
    changes = "; changes in nats, below 0 where the head helps"
    return f"{facts(report.frame)}; a head's output replaced by {replaced}; {told}{changes}"


def _heading(report: AblationReport, display: Display) -> list[Text]:
    return folded(Text(heading(report), style="dim"), display.width)


def _error(effect: Effect) -> str:
    return "" if effect.error is None else f"{effect.error:.3f}"


def _named(report: AblationReport, effect: Effect) -> str:
    named = (each for each in report.frame.named_heads if each.head in effect.heads)
    return readable(", ".join(each.behaviour for each in named))


def _said(outlook: Outlook) -> list[tuple[str, str]]:
    return [(fenced(c.label), f"{c.probability:.3f}") for c in outlook.candidates]
