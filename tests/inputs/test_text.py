"""Where the text comes from, and what is said when it cannot be used."""

import errno
import io
import os
import shlex
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import AttnvizError, InputError, UsageError, option
from attnviz.inputs.text import Stdin, TextInput, read_text


def piped(data: bytes = b"") -> Stdin:
    return Stdin(io.BytesIO(data), is_terminal=False)


class Untouched(io.BytesIO):
    """A stream that nobody may read."""

    def read(self, *_: object) -> bytes:
        raise AssertionError("standard input was read")


TERMINAL = Stdin(Untouched(), is_terminal=True)
CLOSED = Stdin(None, is_terminal=False)
UNREAD = Stdin(Untouched(), is_terminal=False)


@pytest.mark.parametrize(
    ("argument", "stdin", "expected"),
    [
        ("a fluffy creature", UNREAD, "a fluffy creature"),  # a pipe is not read beside it
        ("a\n", TERMINAL, "a\n"),  # an argument is exactly the text
        ("-", piped(b"one\ntwo\n"), "one\ntwo"),  # one newline at the end goes
        (None, piped(b"one\n\n"), "one\n"),
        (None, piped(b"one\r\n"), "one"),
        (None, piped(b"one\r\ntwo"), "one\r\ntwo"),  # and none elsewhere
        (None, piped(b"\xef\xbb\xbfone"), "one"),  # a byte order mark goes too
        (None, piped("一\ufeff".encode()), "一\ufeff"),  # at the start only
        ("--file", UNREAD, "--file"),
        ("\udcc3\udca9", UNREAD, "é"),  # UTF-8 in a locale that is not
        ("\x1b[31m\x00", UNREAD, "\x1b[31m\x00"),  # text from outside is data
    ],
)
def test_the_text_is(argument: str | None, stdin: Stdin, expected: str) -> None:
    assert read_text(argument, None, stdin) == TextInput(expected)


def test_a_file_is_read_exactly_but_for_the_newline_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeff a\tb\r\n\nc \n".encode())
    assert read_text(None, file, TERMINAL) == TextInput(" a\tb\r\n\nc ")
    assert read_text(None, Path("-"), piped(b"x\n")) == TextInput("x")


def test_a_pipe_with_a_name_is_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"x" * 200_000), daemon=True)
    writer.start()
    assert read_text(None, pipe, TERMINAL) == TextInput("x" * 200_000)
    writer.join(timeout=10)


@pytest.mark.parametrize("name", ["c.npz", "folder/C.NPZ", "missing.npz"])
def test_an_argument_that_ends_in_npz_is_a_capture(name: str) -> None:
    assert read_text(name, None, UNREAD) == Path(name)


def test_an_argument_that_is_also_a_file_is_text_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my notes.txt").write_text("x")
    assert read_text("my notes.txt", None, UNREAD) == TextInput(
        "my notes.txt",
        "'my notes.txt' is read as the text, but is also a file: "
        f"did you mean {option('file', repr('my notes.txt'))}?",
    )
    Path("folder").mkdir()
    assert read_text("folder", None, UNREAD) == TextInput("folder")


@pytest.mark.parametrize("name", ["nosuch.txt", "notes/nosuch.md", "sample:nosuch", "nosuch.PNG"])
def test_a_name_that_no_file_has_is_text_with_a_note(name: str) -> None:
    note = f"{name!r} is read as the text: no file has this name"
    assert read_text(name, None, UNREAD) == TextInput(name, note)


def test_a_text_that_mentions_a_file_has_no_note() -> None:
    assert read_text("see nosuch.txt", None, UNREAD) == TextInput("see nosuch.txt")
    assert read_text("The end.", None, UNREAD) == TextInput("The end.")


@pytest.mark.parametrize("address", ["https://example.org/a?b=c", "HTTP://x", "file:///etc/hosts"])
def test_an_address_is_text_with_a_note_that_tells_how_to_fetch_the_page(address: str) -> None:
    quoted = shlex.quote(address)
    for alone, command in (
        (True, f"curl -sL {quoted} | attnviz show -"),
        (False, f'"$(curl -sL {quoted})"'),
    ):
        read = read_text(address, None, UNREAD, alone=alone)
        assert isinstance(read, TextInput)
        assert read.text == address
        assert (read.note or "").endswith(command)
    assert read_text(f"see {address}", None, UNREAD) == TextInput(f"see {address}")


