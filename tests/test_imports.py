"""What a command loads: a picture library for pictures, torch for models, and neither for help."""

import subprocess
import sys
from pathlib import Path

import pytest

import attnviz
from tests.factories import make_capture
from tests.programs import loaded_by, loaded_in_turn

HEAVY = ("torch", "transformers", "matplotlib", "torch._dynamo")


@pytest.fixture(scope="module")
def capture_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("captures") / "capture.npz"
    attnviz.AttentionCapture(make_capture()).save(path)
    return str(path)


def test_what_needs_no_model_loads_nothing_heavy() -> None:
    asked = "--version", "--help", "--help -f json", "show --help", "tokens --help", "models"
    for line, loaded in zip(asked, loaded_in_turn(*map(str.split, asked))[0], strict=True):
        assert loaded == [], line


def test_a_saved_capture_is_shown_without_torch(capture_file: str, tmp_path: Path) -> None:
    saved = f"-o {tmp_path / 'again.npz'}"
    asked = "", "-f jsonl", "-f json", "--view grid", "--view heatmap", saved
    commands = [["show", capture_file, *options.split()] for options in asked]
    for options, loaded in zip(asked, loaded_in_turn(*commands)[0], strict=True):
        assert loaded == [], options


def test_a_picture_of_a_saved_capture_loads_the_picture_library_alone(
    capture_file: str, tmp_path: Path
) -> None:
    assert loaded_by("show", capture_file, "-o", str(tmp_path / "x.png"))[0] == ["matplotlib"]


def test_the_built_in_model_runs_without_transformers() -> None:
    assert loaded_by("show", "a fluffy blue creature")[0] == ["torch"]


def test_a_gpt2_folder_is_shown_without_transformers(gpt2_folder: Path) -> None:
    heavy, shown = loaded_by("show", "abc def", "--model", str(gpt2_folder))
    assert heavy == ["torch"]
    assert "f → " in shown


@pytest.mark.parametrize("line", ["attnviz show -H ", "attnviz show -m b", "attnviz show --v"])
def test_a_shell_is_answered_without_anything_heavy(line: str) -> None:
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    heavy, offered = loaded_by(_ATTNVIZ_COMPLETE="complete_bash", **asked)
    assert heavy == []
    assert offered.strip()


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, attnviz; attnviz.load, attnviz.capture, attnviz.__version__; "
        f"print([n for n in {HEAVY} if n in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"
