"""What a command tells on stderr while it works."""

import io

import pytest

from attnviz.console import Environment
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from tests.conftest import Terminal


@pytest.mark.parametrize(
    ("stdout", "quiet", "told"),
    [(io.TextIOWrapper, False, True), (Terminal, False, False), (io.TextIOWrapper, True, False)],
)
def test_progress_is_told_on_a_terminal_while_results_go_elsewhere(
    stdout: type[io.TextIOWrapper], quiet: bool, told: bool
) -> None:
    err = io.BytesIO()
    environment = Environment(
        stdout(io.BytesIO(), "utf-8"),
        Terminal(err, "utf-8", write_through=True),
        {"TERM": "xterm-256color"},
    )
    session = Session(environment, Stdin(None, False), quiet=quiet)
    assert list(session.progress(range(3), "line")) == [0, 1, 2]
    assert (b"3 lines" in err.getvalue()) == told
