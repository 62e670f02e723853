"""Bad input: one sentence, the documented exit code, nothing on stdout, no file touched."""

import os
from pathlib import Path

import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run

USAGE, INPUT, MODEL, OUTPUT = (
    ExitStatus.USAGE,
    ExitStatus.INPUT,
    ExitStatus.MODEL,
    ExitStatus.OUTPUT,
)

CASES: list[tuple[str, list[str], ExitStatus, str]] = [
    # arguments, exit code, a part of the sentence
    ("empty text", ["show", ""], INPUT, "empty"),
    ("blank text", ["show", " \n\t"], INPUT, "blank"),
    ("too long", ["show", "x" * 80], INPUT, "80 tokens, but the model takes at most 61"),
    ("not UTF-8 in an argument", ["show", "caf\udce9"], INPUT, "UTF-8"),
    ("a missing file", ["show", "--file", "nowhere.txt"], INPUT, "no file 'nowhere.txt'"),
    ("a folder as a file", ["show", "--file", "."], INPUT, "is a folder"),
    ("two texts", ["show", "a", "--file", "b"], USAGE, "two texts"),
    ("no text on a terminal", ["show"], USAGE, "there is no text"),
    ("stdin is a terminal", ["show", "-"], INPUT, "standard input is a terminal"),
    ("an unknown option", ["show", "a", "--hed", "1"], USAGE, "no such option: --hed"),
    ("an option without its value", ["show", "a", "--head"], USAGE, "requires an argument"),
    ("an unknown command", ["shwo", "a"], USAGE, "no such command 'shwo'"),
    ("an unknown command, misspelt", ["shwo", "a"], USAGE, "did you mean 'show'?"),
    ("help of no command", ["help", "nosuch"], USAGE, "no such command 'nosuch'"),
    ("a text with a dash", ["show", "- a cat"], USAGE, "put -- before a text that begins with"),
    ("a text with two", ["show", "--a cat"], USAGE, "put -- before a text that begins with"),
    ("a text without quotes", ["show", "a", "b", "c"], USAGE, "put the text in quotes"),
    ("a forgotten command", ["a fluffy creature"], USAGE, 'attnviz show "a text" shows a text'),
    ("a bad choice", ["show", "a", "--view", "pie"], USAGE, "'pie' is not one of"),
    ("a number out of range", ["show", "a", "--top", "0"], USAGE, "--top"),
    ("a word for a number", ["show", "a", "--dpi", "high"], USAGE, "--dpi"),
    ("a layer out of range", ["show", "a", "-l", "7"], USAGE, "layers are 0 to 1"),
    ("a head out of range", ["show", "a", "-H", "L1H9"], USAGE, "has heads 0 to 2"),
    ("an unreadable head", ["show", "a", "-H", "x"], USAGE, "cannot be read"),
    ("a query that is not there", ["show", "a b", "--query", "c"], USAGE, "its tokens are"),
    (
        "an ambiguous query",
        ["show", "a a", "--view", "text", "--query", "a"],
        USAGE,
        "stands at 2 positions",
    ),
    ("an unknown suffix", ["show", "a", "-o", "x.jpg"], USAGE, "not a format that attnviz writes"),
    ("suffix and format", ["show", "a", "-o", "x.png", "-f", "svg"], USAGE, "disagree"),
    ("an unknown format", ["show", "a", "-f", "yaml"], USAGE, "no format 'yaml'"),
    ("no such folder", ["show", "a", "-o", "no/x.png"], OUTPUT, "does not exist"),
    ("a folder as target", ["show", "a", "-o", "folder.png"], OUTPUT, "is a folder"),
    ("a full disk", ["show", "a", "-o", "/dev/full", "-f", "csv"], OUTPUT, "no space"),
    ("a missing capture", ["show", "nowhere.npz"], INPUT, "no file 'nowhere.npz'"),
    ("a corrupt capture", ["show", "corrupt.npz"], INPUT, "corrupt.npz"),
    ("options of a run, on a capture", ["show", "c.npz", "--bos"], USAGE, "leave --bos out"),
    ("a model for a capture", ["show", "c.npz", "-m", "gpt2"], USAGE, "leave --model out"),
    ("a place for lines without lines", ["show", "a", "-o", "{line}.csv"], USAGE, "add --lines"),
    ("a query of nothing", ["show", "a", "--query", ""], USAGE, "--query names no token"),
    ("a query of many digits", ["show", "a", "--query", "9" * 5000], USAGE, "is not in the text"),
    ("a head of many digits", ["show", "a", "-H", "9" * 5000], USAGE, "cannot be read"),
    ("a model without a name", ["show", "a", "-m", ""], MODEL, "the model has no name"),
    ("lines of a capture", ["show", "c.npz", "--lines"], USAGE, "has no lines"),
    ("tokens of a capture", ["tokens", "c.npz"], USAGE, "not a capture"),
    ("a typo in a model", ["show", "a", "-m", "builtn"], MODEL, "did you mean builtin"),
    ("a folder without config", ["show", "a", "-m", "./"], MODEL, "no config.json"),
    ("too narrow", ["show", "a", "--width", "39"], USAGE, "--width 39 is too narrow"),
    ("an unknown colour map", ["show", "a", "-o", "x.png", "--cmap", "virdis"], USAGE, "viridis"),
    ("no picture option", ["show", "a", "--dpi", "99"], USAGE, "--dpi does nothing for txt"),
    ("over without reduce", ["show", "a", "--over", "heads"], USAGE, "add --reduce"),
    ("a filter on a capture", ["show", "a", "-f", "npz", "--top", "2"], USAGE, "--top"),
    ("lines into one picture", ["show", "a", "--lines", "-o", "x.png"], USAGE, "{line}"),
    ("a table as a picture", ["show", "a", "--view", "table", "-o", "x.png"], USAGE, "heatmap"),
    ("pictures of tokens", ["tokens", "a", "-o", "x.png"], USAGE, "does not write png"),
    ("an unknown model's card", ["models", "gpt3"], MODEL, "cannot be run"),
]


