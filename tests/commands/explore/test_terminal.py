"""`attnviz explore` in a real pseudo-terminal: colours, the end, and what it loads."""

import io
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import attnviz
from attnviz.cli import main
from attnviz.commands.explore.command import _run
from attnviz.console import Environment
from attnviz.errors import ExitStatus
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from tests.conftest import Run, Terminal, slow
from tests.factories import make_capture

HOLD, LEAVE_SCREEN, SHOW_CURSOR = 20.0, b"\x1b[?1049l", b"\x1b[?25h"
PROGRAM = """
import json, sys
sys.argv = ["attnviz", *json.loads(sys.argv[1])]
{before}
try:
    from attnviz.cli import run
    run()
finally:
    with open({told!r}, "w") as file:
        json.dump([n for n in ("torch", "transformers", "matplotlib") if n in sys.modules], file)
"""


@dataclass(frozen=True)
class Ended:
    """How it ended: its exit code, all that it drew, what it had loaded."""

    status: int
    drawn: bytes
    loaded: list[str]
    restored: bool


@pytest.fixture(scope="module")
def capture_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("captures") / "capture.npz"
    attnviz.AttentionCapture(make_capture()).save(path)
    return str(path)


def in_terminal(
    folder: Path,
    *arguments: str,
    keys: bytes = b"q",
    until: bytes = b"heads: top",
    before: str = "",
    stdin: bytes | None = None,
    **variables: str,
) -> Ended:
    """Run it in a terminal of 80 x 24; when it shows `until`, press the keys."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    attributes = termios.tcgetattr(theirs)
    told = folder / "loaded.json"
    program = PROGRAM.format(before=before, told=str(told))
    kept = {n: os.environ[n] for n in ("PATH", "HOME", "PYTHONPATH") if n in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(["explore", *arguments])],
        stdin=theirs if stdin is None else subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **variables},
        start_new_session=True,
        preexec_fn=lambda: _own(theirs),
    )
    if stdin is not None and process.stdin:
        process.stdin.write(stdin)
        process.stdin.close()
    drawn, pressed, end = b"", False, time.monotonic() + HOLD
    while process.poll() is None and time.monotonic() < end:
        if select.select([ours], [], [], 0.05)[0]:
            drawn += os.read(ours, 1 << 16)
        if not pressed and until in drawn:
            os.write(ours, keys)
            pressed = True
    assert process.poll() is not None, drawn[-500:]
    while select.select([ours], [], [], 0.05)[0]:
        drawn += os.read(ours, 1 << 16)
    restored = termios.tcgetattr(theirs) == attributes
    os.close(theirs)
    os.close(ours)
    return Ended(process.returncode, drawn, json.loads(told.read_text()), restored)


def _own(terminal: int) -> None:
    """Make it the terminal that `/dev/tty` means."""
    import fcntl

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def test_a_capture_is_explored_in_true_colours_without_torch_and_q_leaves_all_as_it_was(
    tmp_path: Path, capture_file: str
) -> None:
    ended = in_terminal(tmp_path, capture_file, COLORTERM="truecolor")
    assert ended.status == ExitStatus.OK
    assert ended.restored
    assert LEAVE_SCREEN in ended.drawn
    assert ended.drawn.rfind(SHOW_CURSOR) > ended.drawn.rfind(b"heads: top")
    assert ended.loaded == []
    assert re.search(rb"[34]8;2;", ended.drawn)


def test_a_text_is_explored_and_its_page_saved(tmp_path: Path) -> None:
    computed = "→ fluffy".encode()  # in the border of the pattern
    ended = in_terminal(tmp_path, "a fluffy blue creature", keys=b"oq", until=computed)
    assert ended.status == ExitStatus.OK
    assert "transformers" not in ended.loaded
    assert (tmp_path / "attnviz.html").read_text().lower().startswith("<!doctype html>")
    said = ended.drawn[ended.drawn.rfind(LEAVE_SCREEN) :].decode()
    assert f"saved {tmp_path / 'attnviz.html'}" in said.replace("\r\n", "")


def test_a_text_may_come_through_a_pipe_and_the_keys_from_the_terminal(tmp_path: Path) -> None:
    ended = in_terminal(tmp_path, "-", stdin=b"a fluffy blue creature\n")
    assert ended.status == ExitStatus.OK
    assert "top keys of “creature”".encode() in ended.drawn


def test_what_could_not_be_saved_before_leaving_is_told_after_it(
    tmp_path: Path, capture_file: str
) -> None:
    before = (
        "import time, attnviz.commands.explore.app\n"
        "from attnviz.errors import OutputError\n"
        "def full(*_):\n"
        "    time.sleep(0.3)\n"
        "    raise OutputError('the disk is full', 'make room')\n"
        "attnviz.commands.explore.app.save_page = full"
    )
    ended = in_terminal(tmp_path, capture_file, keys=b"oq", before=before)
    assert ended.status == ExitStatus.OUTPUT
    assert (
        b"attnviz: the disk is full; make room." in ended.drawn[ended.drawn.rfind(LEAVE_SCREEN) :]
    )


def test_the_size_is_asked_of_what_it_draws_on_and_not_of_standard_output() -> None:
    """A frame of another size comes only later, so that a terminal's bytes tell little."""
    asked: list[object] = []

    class App:
        def run(self) -> None:
            asked.append(sys.__stdout__)

    before = sys.__stdout__
    _run(App())  # type: ignore[arg-type]
    assert asked == [sys.__stderr__]
    assert sys.__stdout__ is before


