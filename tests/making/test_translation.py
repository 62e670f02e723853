"""English and French of the little world: agreement, elision, contraction, alignment."""

import itertools

import pytest
from tokenizers import Tokenizer

from attnviz.models.folder.files import bundled_folder
from making import translator
from making.tokenizer import WordEncoder
from making.translation.data import IGNORED, batches, encoded
from making.translation.evaluate import held_out
from making.translation.grammar import Phrase, _determiner, pairs
from making.translation.lexicon import ADJECTIVES, NOUNS, VERBS, Gender, Number
from making.world.lexicon import reserved

COUNT = 600
ENGLISH = {a.english: a for a in ADJECTIVES}
NOUN = {n.english: n for n in NOUNS}


def some(*, held_out: bool = False, seed: int = 0) -> list[Phrase]:
    return list(itertools.islice(pairs(seed, held_out=held_out), COUNT))


@pytest.mark.parametrize(
    ("english", "gender", "number", "french"),
    [
        ("blue", "f", "s", "bleue"),
        ("fluffy", "f", "s", "duveteuse"),
        ("fluffy", "m", "p", "duveteux"),
        ("white", "f", "p", "blanches"),
        ("red", "f", "s", "rouge"),
        ("beautiful", "m", "p", "beaux"),
        ("old", "f", "p", "vieilles"),
        ("dry", "f", "s", "sèche"),
        ("loyal", "m", "p", "loyaux"),
        ("cute", "f", "s", "mignonne"),
    ],
)
def test_adjectives_agree(english: str, gender: Gender, number: Number, french: str) -> None:
    assert ENGLISH[english].french(gender, number) == french


def test_some_adjectives_change_before_a_vowel() -> None:
    assert ENGLISH["old"].french("m", "s", vowel=True) == "vieil"
    assert ENGLISH["beautiful"].french("m", "s", vowel=True) == "bel"
    assert ENGLISH["blue"].french("m", "s", vowel=True) == "bleu"


@pytest.mark.parametrize(
    ("english", "gender", "number", "following", "french"),
    [
        ("the", "m", "s", "chat", "le"),
        ("the", "m", "s", "arbre", "l'"),
        ("the", "f", "s", "horloge", "l'"),
        ("the", "m", "s", "hibou", "le"),
        ("the", "m", "p", "arbres", "les"),
        ("this", "m", "s", "arbre", "cet"),
        ("this", "m", "s", "chat", "ce"),
        ("her", "f", "s", "école", "son"),
        ("her", "f", "s", "petite", "sa"),
        ("his", "f", "p", "écoles", "ses"),
        ("a", "f", "s", "créature", "une"),
    ],
)
def test_determiners_agree_and_elide(
    english: str, gender: Gender, number: Number, following: str, french: str
) -> None:
    assert _determiner(english, gender, number, following) == french


def test_plurals_and_verbs_have_their_forms() -> None:
    assert (NOUN["horse"].french_plural, NOUN["mouse"].english_plural) == ("chevaux", "mice")
    verb = {v.english: v for v in VERBS}["roamed"]
    assert (verb.french("s"), verb.french("p")) == ("parcourait", "parcouraient")


def test_every_french_word_stands_for_english_words_that_are_there() -> None:
    for phrase in some():
        for word in phrase.french:
            assert all(0 <= key < len(phrase.english) for key in word.keys)
            assert word.keys or word.word in ("et", ",")


def test_every_content_word_is_aligned_with_its_own_english() -> None:
    french = {}
    for adjective in ADJECTIVES:
        for gender, number in itertools.product(("m", "f"), ("s", "p")):
            for vowel in (False, True):
                form = adjective.french(gender, number, vowel=vowel)  # type: ignore[arg-type]
                french.setdefault(form, set()).add(adjective.english)
    for noun in NOUNS:
        french.setdefault(noun.french, set()).add(noun.english)
        french.setdefault(noun.french_plural, set()).update((noun.english_plural, noun.english))
    checked = 0
    for phrase in some():
        for word in phrase.french:
            if word.content and word.word in french:
                (key,) = word.keys
                checked += 1
                assert phrase.english[key].lower() in {w.lower() for w in french[word.word]}
    assert checked > COUNT


