"""Bad input: one sentence, the documented exit code, nothing on stdout, no file touched."""

import os
from pathlib import Path

import pytest

from attnviz.errors import ExitStatus, series
from tests.conftest import Run

USAGE, INPUT, MODEL, OUTPUT = (
    ExitStatus.USAGE,
    ExitStatus.INPUT,
    ExitStatus.MODEL,
    ExitStatus.OUTPUT,
)

CASES: list[tuple[str, list[str], ExitStatus, str]] = [
    # arguments, exit code, a part of the sentence
    ("an option without its value", ["show", "a", "--head"], USAGE,
        "--head has no value; give --head HEADS"),
    ("help of no command", ["help", "nosuch"], USAGE, "there is no command and no term 'nosuch'"),
    ("a text with a dash", ["show", "- a cat"], USAGE, "put -- before a text that begins with"),
    ("a text with two", ["show", "--a cat"], USAGE, "put -- before a text that begins with"),
    ("a forgotten command", ["a fluffy creature"], USAGE, 'attnviz show "a text" shows a text'),
    ("a word for a number", ["show", "a", "--dpi", "high"], USAGE, "--dpi"),
    ("an ambiguous query", ["show", "a a", "--view", "text", "--query", "a"], USAGE,
        "is at 2 positions"),
    ("a full disk", ["show", "a", "-o", "/dev/full", "-f", "csv"], OUTPUT, "no space"),
    ("a model without a name", ["show", "a", "-m", ""], MODEL, "the model has no name"),
    ("tokens of a capture", ["tokens", "c.npz"], USAGE, "not a capture"),
    ("too narrow", ["show", "a", "--width", "39"], USAGE, "--width 39 is too narrow"),
    ("an unknown colour map", ["show", "a", "-o", "x.png", "--cmap", "virdis"], USAGE, "viridis"),
    ("lines into one picture", ["show", "a", "--lines", "-o", "x.png"], USAGE, "{line}"),
    ("an unknown model's card", ["models", "gpt3"], MODEL, "cannot be run"),
]  # fmt: skip


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
    ended = run(*arguments)
    assert ended.status is status, ended.err
    assert says in ended.err
    assert ended.out == ""
    assert ended.err.startswith("attnviz: ")
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    assert os.listdir(tmp_path) == []


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

    monkeypatch.setattr("attnviz.kit.prepare.load_model", broken)
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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")],
)
def test_a_series_has_its_conjunction_only_before_the_last(words: list[str], sentence: str) -> None:
    assert series(words, "or") == sentence
