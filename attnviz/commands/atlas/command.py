"""`attnviz atlas`: the result of a scan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from attnviz.commands.atlas.rows import DEVELOPMENT, ONE_HEAD, of_scatter
from attnviz.commands.atlas.views import develop, scatter_of, two_scores
from attnviz.corpus.result import ALL_HEADS, ScanAtlas, read_heads, read_scan
from attnviz.corpus.tables import Atlas, MeanOver, ScoreName
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver, deliver_result, destination_of
from attnviz.kit.lines import say
from attnviz.kit.option import Arguments, Call, command_of, feature, positional
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.kit.values import FilePath, path_of
from attnviz.records.rows import made_to_dict
from attnviz.records.tokens import CallOptions, current_call


def _views(call: Arguments) -> None:
    """Refuse options that do nothing beside a view of the scan."""
    if call.any_of("export"):
        wrong = f"does nothing for {option('export', call['export'])}"
        call.refuse("head plot sort top format cmap dpi partial", wrong)
        call.refuse("mean", wrong, "the tree has both means")
    if len(call.values.get("folders", ())) > 1:
        call.refuse("plot export partial", "is for one scan", "give one folder")
        return
    if call.any_of("head"):
        call.refuse("plot sort", f"does nothing for {option('head', call['head'])}")
    elif call.any_of("plot"):
        call.refuse("sort", f"does nothing for {option('plot', call['plot'])}")


Mean: TypeAlias = Annotated[
    MeanOver,
    g.look_option(
        "--mean",
        help="documents: a score is the mean over the documents, each of which is a mean over its "
        "queries. tokens: the mean over all queries, without a standard error.",
    ),
]
Partial: TypeAlias = Annotated[
    bool,
    g.look_option(
        "--partial",
        help="Show what is counted of a scan that is not finished: scores and histograms.",
    ),
]


@feature(_views)
def atlas(folder: FilePath, *, mean: Mean = "documents", partial: Partial = False) -> ScanAtlas:
    """The result of a scan.

    >>> with open("words.txt", "w") as file:
    ...     print("the cat sat on the mat and the cat ran", file=file)
    >>> made = attnviz.scan("words.txt", output="scanned", workers=1, heads="L1H2")
    >>> attnviz.atlas("scanned").rows[0]["head"]
    2

    Args:
        folder: what `attnviz.scan` wrote, or its URL.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: it holds no finished scan.
    """
    return read_scan(path_of("folder", folder), mean, partial=partial)


EXAMPLES = """
attnviz atlas scanned
attnviz atlas scanned --sort induction --top 5
attnviz atlas scanned --head L1H2
attnviz atlas scanned --mean tokens
attnviz atlas scanned -o atlas.png
attnviz atlas scanned -o atlas.html
attnviz atlas scanned --plot previous,induction -o plot.png
attnviz atlas step-100 step-400 step-1600 -o development.png
attnviz atlas scanned --export headvis -o tree
"""
SHORT_HELP = "head sort top mean plot format output quiet"


@dataclass(frozen=True)
class AtlasView:
    """The view of a scan."""

    sort: Annotated[
        ScoreName | None,
        g.look_option(
            "--sort",
            help="Sort by this score, largest first. Default: by layer and head. With several "
            "folders: show this score only.",
        ),
    ] = None
    top: Annotated[
        int | None,
        g.top_option(
            "Show only the first K heads; of one head, K tokens of each side and K windows. In a "
            "plot: name K heads at most."
        ),
    ] = None
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


@command_of(atlas, "folders mean view partial")
def command_line(
    session: Session,
    call: Call[ScanAtlas],
    *,
    folders: Annotated[
        list[str],
        positional("FOLDER", "The folder of a scan; several: of one model's checkpoints."),
    ],
    view: AtlasView,
    output: g.PageOutput,
) -> None:
    """Show what a scan found: every head's scores, the means over documents or tokens."""
    if view.export is not None:
        _export_tree(session, call, folders[0], output.output)
        return
    to = destination_of(session, output)
    form, several = to.format, len(folders) > 1
    if several and form.name == "html":
        raise UsageError("a page is of one scan", "give one folder")
    if view.head is not None and not several and (form.picture or form.name == "html"):
        hint = f"leave {option('head')} out"
        raise UsageError(f"{option('head', view.head)} has no {form.name}", hint)
    scans = [_read(session, call, folder) for folder in folders]
    if form.name == "html":
        _show_page(session, to, scans[0].record, view)
        return
    result = _result(scans, view, in_full=form.name == "txt")
    deliver_result(session, to, replace(result, _made=_made_of(scans)))


def _result(scans: Sequence[ScanAtlas], view: AtlasView, *, in_full: bool) -> Result[Any]:
    """The result of a view; `in_full`: the caller cuts it to the `top` parts."""
    whole, top = scans[0].record, view.top
    if len(scans) > 1:
        atlases = [scan.record for scan in scans]
        return Result(DEVELOPMENT, develop(atlases, view.head, view.sort), _top=top)
    if view.head is not None:
        head = scans[0].head(view.head)
        return Result(ONE_HEAD, head if in_full else head.first(top), _top=top)
    if view.plot is not None:
        return of_scatter(scatter_of(whole, *two_scores(view.plot)), top)
    return Result(ALL_HEADS, whole.sorted_by(view.sort) if view.sort else whole, _top=top)


def _read(session: Session, call: Call[ScanAtlas], folder: str) -> ScanAtlas:
    """Read the result of a scan, with a line on stderr about layers without attention."""
    scan = call(folder=folder)
    say(session, scan.notes)
    return scan


def _made_of(scans: Sequence[ScanAtlas]) -> Mapping[str, Any]:
    """The facts of how a view of one scan, or of several, was made."""
    options, made = dict(current_call().options), [scan.record.made for scan in scans]
    options.pop("partial", None)  # of a scan that is finished, it is all; of another, it is in made
    if len(scans) == 1:
        return {**made[0], "options": {**made[0].get("options", {}), **options}}
    models = [model for scan in scans for model in scan.models]
    return made_to_dict((), models, CallOptions({**options, "scans": list(map(dict, made))}))


def _export_tree(session: Session, call: Call[ScanAtlas], folder: str, tree: Path | None) -> None:
    """The scan as a tree for HeadVis."""
    from attnviz.commands.atlas.headvis import write_headvis

    if tree is None:
        raise UsageError(
            f"{option('export', 'headvis')} writes many files",
            f"name their folder: {option('output', 'TREE')}",
        )
    whole = _read(session, call, folder).record
    written = write_headvis(tree, whole, read_heads(whole))
    session.note(f"{amount(len(whole.rows), 'head')} for HeadVis in {str(written)!r}")


def _show_page(session: Session, to: Destination, whole: Atlas, view: AtlasView) -> None:
    """Show the page of a scan, opened on the head with the most of a score, or on two scores."""
    from attnviz.commands.atlas.page import page_of, start_of, write_page

    session.refuse("top", wrong="does nothing for html", hint="a page shows every head")
    start, heads = start_of(whole, view.sort), session.progress(read_heads(whole), "head")
    if view.plot is not None:
        x, y = two_scores(view.plot)
        start = replace(start, x=x, y=y)
    if to.output is None or (to.output.exists() and not to.output.is_file()):
        deliver(session, to, [(None, [page_of(whole, heads, start)])])
        return
    beside = write_page(whole, heads, to.output, start)
    session.wrote(to.output)
    if beside is not None:
        session.note(f"the heads are in {str(beside)!r}, which has to stay beside the page")
