"""How far many runs of a model have come."""

from collections.abc import Iterator
from contextlib import contextmanager

from attnviz.commands.session import Session
from attnviz.runs.interventions import Progress


@contextmanager
def progress(session: Session, doing: str) -> Iterator[Progress | None]:
    """A bar on stderr, where that is a terminal; None where nobody would see it."""
    if session.quiet or not session.environment.stderr.isatty():
        yield None
        return
    from rich.progress import Progress as Bar

    with Bar(console=session.consoles.err, transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
