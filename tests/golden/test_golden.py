"""What every command prints, and every name that users type, as it was looked at and found good.

If a change is meant: `python -m tests.golden.make`, and read the difference.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from tests.golden.surface import formats, surfaces
from tests.golden.transcript import EXPECTED, same, transcript, transcripts, workplace

VIEWS = sorted((EXPECTED / "show" / "views").iterdir())
TEXTS = ["table", "heads", "filtered", "left-out"]


def name(path: Path) -> str:
    return str(path.relative_to(EXPECTED).with_suffix(""))


def printed(path: Path) -> str:
    """The standard output of a transcript."""
    return path.read_text().partition("\nexit 0\n")[2]


@pytest.fixture(scope="module")
def _workplace() -> Iterator[None]:
    with workplace():
        yield


@pytest.mark.usefixtures("_workplace")
@pytest.mark.parametrize("path", transcripts(), ids=name)
def test_a_command_prints_what_it_did(path: Path) -> None:
    expected = path.read_text()
    found = transcript(expected.splitlines()[0])
    if not same(expected, found):
        assert found == expected


@pytest.mark.parametrize("surface", sorted((EXPECTED / "surface").iterdir()), ids=name)
def test_names_options_and_defaults_are_what_they_were(surface: Path) -> None:
    assert surfaces()[surface.stem] == surface.read_text()


def test_every_command_has_its_names_and_a_transcript_of_each_format_and_of_an_error() -> None:
    assert set(surfaces()) == {each.stem for each in (EXPECTED / "surface").iterdir()}
    for command, promised in formats().items():
        known = [path.read_text() for path in (EXPECTED / command).rglob("*.txt")]
        assert any(re.search(r"^exit [1-9]", each, re.MULTILINE) for each in known), command
        for form in promised:
            good = rf" -f {form}\n(! .*\n)*exit 0\n"
            assert any(re.search(good, each) for each in known), (command, form)


@pytest.mark.parametrize(
    ("expected", "found", "equal"),
    [
        ("L0H1 0.12", "L0H1 0.13", True),  # rounded on another processor
        ("L0H1 0.12", "L0H1 0.14", False),
        ("16380.0", "16390.0", True),  # four digits
        ("-0.00", "0.00", True),
        ("−0.12", "0.12", False),
        ("L0H1 0.12", "L0H2 0.12", False),
        ("12 rows", "13 rows", False),
        ("weight 0.1", "weights 0.1", False),
        ("0.1 0.2", "0.1", False),
    ],
)
def test_only_a_last_digit_may_differ(expected: str, found: str, equal: bool) -> None:
    assert same(expected, found) is equal


@pytest.mark.parametrize("path", VIEWS, ids=name)
def test_no_line_is_wider_than_the_terminal(path: Path) -> None:
    width = int(path.stem.split("-")[-2])
    assert all(cell_len(Text.from_ansi(line).plain) <= width for line in printed(path).split("\n"))


@pytest.mark.parametrize("path", [path for path in VIEWS if "plain" in path.stem], ids=name)
def test_no_line_ends_in_spaces(path: Path) -> None:
    assert [line for line in printed(path).split("\n") if line.endswith(" ")] == []


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("view", TEXTS)
def test_colours_add_nothing_that_is_not_there_without_them(view: str, width: int) -> None:
    colored, plain = (
        printed(EXPECTED / "show" / "views" / f"{view}-{width}-{colors}.txt")
        for colors in ("truecolor", "plain")
    )
    assert Text.from_ansi(colored).plain.split() == plain.split()
