"""A text of another world: the built-in model says so once, and hides nothing."""

from pathlib import Path

import pytest

from tests.conftest import Run

STRANGE = "Tu n'aurais pas vu mes chaussures, par hasard ?"
KNOWN = "a fluffy blue creature"
NOTE = "note: the built-in model is small and has not seen text like this; try --model gpt2\n"


def test_it_is_said_on_stderr_and_the_picture_is_shown(run: Run) -> None:
    shown = run("show", STRANGE)
    assert shown.err == NOTE
    assert "has → " in shown.out
    assert run("show", KNOWN).err == run("show", STRANGE, "--quiet").err == ""


@pytest.mark.parametrize("command", ["heads", "predict", "ablate", "explain", "generate"])
def test_every_command_that_runs_a_text_says_it_once(run: Run, command: str) -> None:
    assert run(command, STRANGE).err.count("has not seen text like this") == 1


def test_lines_are_counted(run: Run) -> None:
    stdin = f"{KNOWN}\n{STRANGE}\n{STRANGE}\n".encode()
    shown = run("show", "--lines", "-", stdin=stdin)
    assert shown.err == NOTE.replace("note: ", "note: 2 of 3 lines: ")
    assert run("show", "--lines", "-", stdin=KNOWN.encode()).err == ""


def test_prompts_are_counted(run: Run) -> None:
    options = ("--max-new-tokens", "1")
    answered = run("generate", "--lines", "-", *options, stdin=f"{KNOWN}\n{STRANGE}\n".encode())
    assert answered.err.endswith(NOTE.replace("note: ", "note: 1 of 2 lines: "))
    assert run("generate", KNOWN, *options).err == ""


def test_texts_that_are_compared_are_counted(run: Run) -> None:
    shown = run("compare", KNOWN, f"{STRANGE} creature", "--query", "creature")
    assert shown.err == NOTE.replace("note: ", "note: 1 of 2 texts: ")


def test_a_page_and_a_saved_capture_say_it_too(run: Run, tmp_path: Path) -> None:
    page, saved = tmp_path / "page.html", tmp_path / "saved.npz"
    run("show", STRANGE, "-o", str(page))
    assert "has not seen text like this; try gpt2" in page.read_text(encoding="utf-8")
    run("show", STRANGE, "-o", str(saved))
    assert run("show", str(saved), "--head", "L0H0").err == NOTE


def test_another_model_is_never_said_to_be_small(run: Run, gpt2_folder: Path) -> None:
    assert run("show", STRANGE, "--model", str(gpt2_folder)).err == ""