def test_contracted_articles_stand_for_two_words() -> None:
    seen = set()
    for phrase in some():
        for word in phrase.french:
            if word.word in ("du", "au", "aux"):
                seen.add(word.word)
                english = [phrase.english[key] for key in sorted(word.keys)]
                assert english in (["of", "the"], ["to", "the"])
    assert seen == {"du", "au", "aux"}


def test_adjectives_stand_on_nouns_in_held_out_pairs_that_training_never_has() -> None:
    for new in (False, True):
        for phrase in some(held_out=new):
            words = [word.lower() for word in phrase.english]
            for at, word in enumerate(words[:-1]):
                if word in ENGLISH and words[at + 1] in NOUN and words[at + 1] != "light":
                    assert reserved(word, words[at + 1]) is new, " ".join(words)


def test_every_held_out_pair_has_an_adjective_on_a_noun_that_training_never_has(
    encoder: WordEncoder,
) -> None:
    nouns = {n.english: n for n in NOUNS} | {n.english_plural: n for n in NOUNS}
    for pair in held_out("test", 300, encoder):
        words = [word.lower() for word in pair.phrase.english]
        named = [nouns[word].english for word in words if word in nouns]
        adjectives = [word for word in words if word in ENGLISH]
        new = [(a, n) for a in adjectives for n in named if reserved(a, n)]
        assert new, " ".join(words)


def test_training_pairs_have_none() -> None:
    assert not any(phrase.reserved for phrase in some())


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert some() == some()
    assert some() != some(seed=1)


BUNDLED = Tokenizer.from_file(str(bundled_folder("translator") / "tokenizer.json"))


@pytest.fixture(scope="module")
def encoder() -> WordEncoder:
    return WordEncoder(BUNDLED)


@pytest.mark.slow
def test_the_tokenizer_is_built_as_the_one_in_the_package_was() -> None:
    assert translator.build_tokenizer().to_str() == BUNDLED.to_str()


@pytest.mark.parametrize("built", [False, True], ids=["bundled", "built"])
def test_the_lessons_sentences_are_one_token_a_word(
    encoder: WordEncoder, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    if built:
        monkeypatch.setattr(translator, "SAMPLED", 6000)  # pairs, a tenth: every word comes up
        encoder = WordEncoder(translator.build_tokenizer())
    for sentence in (
        "a fluffy blue creature roamed the verdant forest",
        "Bark is very cute and he is a dog",
        "une créature bleue et duveteuse parcourait la forêt verdoyante",
        "c' est un chien",
    ):
        assert all(len(encoder.word(word)) == 1 for word in sentence.split()), sentence


def test_a_batch_is_padded_and_what_follows_is_the_target_moved_by_one(
    encoder: WordEncoder,
) -> None:
    batch = next(batches(0, 8, encoder, 96))
    for row in range(8):
        n_s = int(batch.mask[row].sum())
        following = batch.following[row]
        n_t = int((following != IGNORED).sum())
        assert batch.source[row, 0] == batch.target[row, 0] == encoder.bos
        assert following[: n_t - 1].tolist() == batch.target[row, 1:n_t].tolist()
        assert following[n_t - 1] == encoder.bos
        assert n_s <= batch.source.size(1)


def test_spans_are_the_tokens_of_each_word(encoder: WordEncoder) -> None:
    for phrase in some()[:100]:
        pair = encoded(phrase, encoder)
        for word, span in zip(phrase.english, pair.spans, strict=True):
            assert tuple(pair.source[i] for i in span) == encoder.word(word)
        for french, span in zip(phrase.french, pair.target_spans, strict=True):
            assert tuple(pair.target[i] for i in span) == encoder.word(french.word)
