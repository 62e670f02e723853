"""A picture for each score: layers down, heads across."""

from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.heads import METRICS, HeadReport
from attnviz.renderers.arrangement import by_head
from attnviz.renderers.picture.headpanes import Pane, draw_panes
from attnviz.renderers.titles import heads_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNBOUNDED = ("entropy", "distance")  # all other metrics are shares


def draw(report: HeadReport, *, dpi: int = 150, cmap: str = "viridis") -> "Figure":
    """The metrics of all heads: shares from 0 to 1, others from 0 to the largest.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    panes = [pane for name in METRICS if (pane := _pane(report, name)) is not None]
    return draw_panes(heads_title(report), panes, dpi=dpi, cmap=cmap)


def _pane(report: HeadReport, name: str) -> Pane | None:
    """One score; None where nothing was measured."""
    values = by_head((head.head, head.metrics[name].mean) for head in report.heads)
    if np.isnan(values).all():
        return None
    high = (float(np.nanmax(values)) or 1.0) if name in UNBOUNDED else 1.0
    digits = 1 if name == "distance" else 2
    return Pane(f"{name}, 0 to {high:.3g}", values, 0.0, high, digits)
