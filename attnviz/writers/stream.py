"""Writing chunks to an open stream, such as standard output."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from attnviz.errors import OutputError


def write_stream(stream: BinaryIO, chunks: Iterable[str | bytes]) -> None:
    """Write chunks to a stream as they come, text as UTF-8, and flush at the end.

    A stream of lines calls this once for each line, so that every answer leaves at once.

    Raises:
        BrokenPipeError: the reader has gone (`| head -1`), which is no error to a user.
        OutputError: the stream cannot take more, for instance because the disk is full.
    """
    with as_stdout_error():
        for chunk in chunks:
            stream.write(chunk.encode("utf-8") if isinstance(chunk, str) else chunk)
        stream.flush()


@contextlib.contextmanager
def as_stdout_error() -> Iterator[None]:
    """Raise an OutputError for an error of standard output; a BrokenPipeError passes as it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:  # the error of a file, not of standard output
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "no space is left there" if full else os.strerror(error.errno or errno.EIO).lower()
        raise OutputError(
            f"standard output cannot be written: {why}",
            "make room, or send the output elsewhere" if full else "send the output elsewhere",
        ) from error
