"""WordNet's files: definitions and examples become short texts."""

import itertools
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from attnviz.errors import InputError
from attnviz.training import wordnet
from attnviz.training.data import Packing, batches
from attnviz.training.tokenizer import WordEncoder
from attnviz.training.wordnet import Told
from attnviz.training.world.text import Answer

LINES = """  1 This software and database is being provided to you, the LICENSEE
00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 | that which exists by itself
02084071 05 n 02 dog 0 domestic_dog 0 001 @ 02083346 n 0000 | a canine; "the dog barked"; "he's fed"
09213565 17 n 01 bank 0 001 @ 09287968 n 0000 | sloping land; "on the bank the canoe lay"
08420278 14 n 02 bank 0 depository 0 000 | an institution; "he cashed a check at the bank downtown"
"""
VERBS = """00001740 29 v 02 breathe 0 take_a_breath 0 000 | draw air; "I can breathe better"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in wordnet.FILES:
        lines = {"data.noun": LINES, "data.verb": VERBS}.get(name, "")
        (tmp_path / name).write_text(lines, encoding="utf-8")
    return tmp_path


def test_definitions_stand_behind_their_word_and_examples_alone(folder: Path) -> None:
    assert set(wordnet.passages(folder)) == {
        "entity: that which exists by itself",
        "dog: a canine",
        "the dog barked",
        "he's fed",
        "bank: sloping land",
        "on the bank the canoe lay",
        "bank: an institution",
        "he cashed a check at the bank downtown",
        "breathe: draw air",
        "I can breathe better",
    }


def test_a_noun_of_several_classes_is_told_by_what_stands_before_it(folder: Path) -> None:
    assert set(wordnet.told(folder)) == {
        Told("sloping land :", "bank", "nature"),
        Told("on the", "bank", "nature", "the canoe lay"),
        Told("an institution :", "bank", "group"),
        Told("he cashed a check at the", "bank", "group", "downtown"),
    }
    drawn = itertools.islice(wordnet.texts(2, folder), 200)
    telling = {text.words: text.answers for text in drawn if text.answers}
    words = tuple("he cashed a check at the bank ( group ) downtown".split())
    assert telling[words] == (Answer("the class", 8, frozenset({"group"})),)


def test_the_same_seed_gives_the_same_texts_cut_as_the_tokenizer_cuts(
    folder: Path, world_tokenizer: Tokenizer
) -> None:
    drawn = list(itertools.islice(wordnet.texts(1, folder), 50))
    assert drawn == list(itertools.islice(wordnet.texts(1, folder), 50))
    encoder = WordEncoder(world_tokenizer)
    for text in drawn:
        assert encoder.text(text)[0] == encoder.typed(" ".join(text.words))[0]


def test_a_folder_without_wordnet_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="wordnet-base"):
        wordnet.passages(tmp_path)


def test_batches_hold_passages_of_wordnet(folder: Path, world_tokenizer: Tokenizer) -> None:
    encoder = WordEncoder(world_tokenizer)
    packing = Packing(256, natural=1.0, wordnet=folder)
    canine = encoder.word("canine")[-1]
    assert any((batch.ids == canine).any() for batch in batches("s", 2, encoder, packing))
