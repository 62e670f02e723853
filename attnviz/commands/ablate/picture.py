"""A picture of what ablating each part does: layers down; heads, MLP and layer across."""

from attnviz.commands.ablate.record import AblationReport
from attnviz.commands.ablate.titles import change_of, measured, ran, replaced
from attnviz.draw.effects import OTHER_PARTS, by_part, unit_of
from attnviz.draw.labels import DIVERGING
from attnviz.draw.matrix import digits_for, largest
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.titles import caption


def draw(report: AblationReport, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """All parts as one picture."""
    values, columns = by_part((effect.parts[0], effect.change) for effect in report.effects)
    most = largest(values) or 1.0
    named = None if set(columns).isdisjoint(OTHER_PARTS.values()) else columns
    pane = Pane(
        f"change ({unit_of(report.measure)})", values, -most, most, digits_for(most), columns=named
    )
    title = replaced(report)
    return draw_panes(
        title[0].upper() + title[1:],
        [pane],
        about=ran(report, caption),
        below=[measured(report), change_of(report)],
        dpi=dpi,
        cmap=cmap,
    )
