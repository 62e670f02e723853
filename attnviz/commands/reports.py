"""Commands whose answer is a table, rows or a picture: which of them, and a picture's way out."""

from pathlib import Path

import typer

from attnviz.commands import options as o
from attnviz.commands.deliver import check_output
from attnviz.commands.session import Session
from attnviz.errors import UsageError
from attnviz.writers.atomic import write_bytes
from attnviz.writers.formats import Format, choose_format
from attnviz.writers.stream import write_stream


def report_format(
    session: Session, context: typer.Context, output: Path | None, form: str | None
) -> Format:
    """The format that was asked for, seen to fit before anything is run.

    Raises:
        UsageError: a format of captures or pages, or an option for pictures without one.
        OutputError: the file cannot be written.
    """
    chosen = choose_format(output, form, session.environment.stdout.isatty())
    if chosen.name in ("npz", "html"):
        raise UsageError(f"this command does not write {chosen.name}", "use json, jsonl or csv")
    check_output(output, chosen)
    for option in o.given(context, ("cmap", "dpi")) if not chosen.picture else ():
        raise UsageError(f"{option} is for pictures", "leave it out, or add -o FILE.png")
    return chosen


def deliver_bytes(session: Session, content: bytes, output: Path | None) -> None:
    """Write a picture to a file, or to stdout.

    Raises:
        OutputError: the file or the stream cannot take it.
    """
    if output is None:
        write_stream(session.environment.stdout.buffer, [content])
    else:
        write_bytes(output, [content])
