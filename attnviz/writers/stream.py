"""Chunks to a stream that is already open, such as standard output."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from attnviz.errors import OutputError


def write_stream(stream: BinaryIO, chunks: Iterable[str | bytes]) -> None:
    """Write chunks to a stream as they come, text as UTF-8, and flush at the end.

    With `--lines` this is called once for each line, so that every answer leaves as
    soon as it is done.

    Raises:
        BrokenPipeError: the reader has gone (`| head -1`); no error to a user.
        OutputError: the stream cannot take more, for instance as the disk is full.
    """
    with told():
        for chunk in chunks:
            stream.write(chunk.encode("utf-8") if isinstance(chunk, str) else chunk)
        stream.flush()


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Tell an error of standard output as a sentence; a closed pipe stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:  # of some file, so none of ours to tell
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "no space is left there" if full else os.strerror(error.errno or errno.EIO).lower()
        raise OutputError(
            f"standard output cannot be written: {why}",
            "make room, or send the output elsewhere" if full else "send the output elsewhere",
        ) from error
