"""Opening a file that a user named, and the errors if it cannot be read."""

import contextlib
import difflib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from attnviz.errors import InputError

LARGEST = 1 << 26
"""The most bytes that are read of one text; no model takes as many."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read bytes from, closed at the end.

    Raises:
        InputError: it cannot be opened.
    """
    with as_input_error(path):
        stream = path.open("rb")
    with stream:
        yield stream


def read_limited(stream: BinaryIO, path: Path | None) -> bytes:
    """All bytes of a file or of standard input.

    Raises:
        InputError: they are more than any model takes (a device has no end), or cannot be read.
    """
    with as_input_error(path):
        data = stream.read(LARGEST + 1)
    check_length(data, path)
    return data


def check_length(data: bytes, path: Path | None) -> None:
    """Check that these bytes are not too many.

    Raises:
        InputError: they are.
    """
    if len(data) > LARGEST:
        shown = "standard input" if path is None else repr(str(path))
        raise InputError(f"{shown} has more than {LARGEST >> 20} MB", "give a part of it")


@contextlib.contextmanager
def as_input_error(path: Path | None) -> Iterator[None]:
    """Raise an InputError in place of an operating system's error.

    Args:
        path: the file that is read; None for standard input.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name, a closed stream
        raise _sentence(path, error) from error


def _sentence(path: Path | None, error: OSError | ValueError) -> InputError:
    shown = "standard input" if path is None else repr(str(path))
    match error.errno if isinstance(error, OSError) else errno.EINVAL:
        case errno.ENOENT:
            return InputError(f"there is no file {shown}", _nearest(path))
        case errno.EISDIR:
            return InputError(f"{shown} is a folder", "give a file in it")
        case errno.EACCES | errno.EPERM:
            return InputError(
                f"there is no permission to read {shown}", "ask its owner for it, or give another"
            )
        case errno.ENAMETOOLONG:
            return InputError(f"{shown} is too long for a name", "give the path of a file")
        case code:
            why = os.strerror(code).lower() if code else str(error)
            return InputError(f"{shown} cannot be read: {why}", "give another file")


def _nearest(path: Path | None) -> str:
    """A hint: the most similar name in the same folder."""
    folder = Path() if path is None else path.parent
    try:
        names = os.listdir(folder)
    except OSError:
        return f"there is no folder {str(folder)!r} either"
    close = difflib.get_close_matches("" if path is None else path.name, names, n=1)
    return f"the nearest name is {str(folder / close[0])!r}" if close else "check the name"
