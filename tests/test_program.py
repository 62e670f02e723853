"""The program as a process: pipes that close, interruptions, bytes in arguments."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.cli import COMMANDS, command
from attnviz.errors import ExitStatus
from tests.conftest import slow

PROGRAM = [sys.executable, "-m", "attnviz"]


@pytest.fixture
def environment(gpt2_folder: Path) -> dict[str, str]:
    return {**os.environ, "ATTNVIZ_MODEL": str(gpt2_folder)}


def test_a_pipe_that_closes_early_is_no_error(environment: dict[str, str]) -> None:
    program = subprocess.Popen(
        [*PROGRAM, "show", "x" * 60, "-H", "all", "-f", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert program.stdout is not None
    assert program.stderr is not None
    assert program.stdout.readline().startswith(b'{"line": 1')
    program.stdout.close()
    assert program.wait() == 0
    assert program.stderr.read() == b""
    program.stderr.close()


def test_each_line_is_answered_before_the_next_one_comes(environment: dict[str, str]) -> None:
    program = subprocess.Popen(
        [*PROGRAM, "show", "--lines", "-", "-f", "json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    for word in (b"one", b"two"):
        program.stdin.write(word + b"\n")
        program.stdin.flush()
        assert b'"text": "' + word in program.stdout.readline()
    program.stdin.close()
    assert program.wait() == 0
    program.stdout.close()


def _listen_to_interruptions() -> None:
    """A shell starts what runs in its background deaf to Ctrl-C; the program must not be."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_argument_that_is_not_utf8_is_refused(environment: dict[str, str]) -> None:
    ended = subprocess.run([*PROGRAM, "show", b"caf\xe9"], capture_output=True, env=environment)
    assert ended.returncode == 3
    assert b"UTF-8" in ended.stderr
    assert ended.stdout == b""


