"""The lessons' sentences are there, and bring out the heads that they are about."""

import io
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.draw.labels import standing
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
    ("text", "behaviour"), [pytest.param(*sentence, id=sentence[1]) for sentence in SENTENCES]
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


# Each sentence of docs/lessons.md that a run can confirm or refute, and the run that does.

LESSONS = " ".join((SAMPLES.parent / "docs/lessons.md").read_text(encoding="utf-8").split())
CREATURE, BARK = SENTENCES[0][0], SENTENCES[1][0]
SHORT, ASKED = "a fluffy blue creature", f"{CREATURE} . the creature was"


@cache
def weights_of(name: str, kind: Any, text: str) -> tuple[list[str], list[str], Any]:
    """The labels of queries and keys, and the pattern (layers, heads, queries, keys)."""
    record = attnviz.load_model(name, kind=kind).capture(text).record
    sides = (record.query_tokens, record.key_tokens)
    queries, keys = ([standing(token.label) for token in side] for side in sides)
    return queries, keys, np.stack([layer.weights for layer in record.layers])


def of_encoder(query: str, key: str, head: str | None = None) -> Any:
    """The weights of all heads of the translator's encoder, or of one."""
    queries, keys, weights = weights_of("translator", "encoder", BARK)
    found = weights[:, :, last(queries, query), last(keys, key)]
    return found if head is None else found[int(head[1]), int(head[3])]


def last(labels: list[str], label: str) -> int:
    return len(labels) - 1 - labels[::-1].index(label)


def strongest(query: str, head: str) -> str:
    queries, keys, weights = weights_of("translator", "encoder", BARK)
    row = weights[int(head[1]), int(head[3]), last(queries, query)]
    at = int(row.argmax())
    return keys[at] if last(keys, keys[at]) == at else f"first {keys[at]}"


def builtin(query: str, key: str, head: str, text: str = CREATURE) -> float:
    queries, keys, weights = weights_of("builtin", None, text)
    return float(weights[int(head[1]), int(head[3]), last(queries, query), last(keys, key)])


def explained(text: str = SHORT, **options: Any) -> Mapping[str, Any]:
    return attnviz.explain(text, **options).arrays


def step_5(among: str = "") -> str:
    file = SAMPLES / among if among else None
    return " ".join(str(attnviz.explain(SHORT, only="5", among=file)).split())


def links_of(head: str) -> list[float]:
    pairs = [(a, b) for word in ("Bark", "cute", "he") for a, b in ((word, "dog"), ("dog", word))]
    return [float(of_encoder(a, b, head)) for a, b in pairs]


def after_creature_was(**options: Any) -> Any:
    return attnviz.ablate(ASKED, heads="L4H0", answer="fluffy", **options).rows[0]


def cross(text: str) -> tuple[list[str], list[str], Any]:
    return weights_of("translator", None, text)


def random_cosines() -> float:
    """The 95th percentile of the largest cosine of a random direction with the vocabulary."""
    table = attnviz.load_model()._loaded.model.wte.weight.detach().numpy()  # type: ignore
    table = table - table.mean(axis=0)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    drawn = np.random.default_rng(0).standard_normal((256, table.shape[1]))
    return float(
        np.quantile((drawn / np.linalg.norm(drawn, axis=1)[:, None] @ table.T).max(1), 0.95)
    )


