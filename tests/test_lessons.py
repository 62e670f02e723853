"""The lessons' sentences are there, and bring out the heads that they are about."""

import io
from pathlib import Path

import pytest

import attnviz
from attnviz.inputs.text import Stdin, TextInput, read_lines, read_text
from attnviz.kit.choose import plan_capture
from attnviz.kit.prepare import HeadOptions

SAMPLES = Path(__file__).parents[1] / "sample_texts"
MOLES = (SAMPLES / "moles.txt").read_text(encoding="utf-8").splitlines()

SENTENCES: list[tuple[str, str]] = [
    ("a fluffy blue creature roamed the verdant forest", "adjectives"),
    ("Bark is very cute and he is a dog", "pronouns"),
    ((SAMPLES / "mystery.txt").read_text(encoding="utf-8").rstrip("\n"), "mystery"),
    # of the others too little is on "one", or more is on "take", which tells no sense
    (MOLES[0], "senses"),
]


@pytest.fixture(scope="module")
def model() -> attnviz.Model:
    return attnviz.load_model()


@pytest.mark.parametrize(
    ("text", "behaviour"),
    [pytest.param(*sentence, id=sentence[1]) for sentence in SENTENCES],
)
def test_a_lessons_sentence_brings_out_its_head(
    model: attnviz.Model, text: str, behaviour: str
) -> None:
    record = model.capture(text).record
    heads = (named.head for named in model.named_heads if named.behaviour == behaviour)
    assert plan_capture(record, HeadOptions()).pick(record).heads == (next(heads),)


#           text, query, the keys that must be its strongest, but for BOS and the query itself
LINKS: list[tuple[str, str, str, set[str]]] = [
    (SENTENCES[0][0], "adjectives", "creature", {"fluffy", "blue"}),
    (SENTENCES[0][0], "adjectives", "forest", {"verdant"}),
    (SENTENCES[1][0], "pronouns", "he", {"Bark"}),
    (MOLES[0], "senses", "mole", {"American", "shrew"}),
    (MOLES[1], "senses", "mole", {"one"}),
    (MOLES[2], "senses", "mole", {"take", "biopsy"}),
]


@pytest.mark.parametrize(("text", "behaviour", "query", "keys"), LINKS)
def test_a_lessons_head_looks_where_the_lesson_says(
    model: attnviz.Model, text: str, behaviour: str, query: str, keys: set[str]
) -> None:
    head = next(named.head for named in model.named_heads if named.behaviour == behaviour)
    links = model.capture(text, heads=str(head)).links(top=len(keys) + 2)
    strongest = [link.key.label for link in links if link.query.label == query]
    assert {key for key in strongest if key not in ("BOS", query)} >= keys
    assert strongest[0] in (*keys, "BOS")


TERMINAL = Stdin(io.BytesIO(), is_terminal=True)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.txt")), ids=lambda path: path.name)
def test_a_sample_can_be_read_and_is_described(path: Path) -> None:
    found = read_text(None, path, TERMINAL)
    assert isinstance(found, TextInput)
    assert not found.text.endswith("\n")
    assert f"`{path.name}`" in (SAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("creature.txt", "a fluffy blue creature roamed the verdant forest"),
        ("bark.txt", "Bark is very cute and he is a dog"),
    ],
)
def test_the_sentences_of_the_lessons_are_there_exactly(name: str, text: str) -> None:
    assert read_text(None, SAMPLES / name, TERMINAL) == TextInput(text)


def test_the_mystery_stops_before_the_name() -> None:
    found = read_text(None, SAMPLES / "mystery.txt", TERMINAL)
    assert isinstance(found, TextInput)
    assert found.text.endswith(" . therefore the murderer was")
    assert 60 <= len(found.text.split()) <= 80


def test_the_moles_are_three_texts() -> None:
    assert list(read_lines(None, SAMPLES / "moles.txt", TERMINAL)) == [
        (1, "American shrew mole"),
        (2, "one mole of carbon dioxide"),
        (3, "take a biopsy of the mole"),
    ]
