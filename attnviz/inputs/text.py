"""The one text, or the saved capture, of a command, and where it comes from."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.decoding import BYTE_ORDER_MARK, argument_text, check_not_blank, decode
from attnviz.inputs.files import opened, read_limited

CAPTURE_SUFFIX = ".npz"
_ADDRESS = re.compile(r"(https?|ftp|file)://\S+", re.IGNORECASE)
STDIN = "-"
HOW = (
    f"give it in quotes, with {option('file', 'FILE')}, or through a pipe: "
    'echo "a text" | attnviz show'
)


@dataclass(frozen=True)
class Given:
    """A text, and a note for the user where another text may have been meant."""

    text: str
    note: str | None = None


@dataclass(frozen=True)
class SavedCapture:
    """An argument that names a saved capture, which has not been read yet."""

    path: Path


@dataclass(frozen=True)
class Stdin:
    """Standard input, passed in: its bytes, and whether it is a terminal.

    The stream is None where the shell has closed it (`<&-`).
    """

    stream: BinaryIO | None
    is_terminal: bool


Place: TypeAlias = str | Path | BinaryIO


def read_text(
    argument: str | None, file: Path | None, stdin: Stdin, *, alone: bool = True
) -> Given | SavedCapture:
    """The input of a command: a text from the argument, a file or standard input, or a capture.

    An argument is the text itself, unless it is `-` (standard input) or ends in `.npz` (a saved
    capture). Without an argument and a file, the text is standard input. One newline at the end
    of a file or of standard input is dropped, as it comes from an editor or `echo`, and so is a
    byte order mark at the start; everything else stays exactly as it is. `alone`: it is the one
    text of a command, which may come from a file instead.

    Raises:
        UsageError: there are two texts, or none.
        InputError: the text cannot be read, is not UTF-8, or is blank.
    """
    place = find_place(argument, file, stdin)
    if isinstance(place, str):
        if place.lower().endswith(CAPTURE_SUFFIX):
            return SavedCapture(Path(place))
        text = argument_text(place)
        check_not_blank(text, "the text")
        return Given(text, _doubt(place, alone=alone))
    text, origin = _read(place)
    check_not_blank(text, origin)
    return Given(without_newline(text))


def read_file(path: Path, stdin: Stdin | None = None) -> str:
    """The whole text of a file; `-` is standard input, where that is given.

    Raises:
        InputError: the file cannot be read, or is not UTF-8.
    """
    return _read(_stream(stdin) if stdin is not None and str(path) == STDIN else path)[0]


def _read(place: Path | BinaryIO) -> tuple[str, str]:
    """The whole text of a file or of standard input, and the name of its source."""
    if isinstance(place, Path):
        origin = repr(str(place))
        with opened(place) as stream:
            data = read_limited(stream, place)
        text = decode(data, origin, path=str(place))
    else:
        origin = "standard input"
        text = decode(read_limited(place, None), origin)
    return text.removeprefix(BYTE_ORDER_MARK), origin


def find_place(argument: str | None, file: Path | None, stdin: Stdin) -> Place:
    """The one place that the text is to come from: the argument, a file, or standard input.

    Raises:
        UsageError: there are two places, or none.
        InputError: `-` stands for standard input, which is a terminal or closed.
    """
    if argument is not None and file is not None:
        raise UsageError(
            f"there are two texts: an argument and {option('file')}", "give one of them"
        )
    if file is not None and str(file) != STDIN:
        return file
    if argument is not None and argument != STDIN:
        return argument
    if argument is None and file is None and (stdin.stream is None or stdin.is_terminal):
        raise UsageError("there is no text", HOW)
    return _stream(stdin)


def _stream(stdin: Stdin) -> BinaryIO:
    """Standard input, if it is there to be read.

    Raises:
        InputError: it is a terminal, or closed.
    """
    if stdin.stream is not None and not stdin.is_terminal:
        return stdin.stream
    state = "closed" if stdin.stream is None else "a terminal"
    raise InputError(f"standard input is {state}, and no text comes from there", HOW)


def without_newline(text: str) -> str:
    """A text without the one newline (or CR LF) at its end."""
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _doubt(argument: str, *, alone: bool) -> str | None:
    """A note for an argument that is also an address, or the name of a file."""
    name = shlex.quote(argument)
    if _ADDRESS.fullmatch(argument):
        fetched = f"curl -sL {name}"
        meant = f"{fetched} | attnviz show -" if alone else f'"$({fetched})"'
        return f"{argument!r} is taken as the text, and nothing is fetched; to read a page: {meant}"
    if not os.path.isfile(argument):
        return None
    meant = option("file", name) if alone else f'"$(cat {name})"'
    return f"{argument!r} is taken as the text, and is a file too: did you mean {meant}?"
