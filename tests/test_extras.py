"""The command that installs an extra, in the way in which attnviz was installed."""

import importlib.metadata
import importlib.util

import pytest

from attnviz.errors import command_to_install, missing, requirements_of, shortened

TEXTUAL = "textual<9,>=8"


def test_pip_is_called_by_the_python_that_runs_attnviz() -> None:
    command = command_to_install([TEXTUAL], "/some where/bin/python")
    assert command == '"/some where/bin/python" -m pip install "textual<9,>=8"'


def test_an_environment_without_pip_is_uvs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    command = command_to_install([TEXTUAL], "/env/bin/python")
    assert command == 'uv pip install --python /env/bin/python "textual<9,>=8"'


def test_an_extra_brings_the_packages_of_those_that_it_names() -> None:
    assert requirements_of("tui") == [TEXTUAL]
    assert requirements_of("ray") == [*requirements_of("scan"), "ray>=2.40"]
    assert requirements_of("nothing") == []


def test_the_metadata_tells_the_packages_and_packages_that_are_always_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    always = 'colors; python_version > "3"'
    said = ["torch>=2", always, 'textual<9,>=8; extra == "tui"', 'x[y]>1; extra == "tui"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: said)
    assert requirements_of("tui") == [TEXTUAL, "x[y]>1"]


def test_the_error_is_one_sentence_with_the_command() -> None:
    error = missing("the app needs textual", "tui")
    assert str(error).startswith("the app needs textual, which is not installed; install it: ")
    assert str(error).endswith('"textual<9,>=8".')


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (f"/{'a' * 200}/attnviz.whl", f"/{'a' * 200}/attnviz.whl"),
        (f"/{'a' * 400}", f"/{'a' * 39}…{'a' * 39}"),
        ("b" * 200, f"{'b' * 40}…{'b' * 39}"),
    ],
)
def test_a_command_is_told_with_its_paths_whole(word: str, shown: str) -> None:
    assert shortened(f"uv tool install {word}") == f"uv tool install {shown}"


def test_a_quotation_alone_is_shortened_whatever_apostrophes_stand_beside_it() -> None:
    path, words = f"/{'a' * 30}/", "in its authors' format, which is one that is used nowhere else "
    told = f"the file '{path}' is {words * 2}and the model's own"
    assert shortened(told) == told
    long = f"/tmp/{'b ' * 60}/c"
    more = f"{told}; see '{{}}', the users' own"
    assert shortened(more.format(long)) == more.format(f"{long[:40]}…{long[-39:]}")
