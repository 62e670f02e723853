"""The little world: its ground truth is where it says, and held-out pairs stay out of training."""

import itertools

import pytest

from attnviz.training.world.lexicon import FEMALE, MALE, reserved
from attnviz.training.world.senses import CLUES, SENSES
from attnviz.training.world.text import Text, Writer, joined
from attnviz.training.world.texts import KINDS, texts

COUNT = 200


def some(kind: str | None, *, held_out: bool = False, seed: int = 0) -> list[Text]:
    return list(itertools.islice(texts(seed, kind, held_out=held_out), COUNT))


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_the_source_has_every_word_in_order(kind: str | None) -> None:
    for text in some(kind):
        assert text.source.replace(" ", "") == "".join(text.words)


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_links_look_back_and_answers_are_accepted(kind: str | None) -> None:
    for text in some(kind):
        for link in text.links:
            assert link.keys
            assert max(link.keys) < link.query < len(text.words)
        for answer in text.answers:
            assert text.words[answer.word] in answer.accepted


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_texts(kind: str) -> None:
    assert some(kind) == some(kind)
    assert some(kind) != some(kind, seed=1)


def test_adjectives_stand_before_their_noun_and_answer_for_it() -> None:
    for text in some("adjectives"):
        nouns = {text.words[link.query]: link for link in text.links}
        for noun, link in nouns.items():
            between = text.words[min(link.keys) : link.query]
            adjectives = {text.words[k] for k in link.keys}
            assert set(between) - adjectives <= {",", "and", "very"}, (noun, text.source)


def test_pairs_of_adjective_and_noun_are_new_in_held_out_texts_and_only_there() -> None:
    for held_out in (False, True):
        for text in some("adjectives", held_out=held_out):
            for link in text.links:
                for key in link.keys:
                    assert reserved(text.words[key], text.words[link.query]) is held_out


def test_pairs_of_clue_and_ambiguous_word_are_new_in_held_out_texts_and_only_there() -> None:
    for held_out in (False, True):
        for text in some("senses", held_out=held_out):
            for link in text.links:
                for key in link.keys:
                    assert reserved(text.words[key], text.words[link.query]) is held_out


def test_a_pronoun_means_the_last_one_named_of_its_gender() -> None:
    gender = dict.fromkeys(MALE, "he") | dict.fromkeys(FEMALE, "she")
    subject = {"his": "he", "her": "she"}
    for text in some("pronouns"):
        for link in text.links:
            (name,) = link.keys
            pronoun = text.words[link.query].lower()
            pronoun = subject.get(pronoun, pronoun)
            assert gender.get(text.words[name], pronoun) == pronoun
            later = text.words[name + 1 : link.query]
            assert all(gender.get(word) != pronoun for word in later), text.source


def test_what_follows_his_or_her_is_the_thing_told_of_the_name() -> None:
    for text in some("pairs"):
        followed = {answer.word: text.words[answer.word] for answer in text.answers}
        for link in text.links:
            (name,) = link.keys
            if text.words[link.query].lower() in ("his", "her"):
                sentence = text.words[:name][::-1]
                start = next((i for i, w in enumerate(sentence) if w == "."), len(sentence))
                told = [word.lower() for word in sentence[:start]]
                assert followed[link.query + 1].lower() in told, text.source


def test_the_last_was_of_a_mystery_links_to_every_mention_of_the_answer() -> None:
    for text in some("mystery"):
        (link,), (answer,) = text.links, text.answers
        assert text.words[link.query] == "was"
        assert answer.word == link.query + 1
        assert "was" not in text.words[answer.word :]
        assert {text.words[k] for k in link.keys} == {text.words[answer.word]}


def test_the_clues_of_an_ambiguous_word_belong_to_one_of_its_senses() -> None:
    for text in some("senses"):
        for link in text.links:
            clues = {text.words[k].lower() for k in link.keys}
            senses = SENSES[text.words[link.query].lower()].split()
            assert any(clues <= set(CLUES[s].lower().split()) for s in senses), text.source


def test_joined_texts_keep_every_word_of_every_link() -> None:
    parts = some("adjectives")[:3]
    whole = joined(parts)
    said = [(whole.words[x.query], {whole.words[k] for k in x.keys}) for x in whole.links]
    alone = [(t.words[x.query], {t.words[k] for k in x.keys}) for t in parts for x in t.links]
    assert said == alone


def test_a_writer_begins_sentences_with_a_capital_when_asked() -> None:
    writer = Writer("plain", capitals=True)
    writer.say("it rained . the sun came")
    assert writer.text().source == "It rained. The sun came"
