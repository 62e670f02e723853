"""A picture of what ablating each head does: layers down, heads across."""

from typing import TYPE_CHECKING

from attnviz.data.ablate import AblationReport
from attnviz.renderers.arrangement import by_head, digits_for, largest
from attnviz.renderers.picture.headpanes import Pane, draw_panes
from attnviz.renderers.picture.paint import DIVERGING
from attnviz.renderers.titles import ablate_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(report: AblationReport, *, dpi: int = 150, cmap: str = DIVERGING) -> "Figure":
    """All heads as one picture; raises what `draw_panes` does."""
    values = by_head((effect.heads[0], effect.change) for effect in report.effects)
    most = largest(values) or 1.0
    title = f"change in nats, -{most:.3g} to {most:.3g}"
    pane = Pane(title, values, -most, most, digits_for(most))
    return draw_panes(ablate_title(report), [pane], dpi=dpi, cmap=cmap)
