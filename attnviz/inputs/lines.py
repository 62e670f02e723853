"""`--lines`: a stream in which each line is a text of its own."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from attnviz.errors import InputError, UsageError
from attnviz.inputs.decoding import BYTE_ORDER_MARK, argument_text, check_not_blank, decode
from attnviz.inputs.files import opened, told
from attnviz.inputs.text import CAPTURE_SUFFIX, Stdin, find_place, without_newline


def read_lines(
    argument: str | None, file: Path | None, stdin: Stdin
) -> Iterator[tuple[int, str | InputError]]:
    """The lines of the argument, the file or standard input: each a number from 1 and a text.

    A line comes as soon as it has arrived. Lines end in LF or CR LF; the last one need
    not. A line that is blank or not UTF-8 comes as the error that it is, and the rest go on.

    Raises:
        UsageError: two places to read from, none, or a saved capture.
        InputError: standard input is a terminal or closed; when iterated, a file that
            cannot be read.
    """
    place = find_place(argument, file, stdin)
    if isinstance(place, str):
        if place.lower().endswith(CAPTURE_SUFFIX):
            raise UsageError("a saved capture has no lines", "leave --lines out")
        return _texts(io.BytesIO(argument_text(place).encode("utf-8")))
    if isinstance(place, Path):
        return _of_file(place)
    return _texts(_arriving(place, None))


def _of_file(path: Path) -> Iterator[tuple[int, str | InputError]]:
    with opened(path) as stream:
        yield from _texts(_arriving(stream, path))


def _arriving(stream: BinaryIO, path: Path | None) -> Iterator[bytes]:
    """The lines of a stream, each as soon as it is there."""
    while True:
        with told(path):
            line = stream.readline()
        if not line:
            return
        yield line


def _texts(lines: Iterable[bytes]) -> Iterator[tuple[int, str | InputError]]:
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
