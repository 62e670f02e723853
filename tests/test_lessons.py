"""The lessons' sentences bring out the heads that they are about, which look where they say."""

from pathlib import Path

import pytest

import attnviz
from attnviz.kit.choose import plan_capture
from attnviz.kit.prepare import HeadOptions

SAMPLES = Path(__file__).parents[1] / "sample_texts"
MOLES = (SAMPLES / "moles.txt").read_text(encoding="utf-8").splitlines()

SENTENCES: list[tuple[str, str]] = [
    ("a fluffy blue creature roamed the verdant forest", "adjectives"),
    ("Bark is very cute and he is a dog", "pronouns"),
    ((SAMPLES / "mystery.txt").read_text(encoding="utf-8").rstrip("\n"), "mystery"),
    (MOLES[0], "senses"),  # of the second, "one mole", the head finds too little to be shown
    (MOLES[2], "senses"),
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
