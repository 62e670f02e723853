"""The sample texts can be read as what their README says they are."""

import io
from pathlib import Path

import pytest

from attnviz.inputs.text import Stdin, TextInput, read_lines, read_text

FOLDER = Path(__file__).parents[2] / "sample_texts"
TERMINAL = Stdin(io.BytesIO(), is_terminal=True)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.name)
def test_a_sample_can_be_read_and_is_described(path: Path) -> None:
    found = read_text(None, path, TERMINAL)
    assert isinstance(found, TextInput)
    assert not found.text.endswith("\n")
    assert f"`{path.name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("creature.txt", "a fluffy blue creature roamed the verdant forest"),
        ("bark.txt", "Bark is very cute and he is a dog"),
    ],
)
def test_the_sentences_of_the_lessons_are_there_exactly(name: str, text: str) -> None:
    assert read_text(None, FOLDER / name, TERMINAL) == TextInput(text)


def test_the_mystery_stops_before_the_name() -> None:
    found = read_text(None, FOLDER / "mystery.txt", TERMINAL)
    assert isinstance(found, TextInput)
    assert found.text.endswith(" . therefore the murderer was")
    assert 60 <= len(found.text.split()) <= 80


def test_the_moles_are_three_texts() -> None:
    assert list(read_lines(None, FOLDER / "moles.txt", TERMINAL)) == [
        (1, "American shrew mole"),
        (2, "one mole of carbon dioxide"),
        (3, "take a biopsy of the mole"),
    ]