def test_a_stream_in_ascii_gets_escapes_and_no_crash(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [*PROGRAM, "tokens", "楚"],
        capture_output=True,
        env={**environment, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"\\u695a" in ended.stdout
    ended.stdout.decode("ascii")


@pytest.mark.parametrize("arguments", [["--help"], slow(["show", "--help"]), ["tokens", "a word"]])
def test_a_reader_that_leaves_at_once_is_no_error(
    environment: dict[str, str], arguments: list[str]
) -> None:
    ended = subprocess.run(
        ["sh", "-c", '{ "$@"; echo "ended with $?" >&2; } | true', "sh", *PROGRAM, *arguments],
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert ended.stderr == b"ended with 0\n"


def test_a_closed_stdout_is_told_and_a_closed_stderr_tells_nothing_elsewhere(
    environment: dict[str, str],
) -> None:
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *PROGRAM, "show", "a"],
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert closed.returncode == 5
    assert closed.stderr == b"attnviz: standard output is closed; send it somewhere.\n"
    silent = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", *PROGRAM, "show", ""],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert (silent.returncode, silent.stdout) == (3, b"")


def test_a_key_pressed_while_the_program_starts_is_one_line(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A module that it imports early interrupts it, as Ctrl-C in its first moments would."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    ended = subprocess.run(
        [*PROGRAM, "show", "a"],
        capture_output=True,
        env={**environment, "PYTHONPATH": str(tmp_path)},
    )
    assert (ended.returncode, ended.stderr) == (130, b"attnviz: interrupted\n")


def test_the_module_and_the_program_are_the_same() -> None:
    ended = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("attnviz ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize("form", ["txt", slow("csv"), slow("npz")])
def test_a_full_disk_behind_stdout_is_told_in_one_line(
    environment: dict[str, str], form: str
) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [*PROGRAM, "show" if form == "npz" else "tokens", "a word", "-f", form],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment,
        )
    assert ended.returncode == 5
    assert ended.stderr.count(b"\n") == 1
    assert b"no space is left" in ended.stderr


def test_the_list_of_commands_says_what_their_own_help_begins_with() -> None:
    """The list is written beside them, so that `--help` imports none of them."""
    for name, summary in COMMANDS.items():
        assert command(name).help.split("\n\n")[0].replace("\n", " ") == summary


ENDED_WHILE_WRITING = """
import os, sys
from pathlib import Path
import attnviz.__main__, attnviz.cli
from attnviz.kit.write import write_bytes

def chunks():
    yield b"half"
    os.kill(os.getpid(), int(sys.argv[2]))
    yield b"whole"

attnviz.cli.run = lambda: write_bytes(Path(sys.argv[1]), chunks())
attnviz.__main__.main()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_signal_while_writing_leaves_the_file_as_it_was_and_is_the_programs_end(
    tmp_path: Path, name: str, old: bytes | None
) -> None:
    path = tmp_path / "picture.png"
    if old:
        path.write_bytes(old)
    number = getattr(signal, name)
    program = [sys.executable, "-c", ENDED_WHILE_WRITING, str(path), str(int(number))]
    ended = subprocess.run(program, capture_output=True)
    assert ended.returncode == -number, ended.stderr
    assert ended.stderr == b""
    left = [each.name for each in tmp_path.iterdir() if not each.name.startswith(".attnviz-")]
    assert left == (["picture.png"] if old else [])
    assert name == "SIGKILL" or len(left) == len([*tmp_path.iterdir()])
    assert not old or path.read_bytes() == old


@pytest.mark.parametrize(
    ("arguments", "status"), [(("show", "a b"), 0), (("tokens", "a b", "--top", "1"), 2)]
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_stderr_changes_no_exit_code(arguments: tuple[str, ...], status: int) -> None:
    with Path("/dev/full").open("wb") as full:
        program = [sys.executable, "-m", "attnviz", *arguments]
        ended = subprocess.run(program, stdout=subprocess.PIPE, stderr=full)
    assert ended.returncode == status
    assert bool(ended.stdout) == (status == 0)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_too_little_memory_for_torch_is_no_bug() -> None:
    # with more of it, torch's native code may be half loaded and end the process by itself
    command = f"ulimit -v 300000; exec {sys.executable} -m attnviz show 'a b'"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert ended.returncode == ExitStatus.MODEL
    assert ended.stderr.startswith("attnviz: there is not enough memory")


ABORTS_AT_ITS_EXIT = """
import atexit, ctypes, os, signal, sys
import attnviz.__main__, attnviz.cli

def run():
    library = ctypes.CDLL(None)  # as the threads of a library do that still run then
    library.__cxa_atexit(library.abort, None, None)
    atexit.register(print, "its handlers ran", flush=True)
    plain()

plain, attnviz.cli.run = attnviz.cli.run, run
sys.argv[0] = "attnviz"
attnviz.__main__.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="calls the C library of Linux")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("tokens", "a b", "-f", "jsonl"), 0), (("tokens", "a b", "--top", "1"), 2)],
)
def test_a_library_that_aborts_at_the_exit_changes_no_exit_code(
    arguments: tuple[str, ...], status: int
) -> None:
    program = [sys.executable, "-c", ABORTS_AT_ITS_EXIT, *arguments]
    ended = subprocess.run(program, capture_output=True, text=True)
    assert ended.returncode == status, ended.stderr
    *rows, last = ended.stdout.splitlines()
    assert last == "its handlers ran"
    assert len(rows) == (0 if status else 3)
    assert ended.stderr.count("\n") == (1 if status else 0)


@pytest.mark.skipif(sys.platform != "linux", reason="calls the C library of Linux")
def test_a_library_that_aborts_at_the_exit_changes_no_interruption() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", ABORTS_AT_ITS_EXIT, "show", "--lines", "-", "-f", "jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_listen_to_interruptions,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(b"one\n")
    program.stdin.flush()
    program.stdout.readline()
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate()
    assert (program.returncode, errors) == (130, b"attnviz: interrupted\n")
