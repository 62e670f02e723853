"""A picture of what ablating each head does: layers down, heads across."""

from attnviz.data.ablate import AblationReport
from attnviz.renderers.arrangement import by_head, digits_for, largest
from attnviz.renderers.colors import DIVERGING
from attnviz.renderers.interventions import ablation, mean_of_texts
from attnviz.renderers.picture.canvas import Drawn
from attnviz.renderers.picture.headpanes import Pane, draw_panes
from attnviz.renderers.titles import caption


def draw(report: AblationReport, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """All heads as one picture; raises what `draw_panes` does."""
    values = by_head((effect.heads[0], effect.change) for effect in report.effects)
    most = largest(values) or 1.0
    pane = Pane("change (nats)", values, -most, most, digits_for(most))
    about = mean_of_texts(report) if report.lines else caption(report.capture)
    return draw_panes(_title(ablation(report)), [pane], about=about, dpi=dpi, cmap=cmap)


def _title(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
