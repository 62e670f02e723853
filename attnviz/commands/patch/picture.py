"""A picture of the effects of patched vectors: layers down, heads or positions across."""

from attnviz.commands.patch.record import PatchReport
from attnviz.commands.patch.terminal import map_of, place_names
from attnviz.commands.patch.titles import SHARE, patch_ends, patching, ran
from attnviz.draw.labels import DIVERGING
from attnviz.draw.matrix import digits_for, largest
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.titles import beginning, caption


def draw(report: PatchReport, *, dpi: int = 150, cmap: str = DIVERGING) -> Drawn:
    """The map as a picture."""
    values = map_of(report)
    most = max(1.0, largest(values))
    columns = None if report.kind == "head" else list(place_names(report).values())
    pane = Pane(SHARE, values, -most, most, digits_for(most), columns=columns)
    below = [patch_ends(report)]
    if not report.lines:
        below.insert(0, f"source: “{beginning(report.source.text)}”")
    title = patching(report)
    title = title[0].upper() + title[1:]
    return draw_panes(title, [pane], about=ran(report, caption), below=below, dpi=dpi, cmap=cmap)