@pytest.mark.parametrize(
    ("argument", "file", "stdin", "kind", "sentence"),
    [
        ("a", "b", piped(), UsageError, "there are two texts: an argument and file; give one"),
        ("-", "b", piped(), UsageError, "there are two texts"),
        (None, None, TERMINAL, UsageError, "there is no text; give it in quotes, with file="),
        ("-", None, TERMINAL, InputError, "standard input is a terminal, .*; give it in quotes"),
        (None, "-", TERMINAL, InputError, "standard input is a terminal"),
        (None, None, CLOSED, UsageError, "there is no text; give it in quotes, with file="),
        ("-", None, CLOSED, InputError, "standard input is closed, and no text comes from there"),
        ("", None, UNREAD, InputError, "the text is empty; give at least one word"),
        (" \t\n", None, UNREAD, InputError, "the text is blank; give at least one word"),
        (None, None, piped(), InputError, "standard input is empty; give at least one word"),
        ("-", None, piped(b"\n"), InputError, "standard input is blank"),
        ("-", None, piped(b"\xef\xbb\xbf"), InputError, "standard input is empty"),
        ("caf\udce9", None, UNREAD, InputError,
         r"the text is not UTF-8 \(byte 0xe9 at offset 3\); .*: iconv -f latin1 -t utf-8\.$"),
        ("a\ud800", None, UNREAD, InputError, r"the text holds half a character \(U\+D800 at char"),
        ("-", None, piped(b"one\ntwo\ncaf\xe9"), InputError,
         r"standard input is not UTF-8 \(byte 0xe9 at offset 11, line 3\); convert it first"),
        ("-", None, piped("hi".encode("utf-16")), InputError, ".*: iconv -f utf-16 -t utf-8"),
        ("-", None, piped(b"PK\x03\x04\xff"), InputError, ".*; if it is a saved capture"),
    ],
)  # fmt: skip
def test_a_text_that_cannot_be_used_is_told(
    argument: str | None, file: str | None, stdin: Stdin, kind: type[AttnvizError], sentence: str
) -> None:
    with pytest.raises(kind, match=f"^{sentence}"):
        read_text(argument, None if file is None else Path(file), stdin)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("note.txt", "there is no file '.*note.txt'; the nearest name is '.*notes.txt'"),
        ("zzz", "there is no file '.*zzz'; check the name"),
        ("none/a", "there is no file '.*none/a'; there is no folder '.*none' either"),
        (".", "'.*' is a folder; give a file in it"),
        ("notes.txt/a", "'.*a' cannot be read: not a directory"),
        ("a" * 300, ".* is too long for a name"),
        ("a\0b", r"'.*a\\x00b' cannot be read: invalid argument"),
        ("blank", "'.*blank' is blank"),
        ("l 1", r"'.*l 1' is not UTF-8 \(byte 0xff at offset 1\); .*iconv .* '.*l 1'\.$"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "blank").write_text(" \n")
    (tmp_path / "l 1").write_bytes(b"a\xff\n")
    with pytest.raises(InputError, match=f"^{sentence}"):
        read_text(None, tmp_path / name, TERMINAL)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EACCES, "there is no permission to read 'a'"),
        (errno.EIO, "'a' cannot be read: input/output error"),
    ],
)
def test_a_file_that_the_system_refuses_is_told(
    code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=sentence):
        read_text(None, Path("a"), TERMINAL)


def test_standard_input_that_is_a_folder_is_told(tmp_path: Path) -> None:
    class Folder(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise IsADirectoryError(errno.EISDIR, "no")

    with pytest.raises(InputError, match="standard input is a folder"):
        read_text("-", None, Stdin(Folder(), is_terminal=False))


@given(st.text())
def test_any_text_comes_in_as_it_is(text: str) -> None:
    text = f"a{text}z"
    assert read_text(text, None, UNREAD) == TextInput(text)
    assert read_text(None, None, piped(f"{text}\n".encode())) == TextInput(text)


@given(st.binary())
def test_any_bytes_are_a_text_or_an_error_and_never_a_crash(data: bytes) -> None:
    try:
        found = read_text("-", None, piped(data))
    except InputError:
        return
    assert isinstance(found, TextInput)
    assert data.decode().endswith((found.text, f"{found.text}\n", f"{found.text}\r\n"))
