"""Natural English: the passages of WordNet, the texts made of them, and what word lists tell."""

import itertools
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from attnviz.errors import InputError
from making import natural, wordnet
from making.data import Packing, batches
from making.tokenizer import WordEncoder
from making.wordnet import Told
from making.world.text import Answer, Text


def drawn(folder: Path, count: int = 900, seed: int = 1) -> list[Text]:
    return list(itertools.islice(natural.texts(seed, folder), count))


def linked(folder: Path) -> dict[str, set[tuple[str, str, str]]]:
    """The links of each text: (behaviour, query, keys)."""
    return {
        text.source: {
            (x.behaviour, text.words[x.query], " ".join(text.words[k] for k in sorted(x.keys)))
            for x in text.links
        }
        for text in drawn(folder)
    }


def examples(folder: Path, *passages: str) -> None:
    """These examples instead of the folder's."""
    natural.told.cache_clear()
    for name in ("noun", "verb"):
        (folder / f"data.{name}").write_text("")
    quoted = "; ".join(f'"{passage}"' for passage in passages)
    (folder / "data.verb").write_text(f"00001740 29 v 01 keep 0 000 | hold in place; {quoted}\n")


def test_the_class_of_an_ambiguous_word_stands_behind_it(folder: Path) -> None:
    telling = {text.words: text.answers for text in drawn(folder, seed=2) if text.answers}
    words = tuple("he cashed a check at the bank ( group ) downtown".split())
    assert telling[words] == (Answer("the class", 8, frozenset({"group"})),)


def test_some_senses_are_told_by_words_of_their_definition(folder: Path) -> None:
    framed = [t for t in drawn(folder, 9000) if t.answers and "cashed" not in t.words]
    framed = [t for t in framed if t.links and t.words[-1] == ")" and ":" not in t.words]
    assert framed
    for text in framed:
        (link,) = text.links
        assert text.words[link.query] == "bank"
        assert {text.words[k] for k in link.keys} <= {"institution", "holding", "deposits"}


def test_passages_have_the_links_of_adjectives_and_pronouns(folder: Path) -> None:
    examples(folder, "the tired old man kept his hat")
    assert linked(folder)["The tired old man kept his hat."] == {
        ("adjectives", "man", "tired old"),
        ("pronouns", "his", "man"),
    }


def test_words_of_one_topic_tell_an_ambiguous_word_and_those_of_two_do_not(folder: Path) -> None:
    examples(folder, "the canoe lay at the bank", "a customer with a canoe saw the bank")
    found = linked(folder)
    assert ("senses", "bank", "canoe") in found["The canoe lay at the bank."]
    assert not any(k == "senses" for k, _, _ in found["A customer with a canoe saw the bank."])


def test_a_second_example_is_about_somebody_in_the_first(folder: Path) -> None:
    examples(folder, "the nurse was late", "she apologised", "a wall fell", "she left before him")
    first, second = natural.continued(folder)["she"]
    assert first == ("the nurse was late",)
    assert second == ("she apologised",)  # the other tells of two people
    assert ("pronouns", "She", "nurse") in linked(folder)["The nurse was late. She apologised"]


def test_no_pronoun_is_taken_for_one_that_stands_before_it(folder: Path) -> None:
    examples(folder, "he told a boy about his hat")
    (links,) = (v for k, v in linked(folder).items() if k == "He told a boy about his hat.")
    assert links == set()


def test_the_same_seed_gives_the_same_texts_cut_as_the_tokenizer_cuts(
    folder: Path, world_tokenizer: Tokenizer
) -> None:
    drawn = list(itertools.islice(natural.texts(1, folder), 50))
    assert drawn == list(itertools.islice(natural.texts(1, folder), 50))
    encoder = WordEncoder(world_tokenizer)
    for text in drawn:
        assert encoder.text(text)[0] == encoder.typed(" ".join(text.words))[0]


def test_batches_hold_passages_of_wordnet(folder: Path, world_tokenizer: Tokenizer) -> None:
    encoder = WordEncoder(world_tokenizer)
    packing = Packing(256, natural=1.0, wordnet=folder)
    canine = encoder.word("canine")[-1]
    assert any((batch.ids == canine).any() for batch in batches("s", 2, encoder, packing))


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
