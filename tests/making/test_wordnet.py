"""WordNet's files: senses with their definitions and examples."""

from pathlib import Path

import pytest

from attnviz.errors import InputError
from making import wordnet
from making.wordnet import Told


def test_definitions_stand_behind_their_word_and_examples_alone(folder: Path) -> None:
    assert set(wordnet.passages(folder)) == {
        "entity: that which exists by itself",
        "dog: a canine",
        "the dog barked",
        "he's fed",
        "bank: sloping land",
        "on the bank the canoe lay",
        "bank: an institution holding deposits",
        "he cashed a check at the bank downtown",
        "breathe: draw air",
        "I can breathe better",
    }


def test_a_noun_of_several_classes_is_told_by_what_stands_before_it(folder: Path) -> None:
    assert set(wordnet.told(folder)) == {
        Told("sloping land :", "bank", "nature"),
        Told("on the", "bank", "nature", "the canoe lay"),
        Told("an institution holding deposits :", "bank", "group"),
        Told("he cashed a check at the", "bank", "group", "downtown"),
    }


def test_a_folder_without_wordnet_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="wordnet-base"):
        wordnet.passages(tmp_path)
