"""What `attnviz atlas` shows besides its table: one head, two scores, several scans, a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnviz.analyses.atlas import one_head, scatter_of, two_scores
from attnviz.analyses.development import develop
from attnviz.data.atlas import SCORES, Atlas
from attnviz.draw.titles import amount, model_notes
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver, deliver_result
from attnviz.kit.lines import say
from attnviz.kit.option import option_field
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.records.call import Asked, asked
from attnviz.records.rows import made_to_dict
from attnviz.renderers.rows.atlas import DevelopmentRow, HeadPartRow, ScatterRow
from attnviz.scanning.tables import read_atlas, read_head, read_heads

if TYPE_CHECKING:
    from attnviz.draw.picture.canvas import Drawn


@dataclass(frozen=True)
class Viewed:
    """What of the scan is shown."""

    head: str | None = option_field(
        g.HEADS,
        None,
        "--head",
        "-H",
        metavar="HEAD",
        help="Show all that was found of this head: L1H2 or 1.2. With several folders: how its "
        "scores develop.",
    )
    plot: str | None = option_field(
        g.LOOK,
        None,
        "--plot",
        metavar="X,Y",
        help="Show two scores of every head against each other, as in previous,induction, and "
        "name the outliers. With -o FILE.png: a scatter plot.",
    )
    export: Literal["headvis"] | None = option_field(
        g.OUTPUT,
        None,
        "--export",
        help="Write the data tree that HeadVis and Neuronpedia's loaders read into the folder -o.",
    )


def check_views(session: Session, folders: Sequence[str], viewed: Viewed) -> None:
    """See that what was asked for fits together.

    Raises:
        UsageError: it does not.
    """
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
    """The result of a scan, with a line on stderr about layers without attention.

    Raises:
        InputError: there is none, or it is damaged.
    """
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
    from attnviz.renderers.terminal import atlas_head
    from attnviz.writers.atlas import head_chunks, head_rows

    if to.format.picture or to.format.name == "html":
        raise UsageError(
            f"{option('head', name)} has no {to.format.name}", f"leave {option('head')} out"
        )
    whole = read_scan(session, folder)
    found = read_head(folder, whole.row(one_head(whole, name)))
    if to.format.name == "json":
        deliver(session, to, [(None, head_chunks(found, made_of_scans([whole]), top))])
        return
    result = Result(
        "atlas",
        found,
        str(found.head),
        (HeadPartRow,),
        lambda: head_rows(found, top),
        lambda display: atlas_head.render_head(whole, found, top, display),
    )
    deliver_result(session, to, result)


def show_plot(
    session: Session, to: Destination, whole: Atlas, names: str, top: int | None, canvas: g.Canvas
) -> None:
    """Two scores of every head.

    Raises:
        UsageError: these are not two scores.
        OutputError: the file or the stream cannot take it.
    """
    from attnviz.renderers.terminal import scatter as table

    scatter = scatter_of(whole, *two_scores(names))

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import scatter as picture

        return picture.draw(whole, scatter, top=top, **look)

    result = Result(
        "atlas",
        scatter,
        f"{scatter.x} and {scatter.y}",
        (ScatterRow,),
        scatter.records,
        lambda display: table.render(whole, scatter, top, display),
        draw,
        _made=made_of_scans([whole]),
    )
    deliver_result(session, to, result, canvas)


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
    from attnviz.renderers.terminal import development as table

    if to.format.name == "html":
        raise UsageError("a page is of one scan", "give one folder")
    atlases = [read_scan(session, folder) for folder in folders]
    found = develop(folders, atlases)
    heads = found.heads if head is None else (one_head(atlases[0], head),)
    found = found.only(heads, SCORES if score is None else (score,))

    def draw(**look: Any) -> "Drawn":
        from attnviz.renderers.picture import development as picture

        return picture.draw(found, top=top, **look)

    result = Result(
        "atlas",
        found,
        amount(len(folders), "scan"),
        (DevelopmentRow,),
        lambda: list(found.records()),
        lambda display: table.render(found, top, display),
        draw,
        _made=made_of_scans(atlases),
    )
    deliver_result(session, to, result, canvas)


def export_tree(session: Session, folder: str, tree: Path | None) -> None:
    """The scan as a tree for HeadVis.

    Raises:
        UsageError: no folder is given for the tree.
        InputError: the result is damaged.
        OutputError: the tree cannot be written.
    """
    from attnviz.writers.headvis import write_headvis

    if tree is None:
        raise UsageError(
            f"{option('export', 'headvis')} writes many files",
            f"name their folder: {option('output', 'TREE')}",
        )
    whole = read_scan(session, folder)
    written = write_headvis(tree, whole, read_heads(folder, whole.rows))
    session.wrote(written)
