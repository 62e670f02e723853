"""What a command loads: a picture library for pictures, torch for models, and neither for help."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import attnviz
from tests.factories import make_capture

HEAVY = ("torch", "transformers", "matplotlib", "torch._dynamo")

PROGRAM = """
import json, sys
sys.argv = ["attnviz", *json.loads(sys.argv[1])]
try:
    from attnviz.cli import run
    run()
finally:
    names = ("torch", "transformers", "matplotlib")
    print(json.dumps([n for n in names if n in sys.modules]), file=sys.stderr)
"""


def _loaded(*arguments: str) -> list[str]:
    """The heavy packages that are loaded at the end of a command, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    names: list[str] = json.loads(ended.stderr.splitlines()[-1])
    return names


@pytest.fixture(scope="module")
def capture_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("captures") / "capture.npz"
    attnviz.AttentionCapture(make_capture()).save(path)
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["show", "--help"], ["tokens", "--help"], ["models"]],
    ids=" ".join,
)
def test_what_needs_no_model_loads_nothing_heavy(arguments: list[str]) -> None:
    assert _loaded(*arguments) == []


@pytest.mark.parametrize(
    "options",
    [[], ["-f", "jsonl"], ["-f", "json"], ["--view", "grid"], ["--view", "heatmap"], ["-o", "npz"]],
    ids=" ".join,
)
def test_a_saved_capture_is_shown_without_torch(
    capture_file: str, tmp_path: Path, options: list[str]
) -> None:
    options = ["-o", str(tmp_path / "again.npz")] if options == ["-o", "npz"] else options
    assert _loaded("show", capture_file, *options) == []


def test_a_picture_of_a_saved_capture_loads_the_picture_library_alone(
    capture_file: str, tmp_path: Path
) -> None:
    assert _loaded("show", capture_file, "-o", str(tmp_path / "x.png")) == ["matplotlib"]


def test_the_built_in_model_runs_without_transformers() -> None:
    assert _loaded("show", "a fluffy blue creature") == ["torch"]


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, attnviz; attnviz.load, attnviz.capture, attnviz.__version__; "
        f"print([n for n in {HEAVY} if n in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"
