"""Chunks to a stream that is already open."""

import errno
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnviz.errors import OutputError
from attnviz.kit.write import write_stream


class Recorder(io.BytesIO):
    """A stream that remembers when it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed_at: list[int] = []

    def flush(self) -> None:
        self.flushed_at.append(self.tell())


class Broken(io.BytesIO):
    """A stream whose reader has gone, or whose disk is full."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code

    def write(self, data: object) -> int:
        raise OSError(self.code, "no")


def test_text_is_written_as_utf8_and_bytes_as_they_are() -> None:
    stream = io.BytesIO()
    write_stream(stream, ["楚\n", b"\xff"])
    assert stream.getvalue() == "楚\n".encode() + b"\xff"


def test_each_answer_is_flushed_when_it_is_complete() -> None:
    stream = Recorder()
    write_stream(stream, ["one\n", "two\n"])
    write_stream(stream, ["three\n"])
    assert stream.flushed_at == [8, 14]


def test_no_more_is_made_when_the_reader_has_gone() -> None:
    made = []

    def chunks() -> Iterator[str]:
        for number in range(3):
            made.append(number)
            yield "x"

    with pytest.raises(BrokenPipeError):
        write_stream(Broken(errno.EPIPE), chunks())
    assert made == [0]


def test_a_full_disk_is_told() -> None:
    with pytest.raises(OutputError, match="no space is left there; make room"):
        write_stream(Broken(errno.ENOSPC), ["x"])


def test_a_disk_that_is_full_only_when_flushed_is_told() -> None:
    with Path("/dev/full").open("wb") as stream:
        with pytest.raises(OutputError, match="no space is left"):
            write_stream(stream, ["x"])
        with pytest.raises(OSError, match="No space left"):
            stream.close()


def test_any_other_error_is_told_in_the_words_of_the_system() -> None:
    with pytest.raises(OutputError, match="standard output cannot be written: input/output error"):
        write_stream(Broken(errno.EIO), ["x"])
