"""The tokenizer: common words whole, everything covered, nothing refused."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from attnviz.models.folder.files import bundled_folder
from making import tokenizer as tokenizers
from making.tokenizer import WordEncoder
from making.world.lexicon import common
from making.world.texts import texts

BUNDLED = Tokenizer.from_file(str(bundled_folder("builtin") / "tokenizer.json"))


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [text[a:b] for a, b in tokenizer.encode(text).offsets]


@pytest.mark.parametrize(
    "text",
    [
        "a fluffy blue creature roamed the verdant forest",
        "Bark is very cute and he is a dog",
        "American shrew mole",
        "one mole of carbon dioxide",
        "take a biopsy of the mole",
        "therefore the murderer was",
    ],
)
def test_the_sentences_of_the_lessons_are_one_token_a_word(
    world_tokenizer: Tokenizer, text: str
) -> None:
    assert pieces(world_tokenizer, text) == text.split()


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("didn't", "did n't"),
        ("Don't", "Do n't"),
        ("can't", "can 't"),
        ("won't", "wo n't"),
        ("AREN'T", "ARE N'T"),
        ("it's Anna's", "it 's Anna 's"),
        ("we're I'll", "we 're I 'll"),
        ("couldn't've", "could n't 've"),
        ("Anna’s cat didn’t go", "Anna ’s cat did n’t go"),  # a printer's apostrophe
        ("“red-haired”—said", "“ red - haired ” — said"),
        ("canton cannot", "canton cannot"),  # not "can't"
    ],
)
def test_contractions_are_cut_into_the_verb_and_its_end(
    world_tokenizer: Tokenizer, text: str, cut: str
) -> None:
    assert " ".join(words_of(world_tokenizer, text)) == cut


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """The cuts of a text, with the pieces of a word joined."""
    encoding = tokenizer.encode(text)
    ends = itertools.groupby(
        zip(encoding.word_ids, encoding.offsets, strict=True), key=lambda each: each[0]
    )
    spans = [[offset for _, offset in group] for _, group in ends]
    return [text[span[0][0] : span[-1][1]] for span in spans]


def test_printed_marks_are_the_tokens_of_typed_ones(world_tokenizer: Tokenizer) -> None:
    printed = world_tokenizer.encode("“Anna’s” — ‘it’s’").ids
    assert printed == world_tokenizer.encode("\"Anna's\" - 'it's'").ids


def test_the_ends_of_contractions_are_one_token_each(world_tokenizer: Tokenizer) -> None:
    known = world_tokenizer.get_vocab()
    for short, long in tokenizers.LONG.items():
        assert tokenizers.spelled(short) in known
        assert tokenizers.spelled(long) in known


def test_a_word_is_the_same_token_behind_a_space_a_quote_a_bracket_and_a_line_break(
    world_tokenizer: Tokenizer,
) -> None:
    ids = {
        world_tokenizer.encode(text).ids[-1] for text in ("fox", "a fox", '"fox', "(fox", "a\nfox")
    }
    assert len(ids) == 1


def test_the_four_thousand_most_common_words_are_one_token_each(world_tokenizer: Tokenizer) -> None:
    assert all(len(world_tokenizer.encode(word).ids) == 1 for word in common("common")[:4000])


@given(st.text())
def test_any_text_is_covered_but_for_white_space(world_tokenizer: Tokenizer, text: str) -> None:
    encoding = world_tokenizer.encode(text)
    covered = {i for a, b in encoding.offsets for i in range(a, b)}
    assert covered >= {i for i, c in enumerate(text) if not c.isspace()}
    assert tokenizers.END not in encoding.tokens


def test_the_same_tokenizer_is_built_every_time(world_tokenizer: Tokenizer) -> None:
    assert tokenizers.build().to_str() == world_tokenizer.to_str()


def test_encoding_word_by_word_gives_the_tokens_of_the_whole_text(
    world_tokenizer: Tokenizer,
) -> None:
    encoder = WordEncoder(Tokenizer.from_str(world_tokenizer.to_str()))
    for text in itertools.islice(texts(0), 300):
        ids, positions = encoder.text(text)
        assert ids[1:] == world_tokenizer.encode(text.source).ids
        assert [i for span in positions for i in span] == list(range(1, len(ids)))


PLAIN = {
    "a notice": """The library on the corner of the market place will close for repairs at the end
        of next month. Readers who have borrowed books may return them to the town hall, where a
        member of the staff will be present on weekdays between nine and five. Nobody has to pay a
        fee for a book that was due during the repairs. If you have asked for a book from another
        library, you will receive a letter as soon as it arrives. The council hopes that the new
        roof, which the builders expect to finish before the winter, will keep the rooms dry.""",
    "a report": """In the spring of that year the river rose higher than anyone in the valley could
        remember, and most families had to leave their houses within an hour. The engineers who
        came to examine the old bridge found that two of its pillars had moved, although the road
        above them seemed to be safe. They advised the government to build another one further
        north, because the ground there is harder and the water less deep. It took three years to
        collect the money, and by then the traffic between both sides had almost doubled.""",
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_english_takes_at_most_1_2_tokens_a_word(
    world_tokenizer: Tokenizer, name: str
) -> None:
    words = PLAIN[name].split()
    for tokenizer in (world_tokenizer, BUNDLED):
        assert len(tokenizer.encode(" ".join(words)).ids) <= 1.2 * len(words)
