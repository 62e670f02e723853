"""Chunks to a stream that is already open, such as standard output."""

import errno
import os
from collections.abc import Iterable
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
    for chunk in chunks:
        data = chunk.encode("utf-8") if isinstance(chunk, str) else chunk
        _told(stream, data)
    _told(stream, None)


def _told(stream: BinaryIO, data: bytes | None) -> None:
    """Write the data, or flush where there is none."""
    try:
        if data is None:
            stream.flush()
        else:
            stream.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "no space is left there" if full else os.strerror(error.errno or errno.EIO).lower()
        raise OutputError(
            f"standard output cannot be written: {why}",
            "make room, or send the output elsewhere" if full else "send the output elsewhere",
        ) from error
