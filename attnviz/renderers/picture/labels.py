"""A picture of how well each head does on labelled links: layers down, heads across."""

from attnviz.data.labels import LabelReport
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.renderers.terminal.labels import labels_title


def draw(report: LabelReport, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The two scores of all heads, from 0 to 1.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    mass = by_head((each.head, each.mass.mean) for each in report.scores)
    strongest = by_head((each.head, each.strongest.mean) for each in report.scores)
    panes = [
        Pane("mass on true keys, 0 to 1", mass, 0.0, 1.0, 2),
        Pane("strongest key is true, 0 to 1", strongest, 0.0, 1.0, 2),
    ]
    return draw_panes(labels_title(report), panes, dpi=dpi, cmap=cmap)
