"""A picture's bytes to where they were asked to go."""

from pathlib import Path

from attnviz.commands.session import Session
from attnviz.writers.atomic import write_bytes
from attnviz.writers.stream import write_stream


def deliver_bytes(session: Session, content: bytes, output: Path | None) -> None:
    """Write them to a file, or to stdout.

    Raises:
        OutputError: the file or the stream cannot take them.
    """
    if output is None:
        write_stream(session.environment.stdout.buffer, [content])
    else:
        write_bytes(output, [content])
