"""A stream in which each line is a text of its own."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.decoding import BYTE_ORDER_MARK, argument_text, check_not_blank, decode
from attnviz.inputs.files import LARGEST, as_input_error, check_length, opened
from attnviz.inputs.text import CAPTURE_SUFFIX, Stdin, find_place, without_newline


def read_lines(
    argument: str | None, file: Path | None, stdin: Stdin
) -> Iterator[tuple[int, str | InputError]]:
    """The lines of the argument, the file or standard input: each a number from 1 and a text.

    A line is yielded as soon as it arrives. Lines end in LF or CR LF, the last one optionally.
    For a line that is blank or not UTF-8 the error is yielded, and the next lines follow.

    Raises:
        UsageError: there are two places to read from, or none, or a saved capture.
        InputError: standard input is a terminal or closed; during iteration, the file cannot
            be read, or holds no line.
    """
    place = find_place(argument, file, stdin)
    if isinstance(place, str):
        if place.lower().endswith(CAPTURE_SUFFIX):
            raise UsageError("a saved capture has no lines", f"leave {option('lines')} out")
        return _texts(io.BytesIO(argument_text(place).encode("utf-8")), "the text")
    if isinstance(place, Path):
        return _of_file(place)
    return _texts(_arriving(place, None), "standard input")


def _of_file(path: Path) -> Iterator[tuple[int, str | InputError]]:
    with opened(path) as stream:
        yield from _texts(_arriving(stream, path), repr(str(path)))


def _arriving(stream: BinaryIO, path: Path | None) -> Iterator[bytes]:
    """The lines of a stream, each as soon as it arrives."""
    while True:
        with as_input_error(path):
            line = stream.readline(LARGEST + 1)
        check_length(line, path)
        if not line:
            return
        yield line


def _texts(lines: Iterable[bytes], place: str) -> Iterator[tuple[int, str | InputError]]:
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
        raise InputError(f"{place} is empty", "give a text on each line")
