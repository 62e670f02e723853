"""`attnviz atlas`: the result of a scan."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from attnviz.commands.atlas import terminal as table
from attnviz.commands.atlas.development import Development, develop
from attnviz.commands.atlas.headlines import Scatter, one_head, scatter_of, two_scores
from attnviz.commands.atlas.record import SCORES, Atlas, HeadAtlas, ScoreName
from attnviz.commands.atlas.rows import (
    ATLAS_ROW,
    DEVELOPMENT_ROW,
    PART_ROW,
    developed,
    head_chunks,
    parts_of,
    scatter_row,
)
from attnviz.commands.atlas.tables import read_atlas, read_head, read_heads
from attnviz.draw.titles import amount, model_notes
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver, deliver_result, destination_of
from attnviz.kit.lines import say
from attnviz.kit.option import command
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.records.capture import Asked, asked
from attnviz.records.rows import made_to_dict

# What `attnviz atlas` shows besides its table: one head, two scores, several scans, a tree.


@dataclass(frozen=True)
class AtlasViews:
    """What of the scan is shown."""

    head: Annotated[
        str | None,
        g.heads_option(
            "--head",
            "-H",
            metavar="HEAD",
            help="Show all that was found of this head: L1H2 or 1.2. With several folders: how its "
            "scores develop.",
        ),
    ] = None
    plot: Annotated[
        str | None,
        g.look_option(
            "--plot",
            metavar="X,Y",
            help="Show two scores of every head against each other, as in previous,induction, and "
            "name the outliers. With -o FILE.png: a scatter plot.",
        ),
    ] = None
    export: Annotated[
        Literal["headvis"] | None,
        g.output_option(
            "--export",
            help="Write the data tree that HeadVis and Neuronpedia's loaders read into the folder "
            "-o.",
        ),
    ] = None


def check_views(session: Session, folders: Sequence[str], viewed: AtlasViews) -> None:
    """See that what was asked for fits together."""
    if viewed.export is not None:
        useless = ("head", "plot", "sort", "top", "format", g.Canvas)
        session.refuse(*useless, wrong=f"does nothing for {option('export', viewed.export)}")
    if len(folders) > 1:
        session.refuse("plot", "export", wrong="is for one scan", hint="give one folder")
    elif viewed.head is not None:
        session.refuse("plot", "sort", wrong=f"does nothing for {option('head', viewed.head)}")
    elif viewed.plot is not None:
        session.refuse("sort", wrong=f"does nothing for {option('plot', viewed.plot)}")


def read_scan(session: Session, folder: str) -> Atlas:
    """The result of a scan, with a line on stderr about layers without attention."""
    whole = read_atlas(folder)
    say(session, model_notes(whole.identity))
    return whole


def made_of_scans(atlases: Sequence[Atlas]) -> Mapping[str, Any]:
    """How what is shown of one scan, or of several, was made."""
    given, made = asked(), [each.made for each in atlases]
    if len(made) == 1:
        return {**made[0], "options": {**made[0].get("options", {}), **given.options}}
    models = [each.identity for each in atlases if each.identity]
    scans = [dict(each) for each in made]
    return made_to_dict((), models, Asked({**given.options, "scans": scans}))


def show_head(session: Session, to: Destination, folder: str, name: str, top: int | None) -> None:
    """One head: for a person, as one object, or as rows.

    Raises:
        UsageError: the scan has no such head, or a picture is asked for.
        InputError: the result is damaged.
        OutputError: the file or the stream cannot take it.
    """
    if to.format.picture or to.format.name == "html":
        raise UsageError(
            f"{option('head', name)} has no {to.format.name}", f"leave {option('head')} out"
        )
    whole = read_scan(session, folder)
    found = read_head(folder, whole.row(one_head(whole, name)))
    if to.format.name == "json":
        deliver(session, to, [(None, head_chunks(found, made_of_scans([whole]), top))])
        return
    form = Form[HeadAtlas](
        "atlas",
        PART_ROW,
        lambda found, top, line: parts_of(found, top),
        lambda found: str(found.head),
        lambda found, display: table.render_head(whole, found, top, display),
    )
    deliver_result(session, to, Result(form, found, _top=top))


def show_plot(
    session: Session, to: Destination, whole: Atlas, names: str, top: int | None, canvas: g.Canvas
) -> None:
    """Two scores of every head."""
    from attnviz.commands.atlas import scatter as view

    scatter = scatter_of(whole, *two_scores(names))
    form = Form[Scatter](
        "atlas",
        scatter_row(scatter.x, scatter.y),
        lambda scatter, top, line: scatter.points,
        lambda scatter: f"{scatter.x} and {scatter.y}",
        lambda scatter, display: view.render(whole, scatter, top, display),
        lambda scatter, **look: view.draw(whole, scatter, top=top, **look),
    )
    deliver_result(session, to, Result(form, scatter, _made=made_of_scans([whole])), canvas)


def show_development(
    session: Session,
    to: Destination,
    folders: Sequence[str],
    head: str | None,
    score: str | None,
    top: int | None,
    canvas: g.Canvas,
) -> None:
    """The scores of every head, or of one, over several scans.

    Raises:
        UsageError: the scans cannot be compared, or have no such head.
        OutputError: the file or the stream cannot take it.
    """
    from attnviz.commands.atlas import development_shown as view

    if to.format.name == "html":
        raise UsageError("a page is of one scan", "give one folder")
    atlases = [read_scan(session, folder) for folder in folders]
    found = develop(folders, atlases)
    heads = found.heads if head is None else (one_head(atlases[0], head),)
    found = found.only(heads, [*SCORES] if score is None else (score,))

    form = Form[Development](
        "atlas",
        DEVELOPMENT_ROW,
        lambda found, top, line: developed(found),
        lambda found: amount(len(folders), "scan"),
        lambda found, display: view.render(found, top, display),
        lambda found, **look: view.draw(found, top=top, **look),
    )
    deliver_result(session, to, Result(form, found, _made=made_of_scans(atlases)), canvas)


def export_tree(session: Session, folder: str, tree: Path | None) -> None:
    """The scan as a tree for HeadVis.

    Raises:
        UsageError: no folder is given for the tree.
        InputError: the result is damaged.
        OutputError: the tree cannot be written.
    """
    from attnviz.commands.atlas.headvis import write_headvis

    if tree is None:
        raise UsageError(
            f"{option('export', 'headvis')} writes many files",
            f"name their folder: {option('output', 'TREE')}",
        )
    whole = read_scan(session, folder)
    written = write_headvis(tree, whole, read_heads(folder, whole.rows))
    session.wrote(written)


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
    sort: Annotated[
        ScoreName | None,
        g.look_option(
            "--sort",
            help="Sort by this score, largest first. Default: by layer and head. With several "
            "folders: show this score only.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        g.look_option(
            "--top",
            metavar="K",
            min=1,
            help="Show only the first K heads; of one head, K tokens of each side and K windows. "
            "In a plot: name K heads at most.",
        ),
    ] = None,
    viewed: AtlasViews,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.PageOutput,
    noise: g.Noise,
) -> None:
    """Show what a scan found: every head's scores, the means over documents."""
    check_views(session, folders, viewed)
    folder = folders[0]
    if viewed.export is not None:
        export_tree(session, folder, output.output)
        return
    to = destination_of(session, output)
    if len(folders) > 1:
        show_development(session, to, folders, viewed.head, sort, top, canvas)
        return
    if viewed.head is not None:
        show_head(session, to, folder, viewed.head, top)
        return
    whole = read_scan(session, folder)
    if to.format.name == "html":
        show_page(session, to, folder, whole, sort, viewed.plot)
        return
    if viewed.plot is not None:
        show_plot(session, to, whole, viewed.plot, top, canvas)
        return
    found, made = whole.sorted_by(sort), made_of_scans([whole])
    deliver_result(session, to, Result(SCORES_OF_HEADS, found, _top=top, _made=made), canvas)


