"""A picture for each score: layers down, heads across."""

from typing import TYPE_CHECKING

from attnviz.data.heads import METRICS, HeadReport
from attnviz.renderers.arrangement import by_head
from attnviz.renderers.picture.headpanes import draw_panes, score_pane
from attnviz.renderers.titles import heads_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(report: HeadReport, *, dpi: int = 150, cmap: str = "viridis") -> "Figure":
    """The metrics of all heads: shares from 0 to 1, others from 0 to the largest.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    found = (
        score_pane(name, by_head((each.head, each.metrics[name].mean) for each in report.heads))
        for name in METRICS
    )
    panes = [pane for pane in found if pane is not None]
    return draw_panes(heads_title(report), panes, dpi=dpi, cmap=cmap)
