"""The one text, or the saved capture, of a command, and its source."""

import codecs
import contextlib
import difflib
import errno
import io
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.given import found, medium_of, place_of

CAPTURE_SUFFIX = ".npz"
_ADDRESS = re.compile(r"(https?|ftp|file)://\S+", re.IGNORECASE)
_NAME = re.compile(r"sample:\S+|\S+\.(txt|md|csv|jsonl?|html?|png|jpe?g|wav)", re.IGNORECASE)
STDIN = "-"
HOW = (
    f"give it in quotes, with {option('file', 'FILE')}, or through a pipe: "
    'echo "a text" | attnviz COMMAND'
)


@dataclass(frozen=True)
class TextInput:
    """A text, and a note for the user if another text may have been meant."""

    text: str
    note: str | None = None


@dataclass(frozen=True)
class Stdin:
    """Standard input, passed in: its bytes, and whether it is a terminal.

    The stream is None if the shell has closed it (`<&-`).
    """

    stream: BinaryIO | None
    is_terminal: bool


Place: TypeAlias = str | Path | BinaryIO


def read_text(
    argument: str | None,
    file: Path | None,
    stdin: Stdin,
    *,
    alone: bool = True,
    medium: bool = False,
) -> TextInput | Path:
    """Read a command's text, from an argument, a file or standard input; or a saved capture's path.

    An argument is the text itself, unless it is `-` (standard input) or ends in `.npz` (a saved
    capture). Without an argument and a file, the text is standard input. One newline at the end
    of a file or of standard input is dropped, as it comes from an editor or `echo`, and so is a
    byte order mark at the start; everything else stays exactly as it is. `alone`: it is the one
    text of a command, which may come from a file instead. `medium`: an option gives something,
    with which there may be no text.
    """
    nothing = stdin.stream is None or stdin.is_terminal
    if medium and argument is None and file is None and nothing:
        return TextInput("")
    place = find_place(argument, file, stdin)
    if isinstance(place, str):
        if place.lower().endswith(CAPTURE_SUFFIX):
            return Path(place)
        text = argument_text(place)
        check_not_blank(text, "the text")
        return TextInput(text, _doubt(place, alone=alone))
    text, origin = _read(place)
    if not medium:
        check_not_blank(text, origin)
    return TextInput(without_newline(text))


def read_file(path: Path, stdin: Stdin | None = None) -> str:
    """Read the whole text of a file; `-` is standard input, if that is given."""
    return _read(_stream(stdin) if stdin is not None and str(path) == STDIN else path)[0]


def _read(place: Path | BinaryIO) -> tuple[str, str]:
    """Read the whole text of a file or of standard input, and the name of its source."""
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
    """Find the one source of the text: the argument, a file, or standard input.

    Raises:
        UsageError: there are two places, or none.
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
    if stdin.stream is not None and not stdin.is_terminal:
        return stdin.stream
    state = "closed" if stdin.stream is None else "a terminal"
    raise InputError(f"standard input is {state}, and no text comes from there", HOW)


def without_newline(text: str) -> str:
    """A text without the one newline (or CR LF) at its end."""
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _doubt(argument: str, *, alone: bool) -> str | None:
    """A note for an argument that is also an address, or looks like the name of a file."""
    name = shlex.quote(argument)
    if _ADDRESS.fullmatch(argument):
        fetched = f"curl -sL {name}"
        meant = f"{fetched} | attnviz show -" if alone else f'"$({fetched})"'
        return f"{argument!r} is read as the text, and nothing is fetched; to read a page: {meant}"
    path = place_of(argument)
    if not os.path.isfile(path):
        missing = f"{argument!r} is read as the text: no file has this name"
        return missing if _NAME.fullmatch(argument) else None
    if medium_of(argument):  # some models read it
        return None
    meant = option("file", name) if alone else f'"$(cat {shlex.quote(path)})"'
    rows = path.lower().endswith(".jsonl") * "; attention rows have a schema in the first line"
    return f"{argument!r} is read as the text, but is also a file: did you mean {meant}?{rows}"


# Opening a file that a user named, and the errors if it cannot be read.

LARGEST = 1 << 26
"""The most bytes of one text; no model takes that many."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, perhaps a sample, to read bytes within a `with` block."""
    with as_input_error(path):
        stream = found(path).open("rb")
    with stream:
        yield stream


def read_limited(stream: BinaryIO, path: Path | None) -> bytes:
    """Read all bytes of a file or of standard input, within the limit."""
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

    `path`: the file that is read; None for standard input.
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
            wrong = f"there is no permission to read {shown}"
            return InputError(wrong, "ask its owner for it, or give another")
        case errno.ENAMETOOLONG:
            return InputError(f"{shown} is too long for a name", "give the path of a file")
        case code:
            why = os.strerror(code).lower() if code else str(error)
            return InputError(f"{shown} cannot be read: {why}", "give another file")


