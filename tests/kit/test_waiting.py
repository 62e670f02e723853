"""What takes long says what it waits for: on stderr, in a terminal, and only while it lasts."""

import io
import time

import pytest

from attnviz.console import Environment
from attnviz.inputs.text import Stdin
from attnviz.kit import session as sessions
from attnviz.kit.session import Session
from tests.conftest import Terminal

DOING = "loading a large model"


def session_on(stream: io.TextIOWrapper, *, quiet: bool = False) -> Session:
    out = io.TextIOWrapper(io.BytesIO())
    variables = {"TERM": "xterm-256color"}
    return Session(Environment(out, stream, variables), Stdin(None, False), quiet=quiet)


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def wait_in(session: Session, stream: io.TextIOWrapper, *, until: str) -> None:
    with session.waiting(DOING):
        for _ in range(500):
            if until in written(stream):
                return
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PATIENCE", 0.02)


def test_a_terminal_says_what_takes_long_and_wipes_it_away() -> None:
    stream = Terminal(io.BytesIO(), write_through=True)
    wait_in(session_on(stream), stream, until=DOING)
    said = written(stream)
    assert DOING in said
    assert said.endswith("\x1b[2K")  # the line is cleared


@pytest.mark.parametrize("quiet", [True, False])
def test_a_pipe_and_a_quiet_session_say_nothing(quiet: bool) -> None:
    kind = Terminal if quiet else io.TextIOWrapper
    stream = kind(io.BytesIO(), write_through=True)
    with session_on(stream, quiet=quiet).waiting(DOING):
        time.sleep(0.1)
    assert written(stream) == ""


def test_what_is_done_soon_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PATIENCE", 60.0)
    stream = Terminal(io.BytesIO(), write_through=True)
    with session_on(stream).waiting(DOING):
        pass
    assert DOING not in written(stream)


def test_an_error_goes_through_and_ends_it() -> None:
    stream = Terminal(io.BytesIO(), write_through=True)
    with pytest.raises(KeyError), session_on(stream).waiting(DOING):
        raise KeyError
