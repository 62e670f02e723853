"""Where results go: standard output, files that a person is told, and progress beside them."""

import io
import os
from pathlib import Path

import pytest

from attnviz.cli import main
from attnviz.console import Environment
from attnviz.errors import ExitStatus
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from tests.conftest import Run, Terminal


def _told(*arguments: str, terminal: bool = True, stdin: bytes = b"") -> str:
    """What a command says on stderr, which is a terminal or not."""
    err = io.BytesIO()
    stream = (Terminal if terminal else io.TextIOWrapper)(err, "utf-8", write_through=True)
    environment = Environment(io.TextIOWrapper(io.BytesIO(), "utf-8"), stream, {"NO_COLOR": "1"})
    session = Session(environment, Stdin(io.BytesIO(stdin), is_terminal=False))
    assert main(arguments, session) is ExitStatus.OK
    return err.getvalue().decode()


@pytest.mark.parametrize(
    ("command", "form"),
    [
        *(("show", []), ("show", ["-f", "jsonl"]), ("show", ["-f", "png"])),
        *(("heads", []), ("heads", ["-f", "json"])),
    ],
)
def test_a_dash_is_standard_output_in_the_format_that_was_named(
    run: Run, command: str, form: list[str]
) -> None:
    plain = run(command, "a red fox", *form)
    assert plain.status is ExitStatus.OK
    assert run(command, "a red fox", "-o", "-", *form).raw == plain.raw


def test_a_dash_is_a_terminal_where_standard_output_is_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("show", "a red fox", "-o", "-", "-f", "png", terminal=True)
    assert ended.status is ExitStatus.USAGE
    assert "a terminal cannot show it" in ended.err
    assert os.listdir() == []


def test_a_person_is_told_which_file_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / "creature.png")
    assert _told("show", "a red fox", "-o", path) == f"wrote {path}\n"
    assert _told("show", "a red fox", "-o", path, "--quiet") == ""
    assert _told("show", "a red fox", "-o", path, terminal=False) == ""
    assert _told("show", "a red fox", "-f", "json") == ""
    assert _told("show", "a red fox", "-o", os.devnull, "-f", "json") == ""  # nothing is kept


@pytest.mark.slow
def test_a_person_is_told_of_a_tree_a_page_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a red fox saw a blue dog .\n" * 200)
    corpus, scanned = str(tmp_path / "corpus.txt"), str(tmp_path / "scanned")
    asked = ("--max-docs", "3", "--workers", "1")
    lines = _told("scan", corpus, "-o", scanned, *asked).replace("\r", "\n").splitlines()
    assert any(line.endswith(f"wrote {scanned}") for line in lines)
    page = str(tmp_path / "atlas.html")
    assert f"wrote {page}\n" in _told("atlas", scanned, "-o", page)
    tree = str(tmp_path / "tree")
    told = _told("atlas", scanned, "--export", "headvis", "-o", tree)
    assert "20 heads for HeadVis in " in told
    assert told.endswith("/tree/builtin/headvis/corpus'\n")
    model = str(tmp_path / "model")
    sizes = "--n-layer 1 --n-head 1 --n-embd 8 --max-steps 1 --context 32".split()
    assert f"wrote {model}\n" in _told("train", corpus, "-o", model, *sizes)


def test_only_a_dash_alone_is_a_stream(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (("show", "a red fox", "-f", "json"), ("schema", "show")):
        written = run(*command, "-o", "./-")
        assert (written.status, written.raw) == (ExitStatus.OK, b"")
        assert (tmp_path / "-").read_bytes() == run(*command).raw
    (tmp_path / "-").write_text("a blue dog")
    assert "dog" in run("tokens", "--file", "./-", stdin=b"a red fox").out
    assert "fox" in run("tokens", "--file", "-", stdin=b"a red fox").out


def test_a_person_is_told_of_the_file_of_each_line(tmp_path: Path) -> None:
    named = str(tmp_path / "{line}.csv")
    told = _told("show", "--lines", "-", "-o", named, stdin=b"a red fox\na blue dog\n")
    assert f"wrote {tmp_path / '1.csv'}\n" in told  # beside the count of the lines
    assert f"wrote {tmp_path / '2.csv'}\n" in told


def test_a_name_cannot_drive_the_terminal_that_it_is_told_on(tmp_path: Path) -> None:
    assert "\x1b" not in _told("show", "a red fox", "-o", str(tmp_path / "\x1b[31m.csv"))


COLORS = [
    # the options, the terminal's variables, whether there is colour in a pipe and on a terminal
    ([], {}, (False, True)),
    (["--color", "auto"], {}, (False, True)),
    (["--color", "always"], {}, (True, True)),
    (["--color", "always"], {"NO_COLOR": "1"}, (True, True)),
    (["--color", "always"], {"TERM": "dumb"}, (True, True)),
    (["--color", "never"], {"FORCE_COLOR": "1"}, (False, False)),
    (["--no-color"], {"FORCE_COLOR": "1"}, (False, False)),
    (["--no-color", "--color", "never"], {}, (False, False)),
]


@pytest.mark.parametrize(("options", "variables", "colored"), COLORS)
def test_colour_is_as_the_option_says_before_all_else(
    run: Run, options: list[str], variables: dict[str, str], colored: tuple[bool, bool]
) -> None:
    arguments = ["show", "a red fox", "--view", "heatmap", *options]
    shown = [run(*arguments, variables=variables, terminal=each).out for each in (False, True)]
    assert tuple("\x1b[3" in each or "\x1b[4" in each for each in shown) == colored


def test_colour_cannot_be_wanted_and_not_wanted(run: Run) -> None:
    ended = run("show", "a red fox", "--color", "always", "--no-color")
    assert ended.status is ExitStatus.USAGE
    assert ended.err == "attnviz: --no-color and --color always disagree; give one of them.\n"


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
