"""A file is written whole, or stays as it was; a stream that is open gets its chunks."""

import errno
import io
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnviz.errors import OutputError
from attnviz.kit.write import check_target, write_bytes, write_stream


def failing(error: BaseException) -> Iterator[bytes]:
    yield b"half of "
    raise error


def test_chunks_become_the_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a.bin", iter([b"one ", b"", b"two"]))
    write_bytes(tmp_path / "b.bin", b"three")
    assert (tmp_path / "a.bin").read_bytes() == b"one two"
    assert (tmp_path / "b.bin").read_bytes() == b"three"
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "b.bin"]


@pytest.mark.parametrize("old", [None, b"the old one"])
@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), SystemExit(3), ValueError("a bug"), OSError(errno.EIO, "of the reader")],
)
def test_a_failure_in_the_middle_leaves_no_trace(
    tmp_path: Path, old: bytes | None, error: BaseException
) -> None:
    target = tmp_path / "a.bin"
    if old is not None:
        target.write_bytes(old)
    with pytest.raises(type(error)) as caught:
        write_bytes(target, failing(error))
    assert caught.value is error  # not taken for an error of the target
    assert os.listdir(tmp_path) == ([] if old is None else ["a.bin"])
    assert old is None or target.read_bytes() == old


@pytest.mark.parametrize(("module", "step"), [(os, "fsync"), (os, "replace"), (Path, "open")])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, module: object, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr(module, step, full)
        with pytest.raises(OutputError, match=r"^no space is left to write '.*a.bin'; make room"):
            write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # as a disk that is full
    try:
        with pytest.raises(OutputError, match="cannot be written: file too large"):
            write_bytes(target, [b"x" * 60_000, b"y" * 60_000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EACCES, "there is no permission to write"),
        (errno.EROFS, "is on a read-only disk"),
        (errno.EDQUOT, "no space is left"),
        (errno.EFBIG, "cannot be written: file too large"),
    ],
)
def test_what_the_system_refuses_is_told(
    tmp_path: Path, code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(OutputError, match=sentence):
        write_bytes(tmp_path / "a.bin", b"x")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".", "is a folder; give the name of a file in it"),
        ("none/a.png", "the folder '.*none' does not exist; make it first"),
        ("file/a.png", "is inside something that is not a folder"),
        ("a" * 300 + ".png", "is too long; choose a shorter one"),
        ("a\0b.png", r"'.*a\\x00b.png' cannot be written: invalid argument"),
        ("loop", "cannot be written: too many levels of symbolic links"),
    ],
)
def test_a_target_that_cannot_be_is_told_before_any_work(
    tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "loop").symlink_to("loop")
    for write in (check_target, lambda path: write_bytes(path, failing(AssertionError()))):
        with pytest.raises(OutputError, match=sentence):
            write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [("a.bin", "permission to write '.*a.bin'"), ("", "permission to write in the folder")],
)
def test_a_missing_permission_is_told(
    tmp_path: Path, refused: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    no = os.fspath(tmp_path / refused)
    monkeypatch.setattr(os, "access", lambda path, mode: os.fspath(path) != no)
    with pytest.raises(OutputError, match=sentence):
        write_bytes(target, b"new")
    assert target.read_bytes() == b"old"


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_follows_the_umask(
    tmp_path: Path,
) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_bytes(old, b"x")
        write_bytes(tmp_path / "new", b"x")
        os.umask(0o077)
        old.chmod(0o664)
        write_bytes(old, b"y")
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o664
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real.bin"
    if exists:
        real.write_bytes(b"old")
    link = tmp_path / "link.bin"
    link.symlink_to(Path("there") / "real.bin")
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert os.listdir(tmp_path / "there") == ["real.bin"]


def test_a_device_is_written_to_and_never_replaced() -> None:
    # A terminal of our own: were this to fail, /dev/null would be gone for everybody.
    master, slave = os.openpty()
    try:
        write_bytes(Path(os.ttyname(slave)), b"x\n")
        shown = b""
        while not shown.endswith(b"\n"):  # a terminal may hand out its bytes one by one
            shown += os.read(master, 10)
        assert shown == b"x\r\n"
    finally:
        os.close(master)
        os.close(slave)


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_bytes(pipe, [b"one\n", b"two\n"])
    reader.join(timeout=10)
    assert got == [b"one\ntwo\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_the_shell_has_open_is_appended_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"earlier\n")
    with log.open("ab") as stream:
        inode = log.stat().st_ino
        link = tmp_path / "out.csv"
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        write_bytes(Path(f"/dev/fd/{stream.fileno()}"), b"one\n")
        write_bytes(link, b"two\n")
    assert log.read_bytes() == b"earlier\none\ntwo\n"
    assert log.stat().st_ino == inode


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