SCORES_OF_HEADS = Form[Atlas](
    "atlas",
    ATLAS_ROW,
    lambda whole, top, line: whole.rows[:top],
    lambda whole: whole.model,
    "attnviz.commands.atlas.terminal:render_atlas",
    "attnviz.commands.atlas.picture:draw",
    top=sys.maxsize,
)


# `attnviz atlas -o FILE.html`: the result of a scan as a page.


def show_page(
    session: Session, to: Destination, folder: str, whole: Atlas, sort: str | None, plot: str | None
) -> None:
    """The page of a scan, which opens on the head with the most of a score, or on two scores."""
    from attnviz.commands.atlas.page import page_of, start_of, write_page

    session.refuse("top", wrong="does nothing for html", hint="a page shows every head")
    start = start_of(whole, sort)
    heads = session.progress(read_heads(folder, whole.rows), "head")
    if plot is not None:
        x, y = two_scores(plot)
        start = replace(start, x=x, y=y)
    if to.output is None or (to.output.exists() and not to.output.is_file()):
        deliver(session, to, [(None, [page_of(whole, heads, start)])])
        return
    beside = write_page(whole, heads, to.output, start)
    session.wrote(to.output)
    if beside is not None:
        session.note(f"the heads are in {str(beside)!r}, which has to stay beside the page")
