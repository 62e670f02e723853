"""A picture for each score of a scan: layers down, heads across."""

from collections.abc import Iterator
from math import nan

from attnviz.commands.atlas.headlines import atlas_title
from attnviz.commands.atlas.record import SCORES, Atlas
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import draw_panes, score_pane
from attnviz.records.heads import Head


def draw(atlas: Atlas, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The scores of all heads: shares from 0 to 1, others from 0 to the largest."""
    found = (score_pane(SCORES[name], by_head(_values(atlas, name))) for name in SCORES)
    panes = [pane for pane in found if pane is not None]
    return draw_panes(atlas_title(atlas), panes, dpi=dpi, cmap=cmap)


def _values(atlas: Atlas, name: str) -> Iterator[tuple[Head, float]]:
    for row in atlas.rows:
        yield Head(row["layer"], row["head"]), nan if row[name] is None else row[name]
