"""`attnviz atlas`: the result of a scan."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from attnviz.commands.atlas_page import show_page
from attnviz.commands.atlas_views import (
    Viewed,
    check_views,
    export_tree,
    made_of_scans,
    read_scan,
    show_development,
    show_head,
    show_plot,
)
from attnviz.data.atlas import Atlas
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result, destination_of
from attnviz.kit.option import command, option_field
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.renderers.rows.atlas import AtlasRow
from attnviz.renderers.terminal import atlas as table

if TYPE_CHECKING:
    from attnviz.draw.picture.canvas import Drawn

EPILOG = """
Examples

attnviz atlas scanned

attnviz atlas scanned --sort induction --top 5

attnviz atlas scanned --head L1H2

attnviz atlas scanned -o atlas.png

attnviz atlas scanned -o atlas.html

attnviz atlas scanned --plot previous,induction -o plot.png

attnviz atlas step-100 step-400 step-1600 -o development.png

attnviz atlas scanned --export headvis -o tree
"""
COMMON = "head sort top plot format output quiet".split()
"""The options that the short help lists."""
Score: TypeAlias = Literal[
    "entropy",
    "normalised",
    "distance",
    "distance_variance",
    "previous",
    "first",
    "self",
    "duplicate",
    "induction",
]


@dataclass(frozen=True)
class Listed:
    """Which heads are listed, and in which order."""

    sort: Score | None = option_field(
        g.LOOK,
        None,
        "--sort",
        help="Sort by this score, largest first. Default: by layer and head. With several "
        "folders: show this score only.",
    )
    top: int | None = option_field(
        g.LOOK,
        None,
        "--top",
        metavar="K",
        min=1,
        help="Show only the first K heads; of one head, K tokens of each side and K windows. In a "
        "plot: name K heads at most.",
    )


@command
def atlas(
    session: Session,
    *,
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER",
            help="The folder of a scan; several: scans of one model's checkpoints.",
            show_default=False,
        ),
    ],
    listed: Listed,
    viewed: Viewed,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.PageOutput,
    noise: g.Noise,
) -> None:
    """Show what a scan found: every head's scores, the means over documents."""
    check_views(session, folders, viewed)
    folder, top = folders[0], listed.top
    if viewed.export is not None:
        export_tree(session, folder, output.output)
        return
    to = destination_of(session, output)
    if len(folders) > 1:
        show_development(session, to, folders, viewed.head, listed.sort, top, canvas)
        return
    if viewed.head is not None:
        show_head(session, to, folder, viewed.head, top)
        return
    whole = read_scan(session, folder)
    if to.format.name == "html":
        show_page(session, to, folder, whole, listed.sort, viewed.plot)
        return
    if viewed.plot is not None:
        show_plot(session, to, whole, viewed.plot, top, canvas)
        return
    _show_scores(session, to, whole, listed, canvas)


def _show_scores(
    session: Session, to: Destination, whole: Atlas, listed: Listed, canvas: g.Canvas
) -> None:
    """The scores of every head."""
    found = whole.sorted_by(listed.sort, listed.top)

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import atlas as picture

        return picture.draw(whole, **look)

    result = Result(
        "atlas",
        found,
        whole.model,
        (AtlasRow,),
        lambda: list(found.rows),
        lambda display: table.render_atlas(found, display),
        draw,
        _made=made_of_scans([whole]),
    )
    deliver_result(session, to, result, canvas)