BLUE_CREATURE = "a blue creature roamed the forest"
CLAIMS: dict[str, Callable[[], bool]] = {
    "row of *creature* has its colour at *fluffy* and *blue*": lambda: (
        min(builtin("creature", key, "L3H2") for key in ("fluffy", "blue")) > 0.4
    ),
    "Type another adjective before *creature*: it gets a column, and its share": lambda: (
        builtin("creature", "old", "L3H2", "a fluffy blue old creature") > 0.1
    ),
    "Point at *BOS* in the table: its products sum to less than zero": lambda: (
        (explained(only="3")["scores"][4, 0]) < 0
    ),
    "*fluffy* comes next. Switch off L4H0": lambda: (
        attnviz.predict(ASKED).rows[0]["token"] == "fluffy" and after_creature_was()["change"] < -1
    ),
    "L3H1 attends to the token before, and others rest on BOS": lambda: (
        builtin("fluffy", "a", "L3H1") > 0.5 and builtin("forest", "BOS", "L0H0") > 0.5
    ),
    "French puts these adjectives after the noun, so the pattern is not a diagonal": lambda: (
        cross(CREATURE)[0].index("bleue") > cross(CREATURE)[0].index("créature")
    ),
    "seven French positions ask, so there are seven queries; seven English tokens (with BOS)": (
        lambda: [len(side) for side in cross(BLUE_CREATURE)[:2]] == [7, 7]
    ),
    "The weighted sum carries what the encoder knows about `creature`": lambda: (
        cross(BLUE_CREATURE)[2][1, 2, 1, cross(BLUE_CREATURE)[1].index("creature")] > 0.99
    ),
    "One head (L1H3) attends to `cute` most, and to `he` nearly as much": lambda: (
        strongest("dog", "L1H3") == "cute"
        and of_encoder("dog", "he", "L1H3") > 0.8 * of_encoder("dog", "cute", "L1H3")
    ),
    "L1H0 attends to the second `is`, and L1H1 to `and`": lambda: (
        (strongest("dog", "L1H0"), strongest("dog", "L1H1")) == ("is", "and")
    ),
    "The heads of layer 0 stay with `dog` itself": lambda: of_encoder("dog", "dog")[0].min() > 0.99,
    "those of layer 2 rest on `a` or on BOS": lambda: (
        [strongest("dog", f"L2H{n}") for n in range(4)] == ["BOS", "a", "a", "a"]
    ),
    "`Bark` has 0.06 at most": lambda: round(of_encoder("dog", "Bark").max(), 2) == 0.06,
    "One head, L1H2, has all six links": lambda: (
        min(links_of("L1H2")) > 0.04
        and all(
            min(links_of(f"L{m}H{n}")) < 0.01
            for m in range(3)
            for n in range(4)
            if (m, n) != (1, 2)
        )
    ),
    "The weights of the two directions differ": lambda: (
        of_encoder("cute", "dog", "L1H2") > 5 * of_encoder("dog", "cute", "L1H2")
    ),
    "`dog` may attend to `cute`, but `cute` may not attend to `dog`": lambda: (
        builtin("cute", "dog", "L1H1", BARK) == 0 < builtin("dog", "cute", "L1H1", BARK)
    ),
    "The position that writes `créature` has `une` as its input": lambda: (
        weights_of("translator", "decoder", BLUE_CREATURE)[2][:, :, 1, 2:].max() == 0
    ),
    "The lesson counts 175,181,291,520 in all": lambda: (
        2 * 50257 * 12288 + 96 * (4 * 12288**2 + 2 * 12288 * 49152) == 175_181_291_520
    ),
    "A model that does not know a character reads it byte by byte": lambda: (
        len(attnviz.load_model().capture("楚留香").record.query_tokens) == 2 + 3 * 3
    ),
    "in the stream after it *fluffy* can be read, and of *blue* not yet enough": lambda: (
        "after it fluffy" in step_5()
        and "adds reads as blue; after it, the stream does not" in step_5()
    ),
    "Before, the nearest words are other creatures, of whatever colour": lambda: (
        step_5("creatures.txt").partition("added (")[0].count("[creature]") == 3
    ),
    "where `show` draws or prints a pattern, it does so by itself": lambda: (
        "parts of characters merged" in " ".join(str(attnviz.capture("楚留香").show()).split())
    ),
    "In a trained model, too, the sum over the heads is the layer's output": lambda: (
        "equals the layer's output" in " ".join(str(attnviz.explain(SHORT, only="6")).split())
    ),
    "for 19 of 20 random directions, no token of the vocabulary is as close": lambda: (
        random_cosines() < 0.40
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_sentence_of_the_lessons_is_there_and_true(claim: str) -> None:
    assert claim in LESSONS
    assert CLAIMS[claim]()