@pytest.mark.parametrize(
    ("arguments", "status", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_bad_input_gets_one_sentence_and_its_exit_code(
    run: Run,
    gpt2_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: ExitStatus,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNVIZ_MODEL", str(gpt2_folder))
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "corrupt.npz").write_bytes(b"PK\x03\x04 not really")
    before = sorted(os.listdir(tmp_path))
    ended = run(*arguments)
    assert ended.status is status, ended.err
    assert says in ended.err
    assert ended.out == ""
    assert ended.err.startswith("attnviz: ")
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    assert sorted(os.listdir(tmp_path)) == before


def test_bytes_are_not_written_to_a_terminal(run: Run) -> None:
    ended = run("show", "a", "-f", "png", terminal=True)
    assert ended.status is USAGE
    assert "-o FILE.png" in ended.err
    assert ended.out == ""


def test_a_bug_is_one_sentence_and_debug_shows_where(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("something inside\nbroke")

    monkeypatch.setattr("attnviz.kit.session.load_model", broken)
    ended = run("show", "a")
    assert ended.status is ExitStatus.BUG
    assert ended.err.count("\n") == 1
    assert "please report it" in ended.err
    debugged = run("show", "a", "--debug")
    assert "Traceback" in debugged.err
    assert debugged.err.endswith(ended.err)


def test_an_interruption_ends_with_130_and_leaves_the_old_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    target = tmp_path / "x.csv"
    target.write_text("old")
    monkeypatch.setattr("attnviz.commands.show.command.show_text", interrupted)
    ended = run("show", "a", "-o", str(target))
    assert ended.status is ExitStatus.INTERRUPTED
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.csv"]


def test_what_a_message_quotes_cannot_drive_the_terminal(run: Run) -> None:
    ended = run("show", "a", "--query", "\x1b[31m[red]")
    assert "\x1b" not in ended.err
    assert "[red]" in ended.err
