"""Two scores of the heads that stand out, as a table."""

from collections.abc import Iterator

from rich.text import Text

from attnviz.console import Display
from attnviz.data.atlas import Atlas
from attnviz.data.scatter import Scatter
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.renderers.atlas_titles import outliers_said, scatter_title
from attnviz.renderers.terminal.atlas_head import letters, score_number

HEADS = 12


def render(atlas: Atlas, scatter: Scatter, top: int | None, display: Display) -> Iterator[Text]:
    """The heads farthest from the median, and the rule.

    Args:
        atlas: the scan.
        scatter: two of its scores.
        top: how many heads are named; None for 12.
        display: where it is shown.
    """
    shown = scatter.outliers[: top or HEADS]
    title = letters(scatter_title(atlas, scatter), display)
    yield from folded(Text(title, "dim"), display.width)
    yield Text()
    if shown:
        columns = [Column("head")]
        for name in (scatter.x, scatter.y):
            columns += [Column(name.replace("_", " "), right=True)]
            columns += [Column(letters("± error", display), right=True)]
        columns.append(Column("distance", right=True))
        rows = [
            [
                str(point.head),
                letters(score_number(scatter.x, point.x), display),
                letters(score_number(scatter.x, point.x_error), display),
                letters(score_number(scatter.y, point.y), display),
                letters(score_number(scatter.y, point.y_error), display),
                f"{point.distance:.1f}",
            ]
            for point in shown
        ]
        yield from listing(columns, rows, display.width)
        yield Text()
    said = letters(outliers_said(scatter, len(shown)), display)
    yield from folded(Text(said, "dim"), display.width)
    picture = display.speller("output", "FILE.png")
    yield from folded(Text(f"{picture} draws all heads", "dim"), display.width)
