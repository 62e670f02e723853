"""Terminal outputs, as they were looked at and found good."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from tests.golden.views import EXPECTED, cases, save_capture, shown


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "capture.npz"
    save_capture(path)
    return path


@pytest.mark.parametrize(("view", "width", "color"), cases())
def test_a_view_looks_as_it_did(capture: Path, view: str, width: int, color: str) -> None:
    """If the change is meant: `python -m tests.golden.views`, and look at the difference."""
    expected = (EXPECTED / f"{view}-{width}-{color}.txt").read_text()
    assert shown(capture, view, width, color) == expected


@pytest.mark.parametrize(("view", "width", "color"), cases())
def test_no_line_is_wider_than_the_terminal(view: str, width: int, color: str) -> None:
    lines = (EXPECTED / f"{view}-{width}-{color}.txt").read_text().splitlines()
    assert all(cell_len(Text.from_ansi(line).plain) <= width for line in lines)


@pytest.mark.parametrize(("view", "width", "color"), [c for c in cases() if c[2] == "plain"])
def test_no_line_ends_in_spaces(view: str, width: int, color: str) -> None:
    lines = (EXPECTED / f"{view}-{width}-{color}.txt").read_text().split("\n")
    assert [line for line in lines if line.endswith(" ")] == []


@pytest.mark.parametrize(("view", "width", "color"), [c for c in cases() if c[2] == "truecolor"])
def test_colours_add_nothing_that_is_not_there_without_them(
    view: str, width: int, color: str
) -> None:
    if view in ("table", "heads", "filtered", "left-out"):
        colored = (EXPECTED / f"{view}-{width}-{color}.txt").read_text()
        plain = (EXPECTED / f"{view}-{width}-plain.txt").read_text()
        assert Text.from_ansi(colored).plain.split() == plain.split()


def test_every_expected_output_is_tested() -> None:
    names = {f"{view}-{width}-{color}.txt" for view, width, color in cases()}
    assert {path.name for path in EXPECTED.iterdir()} == names
