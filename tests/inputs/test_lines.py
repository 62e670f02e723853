"""A stream of lines: every line a text of its own, as soon as it is there."""

import errno
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import InputError, UsageError
from attnviz.inputs.text import Stdin, read_lines


def lines_of(data: bytes) -> list[tuple[int, str]]:
    """The lines of these bytes on standard input; an error as its sentence."""
    stdin = Stdin(io.BytesIO(data), is_terminal=False)
    return [(number, str(found)) for number, found in read_lines("-", None, stdin)]


NOTHING = Stdin(io.BytesIO(), is_terminal=False)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\n", [(1, "one"), (2, "two")]),
        (b"one\ntwo", [(1, "one"), (2, "two")]),  # the last line need not end
        (b"one\r\ntwo\r\n", [(1, "one"), (2, "two")]),
        (b" one \n", [(1, " one ")]),  # spaces are text
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", [(1, "one"), (2, "\ufefftwo")]),
        ("a\u2028b\x0b\x85c\rd\n".encode(), [(1, "a\u2028b\x0b\x85c\rd")]),  # only LF ends a line
    ],
)
def test_the_lines_are(data: bytes, expected: list[tuple[int, str]]) -> None:
    assert lines_of(data) == expected


def test_a_stream_without_a_line_is_an_error() -> None:
    with pytest.raises(InputError, match="is empty"):
        lines_of(b"")


def test_a_bad_line_is_an_error_of_its_own_and_the_rest_go_on() -> None:
    assert lines_of(b"one\ncaf\xe9\n\n \t\nfive") == [
        (1, "one"),
        (
            2,
            "line 2 is not UTF-8 (byte 0xe9 at offset 3); "
            "convert it first, for instance with: iconv -f latin1 -t utf-8.",
        ),
        (3, "line 3 is empty; give at least one word."),
        (4, "line 4 is blank; give at least one word."),
        (5, "five"),
    ]


def test_a_line_comes_before_the_next_one_is_there() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb") as stream, os.fdopen(writable, "wb", buffering=0) as source:
        lines = read_lines(None, None, Stdin(stream, is_terminal=False))
        source.write(b"one\ntw")
        assert next(lines) == (1, "one")
        source.write(b"o\n")
        assert next(lines) == (2, "two")


def test_lines_come_from_a_file_or_the_argument_too(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\n\xff\nthree")
    found = list(read_lines(None, file, NOTHING))
    assert [number for number, _ in found] == [1, 2, 3]
    assert (found[0][1], found[2][1]) == ("one", "three")
    assert isinstance(found[1][1], InputError)
    assert list(read_lines("one\ntwo", None, NOTHING)) == [(1, "one"), (2, "two")]


@pytest.mark.parametrize(
    ("argument", "file", "is_terminal", "sentence"),
    [
        ("c.npz", None, False, "a saved capture has no lines; leave lines out"),
        ("a", "b", False, "there are two texts"),
        (None, None, True, "there is no text"),
    ],
)
def test_what_has_no_lines_is_told_at_once(
    argument: str | None, file: str | None, is_terminal: bool, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_lines(argument, None if file is None else Path(file), Stdin(io.BytesIO(), is_terminal))


def test_a_missing_file_is_told_when_its_lines_are_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file '.*none.txt'"):
        next(read_lines(None, tmp_path / "none.txt", NOTHING))


def test_a_disk_that_fails_in_the_middle_is_told() -> None:
    class Failing(io.BytesIO):
        def readline(self, *_: object) -> bytes:
            raise OSError(errno.EIO, "no")

    with pytest.raises(InputError, match="standard input cannot be read: input/output error"):
        next(read_lines("-", None, Stdin(Failing(), is_terminal=False)))


LINE = st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))


@given(st.lists(LINE, min_size=1, max_size=5))
def test_every_line_comes_once_with_its_number(lines: list[bytes]) -> None:
    found = lines_of(b"".join(line + b"\n" for line in lines))
    assert [number for number, _ in found] == list(range(1, len(lines) + 1))
    for (number, text), line in zip(found, lines, strict=True):
        exact = line.removesuffix(b"\r")
        exact = exact.removeprefix(b"\xef\xbb\xbf") if number == 1 else exact
        assert text.encode() == exact or text.startswith(f"line {number} is ")