def _nearest(path: Path | None) -> str:
    """A hint: the most similar name in the same folder."""
    folder = Path() if path is None else path.parent
    try:
        names = os.listdir(folder if path is None else found(path).parent)
    except OSError:
        return f"there is no folder {str(folder)!r} either"
    close = difflib.get_close_matches("" if path is None else path.name, names, n=1)
    return f"the nearest name is {str(folder / close[0])!r}" if close else "check the name"


# Bytes to text: strict UTF-8, and an error for bytes that are not.

BYTE_ORDER_MARK = "\ufeff"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ZIP_MARK = b"PK\x03\x04"
LOOKED_AT = 4096
"""The first bytes, which contain a zero byte if a file is not text."""


def decode(data: bytes, origin: str, path: str | None = None) -> str:
    """Decode UTF-8 bytes exactly.

    Args:
        data: all the bytes, or those of one line.
        origin: their name at the beginning of a sentence: `'notes.txt'`, `line 3`.
        path: the file they come from, for the command that converts it.

    Raises:
        InputError: they are not UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
        before = data[:at].count(b"\n")
        line = f", line {before + 1}" if b"\n" in data[:-1] else ""
        where = f"byte {data[at]:#04x} at offset {at}{line}"
        raise InputError(f"{origin} is not UTF-8 ({where})", _remedy(data, path)) from error


def argument_text(argument: str) -> str:
    """An argument of the command line as a text.

    Python passes bytes that it cannot decode as lone surrogates; they are decoded here.

    Raises:
        InputError: the bytes were not UTF-8, or there is a lone surrogate from elsewhere.
    """
    try:
        argument.encode("utf-8")
        return argument
    except UnicodeEncodeError as error:
        try:
            data = os.fsencode(argument)
        except UnicodeEncodeError:
            raise _half_a_character(argument, error.start) from error
    return decode(data, "the text")


def check_encodable(text: str) -> None:
    """Check that the text can be written as UTF-8.

    Raises:
        InputError: the text has a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _half_a_character(text, error.start) from None


def _half_a_character(text: str, at: int) -> InputError:
    code = f"U+{ord(text[at]):04X}"
    return InputError(f"the text holds half a character ({code} at character {at})", "leave it out")


def check_not_blank(text: str, origin: str) -> None:
    """Check that there is something to show.

    Raises:
        InputError: the text is empty, or consists of spaces.
    """
    if not text.strip():
        raise InputError(f"{origin} is {'blank' if text else 'empty'}", "give at least one word")


def _remedy(data: bytes, path: str | None) -> str:
    if data.startswith(ZIP_MARK) and (path is None or path.lower().endswith(".npz")):
        return "if it is a saved capture, give it as the argument itself: attnviz show FILE.npz"
    if b"\0" in data[:LOOKED_AT] and not data.startswith(UTF16_MARKS):
        return "it is not text, but perhaps an archive, a picture or a model; give a text file"
    code = "utf-16" if data.startswith(UTF16_MARKS) else "latin1"
    name = "" if path is None else f" {shlex.quote(path)}"
    return f"convert it first, for instance with: iconv -f {code} -t utf-8{name}"


# A stream in which each line is a separate text.


def read_lines(
    argument: str | None, file: Path | None, stdin: Stdin, *, hint: str = "give a text on each line"
) -> Iterator[tuple[int, str | InputError]]:
    """Yield the lines of the argument, the file or standard input: a number from 1 and a text each.

    A line is yielded as soon as it arrives. Lines end in LF or CR LF, the last one optionally.
    For a line that is blank or not UTF-8 the error is yielded, and the next lines follow.
    `hint`: the remedy if there is no line.

    Raises:
        UsageError: there are two places to read from, or none, or a saved capture.
    """
    place = find_place(argument, file, stdin)
    if isinstance(place, str):
        if place.lower().endswith(CAPTURE_SUFFIX):
            raise UsageError("a saved capture has no lines", f"leave {option('lines')} out")
        return _texts(io.BytesIO(argument_text(place).encode("utf-8")), "the text", hint)
    if isinstance(place, Path):
        return _of_file(place, hint)
    return _texts(_arriving(place, None), "standard input", hint)


def _of_file(path: Path, hint: str) -> Iterator[tuple[int, str | InputError]]:
    with opened(path) as stream:
        yield from _texts(_arriving(stream, path), repr(str(path)), hint)


def _arriving(stream: BinaryIO, path: Path | None) -> Iterator[bytes]:
    while True:
        with as_input_error(path):
            line = stream.readline(LARGEST + 1)
        check_length(line, path)
        if not line:
            return
        yield line


def _texts(lines: Iterable[bytes], place: str, hint: str) -> Iterator[tuple[int, str | InputError]]:
    number = 0
    for number, data in enumerate(lines, start=1):
        origin = f"line {number}"
        try:
            text = without_newline(decode(data, origin))
            if number == 1:
                text = text.removeprefix(BYTE_ORDER_MARK)
            check_not_blank(text, origin)
        except InputError as error:
            yield number, error
        else:
            yield number, text
    if not number:
        raise InputError(f"{place} is empty", hint)
