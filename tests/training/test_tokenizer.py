"""The tokenizer: common words whole, everything covered, nothing refused."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from attnviz.models.folder.files import builtin_folder
from attnviz.training import tokenizer as tokenizers
from attnviz.training.tokenizer import WordEncoder
from attnviz.training.world.lexicon import common
from attnviz.training.world.texts import texts

BUNDLED = Tokenizer.from_file(str(builtin_folder() / "tokenizer.json"))
LICENCES = Path("/usr/share/common-licenses")


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


def test_a_word_is_the_same_token_behind_a_space_a_quote_a_bracket_and_a_line_break(
    world_tokenizer: Tokenizer,
) -> None:
    ids = {
        world_tokenizer.encode(text).ids[-1] for text in ("fox", "a fox", '"fox', "(fox", "a\nfox")
    }
    assert len(ids) == 1


def test_the_four_thousand_most_common_words_are_one_token_each(
    world_tokenizer: Tokenizer,
) -> None:
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


@pytest.mark.skipif(not LICENCES.is_dir(), reason="Debian's licence texts are not installed")
@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("GPL-2", "The licenses for most software"),
        ("LGPL-2.1", "The licenses for most software"),
        ("GPL-3", "The GNU General Public License is a free"),
    ],
)
def test_plain_english_takes_at_most_1_35_tokens_a_word(
    world_tokenizer: Tokenizer, name: str, begins: str
) -> None:
    text = (LICENCES / name).read_text(encoding="utf-8")
    words = text[text.index(begins) :].split()[:350]
    for tokenizer in (world_tokenizer, BUNDLED):
        assert len(tokenizer.encode(" ".join(words)).ids) <= 1.35 * len(words)
