"""The command that installs an extra, in the way in which attnviz was installed."""

import importlib.metadata
import importlib.util
import shlex
from pathlib import Path

import pytest

from attnviz import errors
from attnviz.errors import command_to_install, missing, requirements_of, shortened

TEXTUAL = "textual<9,>=8"


def test_pip_is_called_by_the_python_that_runs_attnviz(tmp_path: Path) -> None:
    command = command_to_install([TEXTUAL], tmp_path, "/some where/bin/python")
    assert command == '"/some where/bin/python" -m pip install "textual<9,>=8"'


def test_an_environment_without_pip_is_uvs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    command = command_to_install([TEXTUAL], tmp_path, "/env/bin/python")
    assert command == 'uv pip install --python /env/bin/python "textual<9,>=8"'


def test_pipx_injects_into_the_environment_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "attnviz-2").mkdir()
    (tmp_path / "attnviz-2" / "pipx_metadata.json").write_text("{}")
    command = command_to_install([TEXTUAL], tmp_path / "attnviz-2")
    assert command == 'pipx inject attnviz-2 "textual<9,>=8"'


@pytest.mark.parametrize(
    ("receipt", "command"),
    [
        # the receipt, and what follows `uv tool install`
        ('[{ name = "attnviz", path = "/w/attnviz.whl" }]', f"--with {TEXTUAL} /w/attnviz.whl"),
        ('[{ name = "attnviz", editable = "/src" }]', f"--with {TEXTUAL} --editable /src"),
        ('[{ name = "attnviz", directory = "/src" }]', f"--with {TEXTUAL} /src"),
        ('[{ name = "attnviz" }]', f"--with {TEXTUAL} attnviz"),
        ('[{ name = "attnviz", specifier = "==1" }]', f"--with {TEXTUAL} attnviz==1"),
        (
            '[{ name = "attnviz" }, { name = "ray", specifier = ">=2.40" }]',
            f"--with {TEXTUAL} --with ray>=2.40 attnviz",
        ),
        ('"unknown"', f"--with {TEXTUAL} attnviz"),
        ('["unknown"]', f"--with {TEXTUAL} attnviz"),
        ("= [", f"--with {TEXTUAL} attnviz"),
    ],
)
def test_uv_installs_the_program_again_from_where_it_came_with_what_it_had(
    tmp_path: Path, receipt: str, command: str
) -> None:
    (tmp_path / "uv-receipt.toml").write_text(f"[tool]\nrequirements = {receipt}")
    words = shlex.split(command_to_install([TEXTUAL], tmp_path))
    assert words == ["uv", "tool", "install", *command.split()]


def test_an_extra_brings_the_packages_of_those_that_it_names() -> None:
    assert requirements_of("tui") == [TEXTUAL]
    assert requirements_of("ray") == [*requirements_of("scan"), "ray>=2.40"]
    assert requirements_of("nothing") == []


def test_where_there_are_no_sources_the_metadata_tells_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["torch>=2", 'attnviz[tui]; extra == "all"', 'textual<9,>=8; extra == "tui"']
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "attnviz" / "extras.py"))
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: said)
    assert requirements_of("all") == requirements_of("tui") == [TEXTUAL]
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'another'")
    assert requirements_of("tui") == [TEXTUAL]


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
