"""`attnviz atlas -o FILE.html`: the result of a scan as a page."""

from dataclasses import replace

from attnviz.analyses.atlas import two_scores
from attnviz.data.atlas import Atlas
from attnviz.kit.deliver import Destination, deliver
from attnviz.kit.session import Session
from attnviz.scanning.tables import read_heads


def show_page(
    session: Session,
    to: Destination,
    folder: str,
    whole: Atlas,
    sort: str | None,
    plot: str | None,
) -> None:
    """The page of a scan, which opens on the head with the most of a score, or on two scores.

    Raises:
        UsageError: these are not two scores, or the page is too large for a stream.
        InputError: the result is damaged.
        OutputError: a file cannot be written.
    """
    from attnviz.scanning.webpage import page_of, start_of, write_page

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
