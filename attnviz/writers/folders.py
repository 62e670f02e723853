"""Writing a folder completely or not at all: a temporary folder, then a rename."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from attnviz.errors import OutputError
from attnviz.kit.write import ELSEWHERE, as_output_error, check_folder, make_folder


@contextlib.contextmanager
def new_folder(path: Path, own: Callable[[str], bool]) -> Iterator[Path]:
    """A folder to write into, which takes the place of `path` at the end.

    If anything happens before (an error, Ctrl-C), it is gone, and an old one stays as it was.

    Args:
        path: the folder. One that is there is replaced, if it holds nothing but own files.
        own: whether a file of this name may be lost.

    Raises:
        OutputError: the folder cannot be written, or holds something else.
    """
    check_replaced(path, own)
    temporary = _beside(path)
    make_folder(temporary)
    try:
        yield temporary
        with as_output_error(path):
            _take_place(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_replaced(path: Path, own: Callable[[str], bool]) -> None:
    """Check early that a folder can be written, and that nothing of a user's is lost by it.

    Raises:
        OutputError: it cannot, or holds something else.
    """
    check_folder(path)
    if not os.path.lexists(path):
        return
    with as_output_error(path):
        others = [] if path.is_symlink() else [each for each in os.listdir(path) if not own(each)]
    if path.is_symlink() or others:
        what = "is a link" if path.is_symlink() else f"holds other files, such as {others[0]!r}"
        raise OutputError(f"{str(path)!r} {what}", "move it away, or " + ELSEWHERE)


def _beside(path: Path) -> Path:
    return path.with_name(f".attnviz-{secrets.token_hex(8)}.tmp")


def _take_place(new: Path, path: Path) -> None:
    """Give the new folder its name; the old one goes only when that is done."""
    old = _beside(path)
    if path.exists():
        path.rename(old)
    try:
        new.rename(path)
    except BaseException:
        if old.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