def test_ctrl_c_leaves_from_wherever_one_is(tmp_path: Path, capture_file: str) -> None:
    assert in_terminal(tmp_path, capture_file, keys=b"?\x03").status == ExitStatus.OK


@pytest.mark.parametrize(
    ("variables", "there", "not_there"),
    [
        slow({}, rb"[34]8;5;", rb"[34]8;2;"),  # 256 colours
        slow({"TERM": "xterm"}, rb"\x1b\[[0-9;]*4[0-7]", rb"[34]8;[25];"),  # sixteen
        ({"NO_COLOR": "1"}, rb"\x1b\[", rb"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]"),
    ],
    ids=["256", "16", "none"],
)
def test_colours_are_those_that_the_terminal_has(
    tmp_path: Path, capture_file: str, variables: dict[str, str], there: bytes, not_there: bytes
) -> None:
    drawn = in_terminal(tmp_path, capture_file, **variables).drawn
    assert re.search(there, drawn)
    assert not re.search(not_there, drawn)


@pytest.mark.parametrize("where", ["pattern.PatternPane.lay_out", "app.ExploreApp.action_help"])
def test_after_a_bug_the_terminal_is_as_it_was_and_one_line_says_so(
    tmp_path: Path, capture_file: str, where: str
) -> None:
    module, _, method = where.rpartition(".")
    before = (
        "def broken(*_): raise RuntimeError('it broke')\n"
        "import attnviz.commands.explore.app, attnviz.commands.explore.pattern\n"
        f"attnviz.commands.explore.{module}.{method} = broken"
    )
    until = b"\x1b[?1049h" if module.startswith("pattern") else b"heads: top"
    ended = in_terminal(tmp_path, capture_file, keys=b"?", until=until, before=before)
    assert ended.status == ExitStatus.BUG
    assert ended.restored
    said = ended.drawn[ended.drawn.rfind(LEAVE_SCREEN) :]
    assert b"this is a bug (RuntimeError: it broke)" in said
    assert b"Traceback" not in ended.drawn


def test_a_bug_in_a_thread_ends_it_no_worse(tmp_path: Path, capture_file: str) -> None:
    before = (
        "def broken(*_): raise RuntimeError('it broke')\n"
        "import attnviz.commands.explore.app\n"
        "attnviz.commands.explore.app.save_page = broken"
    )
    ended = in_terminal(tmp_path, capture_file, keys=b"o", before=before)
    assert ended.status == ExitStatus.BUG
    assert ended.restored
    assert b"this is a bug (RuntimeError: it broke)" in ended.drawn


def on_terminal(*arguments: str, encoding: str = "utf-8", **variables: str) -> tuple[int, str]:
    """A command line whose stderr is a terminal, in this process."""
    out, err = io.BytesIO(), io.BytesIO()
    environment = Environment(
        Terminal(out, encoding, write_through=True),
        Terminal(err, encoding, write_through=True),
        {"TERM": "xterm", **variables},
    )
    status = main(arguments, Session(environment, Stdin(io.BytesIO(), is_terminal=True)))
    return status, err.getvalue().decode(encoding)


def test_without_a_terminal_it_says_what_to_use(run: Run) -> None:
    ended = run("explore", "a text")
    assert ended.status == ExitStatus.USAGE
    assert "standard error is not one; attnviz show prints to any place." in ended.err


def test_a_terminal_that_cannot_draw_is_told() -> None:
    status, said = on_terminal("explore", "a text", TERM="dumb")
    assert status == ExitStatus.USAGE
    assert "cannot move its cursor" in said
    status, said = on_terminal("explore", "a text", encoding="latin-1")
    assert status == ExitStatus.USAGE
    assert "this terminal's encoding (latin-1) has no lines and bars" in said


def test_without_its_extra_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("textual", "attnviz.commands.explore"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    commands = sys.modules["attnviz.commands"]
    monkeypatch.setattr(commands, "explore", commands.explore)  # put back at the end
    status, said = on_terminal("explore", "a text")
    assert status == ExitStatus.USAGE
    assert said == (
        "attnviz: the terminal app needs textual, which is not installed; install it: "
        f'{shlex.quote(sys.executable)} -m pip install "textual<9,>=8".\n'
    )


def test_a_saved_capture_is_not_run_again(capture_file: str) -> None:
    status, said = on_terminal("explore", capture_file, "--model", "gpt2")
    assert status == ExitStatus.USAGE
    assert "is not run again; leave --model out" in said
    status, said = on_terminal("explore", capture_file, "--image", "docs/images/shapes-1.png")
    assert status == ExitStatus.USAGE
    assert "is not run again; leave --image out" in said


def test_a_model_that_is_not_there_is_told_before_the_app_opens() -> None:
    status, said = on_terminal("explore", "a text", "--model", "./nowhere")
    assert status == ExitStatus.MODEL
    assert "nowhere" in said
