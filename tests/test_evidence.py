"""Where a text may show a behaviour, by its words."""

import pytest

from attnviz.builtin.evidence import evidence
from attnviz.builtin.words import WORD, words_of
from attnviz.records.tokens import Token
from tests.factories import make_capture, make_tokens

Found = dict[str, list[tuple[str, list[str]]]]


def found(text: str) -> Found:
    """Each behaviour with its queries and their plausible keys, as words."""
    pieces, end = [], 0
    for match in WORD.finditer(text):
        pieces.append(text[end : match.end()])
        end = match.end()
    capture = make_capture(pieces)
    labels = [token.label for token in capture.query_tokens]
    return {
        behaviour: [(labels[o.query], [labels[k] for k in o.positions]) for o in occasions]
        for behaviour, occasions in evidence(capture).items()
    }


@pytest.mark.parametrize(
    ("text", "noun", "adjectives"),
    [
        ("a fluffy blue creature", "creature", ["fluffy", "blue"]),
        ("a big, very old and broken clock", "clock", ["big", "old", "broken"]),
        ("the old stone bridge fell", "bridge", ["old"]),  # the head of a compound
        ("an angry phone call", "call", ["angry"]),
        ("with chopped parsley", "parsley", ["chopped"]),
        ("a gold ring", "ring", ["gold"]),
        ("an old-fashioned hat", "hat", ["old-fashioned"]),
        ("bigger houses cost more", "houses", ["bigger"]),
        ("verdant forests", "forests", ["verdant"]),  # a word without any count
        ("the old server needs a disk", "server", ["old"]),
    ],
)
def test_a_noun_after_its_adjectives_is_found(text: str, noun: str, adjectives: list[str]) -> None:
    assert found(text)["adjectives"] == [(noun, adjectives)]


@pytest.mark.parametrize(
    "text",
    [
        "creature blue fluffy",  # no noun follows
        "She chopped parsley.",  # a verb
        "without adding milk",
        "to open doors",
        "the cat was very happy",
        "many people, several other dogs, the same day",  # determiners are no adjectives
        "twenty-seven houses",
        "we had better hurry",
    ],
)
def test_where_no_adjective_stands_before_a_noun_there_is_none(text: str) -> None:
    assert "adjectives" not in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "The ring was gone. It was the maid who stole the ring.",
        "The house was dark. It's Tom who did that",
    ],
)
def test_in_it_was_x_who_only_who_stands_for_x(text: str) -> None:
    assert [query for query, _ in found(text)["pronouns"]] == ["who"]


@pytest.mark.parametrize(
    ("text", "pronoun", "keys"),
    [
        ("Anna met Tom and she", "she", ["Anna"]),
        ("Anna met Tom and he", "he", ["Tom"]),
        ("the cup fell from the table and it", "it", ["cup", "table"]),
        ("the nurse took the cup and it", "it", ["cup"]),
        ("Leo crossed the garden. He", "He", ["Leo"]),
        ("The children saw the dog and they", "they", ["children"]),
        ("Tom and Anna left, and they", "they", ["Tom", "Anna"]),
        ("the doctor who", "who", ["doctor"]),
        ("my great-grandfather, who", "who", ["great-grandfather"]),
        ("Bark is very cute and he", "he", ["Bark"]),  # a name that no list has
        ("we asked the pilot whether he", "he", ["pilot"]),
        ("the house was new. It was red", "It", ["house"]),
        ("we bought a cake. It was so sweet that we slept", "It", ["cake"]),
        ("they lost the key. It was in that box", "It", ["key"]),
        ("the house was new. It was red. Someone that", "It", ["house"]),
        ("the house was new, it was red and the people who sang", "it", ["house"]),
    ],
)
def test_a_pronoun_has_the_nouns_and_names_that_agree_with_it(
    text: str, pronoun: str, keys: list[str]
) -> None:
    assert found(text)["pronouns"] == [(pronoun, keys)]


@pytest.mark.parametrize(
    "text",
    [
        "she ran home",  # nobody stands before it
        "On the lawn it rains",
        "In the morning it was late",
        "The cup broke. Was it the dog that broke the cup?",
        "The house was old. It wasn't Anna that built the house",
        "The house is old. It is obvious that the roof leaks",
        "The house is old. It is likely to fall",
        "The house is old. It is said that a ghost lives there",
        "Who ate the cake?",
        "Margaret smiled and he",  # it can only be somebody else
        "The cat sat on the mat.",
    ],
)
def test_a_pronoun_that_can_stand_for_nothing_before_it_is_none(text: str) -> None:
    assert "pronouns" not in found(text)


def test_a_mystery_ends_in_was_and_has_people() -> None:
    text = "The duke was stabbed by Anna. Therefore the murderer was"
    assert found(text)["mystery"] == [("was", ["duke", "Anna"])]
    assert "mystery" not in found(text + " seen")
    other = "The nurse saw the maid steal the ring."
    for end in ("The thief is", "So the one who did it was", "Who took it? It was", "It must be"):
        expected = [] if end == "It must be" else [(end.split()[-1], ["nurse", "maid"])]
        assert found(f"{other} {end}").get("mystery", []) == expected
    assert "mystery" not in found("A lamp was stolen. Therefore the thief was")


def test_an_ambiguous_noun_has_the_content_words_before_it() -> None:
    assert found("one mole of carbon")["senses"] == [("mole", ["one"])]
    assert found("a biopsy of the mole")["senses"] == [("mole", ["biopsy"])]
    assert "senses" not in found("the mole")  # nothing tells its meaning
    assert "senses" not in found("the bells began to ring")  # a verb


def test_a_repeated_word_has_what_followed_it() -> None:
    assert found("Tom saw Anna and Tom")["induction"] == [("Tom", ["saw"])]
    assert "induction" not in found("the cat saw the dog")  # "the" alone is no repetition
    assert ("the", ["sea"]) in found("by the sea and by the")["induction"]


def test_a_text_that_shows_nothing_has_no_evidence() -> None:
    for text in ("Tomatoes ripen faster beside bananas.", "x = f(y)", "吃饭了吗"):
        assert found(text) == {}


def test_attention_that_is_not_causal_or_crosses_texts_has_no_evidence() -> None:
    assert evidence(make_capture(causal=False)) == {}


def test_words_are_put_together_from_pieces_whatever_the_tokenizer() -> None:
    text, tokens = make_tokens(
        ["Br", "id", "get", "'s", " can", "'t", "-do", " hat", "."], bos=True
    )
    words = [(word.text, word.tokens) for word in words_of(text, tokens)]
    assert words == [
        ("Bridget", (1, 2, 3)),
        ("'s", (4,)),
        ("can't-do", (5, 6, 7)),
        ("hat", (8,)),
        (".", (9,)),
    ]


def test_a_word_that_was_cut_off_is_left_out() -> None:
    tokens = (Token(0, 1, "get", 3, 6), Token(1, 2, " hat", 6, 10))
    assert [word.text for word in words_of("Bridget hat", tokens)] == []
    tokens = (Token(0, 1, "get", 4, 7), Token(1, 2, " hat", 7, 11))
    assert [word.text for word in words_of("Bridget hat", tokens)] == ["hat"]
