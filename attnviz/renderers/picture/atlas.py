"""A picture for each score of a scan: layers down, heads across."""

from typing import TYPE_CHECKING

import numpy as np

from attnviz.data.atlas import SCORES, Atlas
from attnviz.data.head import Head
from attnviz.renderers.arrangement import by_head
from attnviz.renderers.picture.headpanes import Pane, draw_panes
from attnviz.renderers.titles import atlas_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNBOUNDED = ("entropy", "distance", "distance_variance")  # all other scores are shares


def draw(atlas: Atlas, *, dpi: int = 150, cmap: str = "viridis") -> "Figure":
    """The scores of all heads: shares from 0 to 1, others from 0 to the largest.

    Raises:
        UsageError: no such colour map, or a resolution that makes no usable picture.
    """
    panes = [pane for name in SCORES if (pane := _pane(atlas, name)) is not None]
    return draw_panes(atlas_title(atlas), panes, dpi=dpi, cmap=cmap)


def _pane(atlas: Atlas, name: str) -> Pane | None:
    values = by_head(
        (Head(row["layer"], row["number"]), float("nan") if row[name] is None else row[name])
        for row in atlas.rows
    )
    if np.isnan(values).all():
        return None
    high = (float(np.nanmax(values)) or 1.0) if name in UNBOUNDED else 1.0
    said = name.replace("_", " ")
    return Pane(f"{said}, 0 to {high:.3g}", values, 0.0, high, 1 if "distance" in name else 2)
