"""`attnviz atlas`: the result of a scan."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from attnviz.commands import groups as g
from attnviz.commands.deliver import deliver_report, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.renderers.terminal import atlas as table
from attnviz.scan.tables import read_atlas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPILOG = """
[bold]Examples[/]

attnviz atlas scanned

attnviz atlas scanned --sort induction --top 5

attnviz atlas scanned -o atlas.png
"""
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
        help="Sort by this score, largest first. Default: by layer and head.",
    )
    top: int | None = option_field(
        g.LOOK, None, "--top", metavar="K", min=1, help="Show only the first K heads."
    )


@command
def atlas(
    session: Session,
    *,
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="What attnviz scan wrote.", show_default=False),
    ],
    listed: Listed,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ReportOutput,
    noise: g.Noise,
) -> None:
    """Show what a scan found: every head's scores, the means over documents."""
    to = destination_of(session, output)
    whole = read_atlas(folder)
    found = whole.sorted_by(listed.sort, listed.top)

    def draw() -> "Figure":
        from attnviz.renderers.picture import atlas as picture

        return picture.draw(whole, **canvas.given)

    deliver_report(
        session,
        to,
        lambda: list(found.rows),
        lambda: table.render(found, to.display(session)),
        draw,
    )
