"""One grammar of sentence pairs: English, its French, and which word stands for which.

French puts most adjectives after the noun ("a fluffy blue creature": "une créature bleue et
duveteuse"), makes them agree in gender and number, elides ("l'arbre") and contracts ("du", "au"),
so that the alignment is not a diagonal. The file is long because it is one table of rules, from
words to noun phrases to the sentence templates at its end.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from making.translation.lexicon import (
    ADJECTIVES,
    NAMES,
    NOUNS,
    PREPOSITIONS,
    VERBS,
    Adjective,
    Gender,
    Noun,
    Number,
    starts_with_vowel,
)
from making.world.lexicon import World, article, reserved

PRONOUNS = {"m": ("he", "il"), "f": ("she", "elle")}
DETERMINERS: dict[Number, tuple[str, ...]] = {
    "s": ("a", "a", "a", "the", "the", "the", "this", "her", "his"),
    "p": ("the", "the", "these", "two", "three", "her", "his"),
}
THE = {("m", "s"): "le", ("f", "s"): "la", ("m", "p"): "les", ("f", "p"): "les"}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


@dataclass(frozen=True)
class French:
    """A French word, the English words (indices) that it stands for, and whether it is a
    content word: noun, adjective, verb or name."""

    word: str
    keys: frozenset[int]
    content: bool = False


@dataclass(frozen=True)
class Phrase:
    """English words and their French, each in its own order.

    `reserved`: the phrase has an adjective on a noun that training never puts it on.
    """

    english: tuple[str, ...]
    french: tuple[French, ...]
    reserved: bool = False

    def __add__(self, other: "Phrase") -> "Phrase":
        shift = len(self.english)
        moved = (
            replace(word, keys=frozenset(key + shift for key in word.keys)) for word in other.french
        )
        english, french = self.english + other.english, (*self.french, *moved)
        return Phrase(english, french, self.reserved or other.reserved)


def pairs(seed: int | str, *, held_out: bool = False) -> Iterator[Phrase]:
    """Sentence pairs without end, a pure function of the seed.

    A held-out sentence has adjectives only on nouns that training never puts them on; a sentence
    that is not `reserved` has no adjective on a noun.
    """
    world = World(random.Random(f"translation {seed} {held_out}"), held_out)
    templates = list(TEMPLATES)
    weights = [TEMPLATES[template] for template in templates]
    while True:
        yield _written(world, world.rng.choices(templates, weights)[0](world))


def same(english: str, french: str, *, content: bool = False) -> Phrase:
    """English words and the French words that stand for all of them together."""
    words = tuple(english.split())
    keys = frozenset(range(len(words)))
    return Phrase(words, tuple(French(word, keys, content) for word in french.split()))


def _written(world: World, sentence: Phrase) -> Phrase:
    """A sentence with or without full stop and capital letter, alike in both languages."""
    if world.chance(0.5):
        sentence = sentence + same(".", ".")
    if world.chance(0.5):
        return sentence
    first = sentence.french[0]
    return Phrase(
        (_capital(sentence.english[0]), *sentence.english[1:]),
        (replace(first, word=_capital(first.word)), *sentence.french[1:]),
        sentence.reserved,
    )


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]


@dataclass(frozen=True)
class Thing:
    """A noun phrase, with the gender and number that other words agree with."""

    phrase: Phrase
    gender: Gender
    number: Number
    noun: Noun


def _thing(world: World, *, plain: bool = False, number: Number | None = None) -> Thing:
    """A determiner, none to three adjectives, a noun."""
    rng = world.rng
    noun = rng.choice(NOUNS)
    number = number or ("p" if world.chance(0.25) else "s")
    determiner = rng.choice(DETERMINERS[number])
    count = rng.choices((0, 1, 2, 3), (25, 40, 28, 7))[0] if not plain else 0
    return _noun_phrase(world, determiner, _adjectives(world, noun, count), noun, number)


def _adjectives(world: World, noun: Noun, count: int) -> list[Adjective]:
    """Different adjectives, of which at most one stands before the noun in French."""
    chosen: list[Adjective] = []
    while len(chosen) < count:
        adjective = world.rng.choice(ADJECTIVES)
        second = adjective.before and any(other.before for other in chosen)
        if adjective in chosen or second:
            continue
        if reserved(adjective.english, noun.english) == world.held_out:
            chosen.append(adjective)
    return sorted(chosen, key=lambda adjective: not adjective.before)


def _noun_phrase(
    world: World, determiner: str, adjectives: Sequence[Adjective], noun: Noun, number: Number
) -> Thing:
    very = bool(adjectives) and world.chance(0.1)
    between = world.rng.choices(("", ",", "and"), (70, 15, 15))[0]
    english, places, very_at = [determiner], [], -1
    for i, adjective in enumerate(adjectives):
        if i and between and not (between == "and" and i < len(adjectives) - 1):
            english.append(between)
        if very and i == 0:
            very_at = len(english)
            english.append("very")
        places.append(len(english))
        english.append(adjective.english)
    english.append(noun.english if number == "s" else noun.english_plural)
    if english[0] == "a":
        english[0] = article(english[1])
    joints = [i for i, word in enumerate(english) if word in (",", "and")]
    french = _french(adjectives, places, very_at, joints, noun, len(english) - 1, number)
    first = _determiner(determiner, noun.gender, number, french[0].word)
    reserved_pair = world.held_out and bool(adjectives)
    phrase = Phrase(tuple(english), (French(first, frozenset((0,))), *french), reserved_pair)
    return Thing(phrase, noun.gender, number, noun)


def _french(
    adjectives: Sequence[Adjective],
    places: Sequence[int],
    very_at: int,
    joints: Sequence[int],
    noun: Noun,
    at: int,
    number: Number,
) -> list[French]:
    """The words after the determiner; `places` and `at` are indices of the English words."""
    named = noun.french if number == "s" else noun.french_plural
    vowel = starts_with_vowel(named)
    before: list[French] = []
    after: list[list[French]] = []
    for i, (adjective, place) in enumerate(zip(adjectives, places, strict=True)):
        form = adjective.french(noun.gender, number, vowel=vowel)
        word = [French(form, frozenset((place,)), content=True)]
        if very_at >= 0 and i == 0:
            word.insert(0, French("très", frozenset((very_at,))))
        if adjective.before:
            before += word
        else:
            after.append(word)
    after.reverse()
    words = [*before, French(named, frozenset((at,)), content=True)]
    for i, word in enumerate(after):
        if i:
            joint = "et" if i == len(after) - 1 else ","
            words.append(French(joint, frozenset(joints)))
        words += word
    return words


def _determiner(english: str, gender: Gender, number: Number, following: str) -> str:
    vowel = starts_with_vowel(following)
    if english == "a":
        return "un" if gender == "m" else "une"
    if english == "the":
        return "l'" if vowel and number == "s" else THE[gender, number]
    if english in ("this", "these"):
        if number == "p":
            return "ces"
        return "cette" if gender == "f" else "cet" if vowel else "ce"
    if english in ("his", "her"):
        if number == "p":
            return "ses"
        return "sa" if gender == "f" and not vowel else "son"
    return {"two": "deux", "three": "trois"}[english]


def _of_the(world: World, english: str, french: str) -> Phrase:
    """`of the garden`: du jardin, de la cuisine, de l'arbre, des jardins."""
    number: Number = "p" if world.chance(0.15) else "s"
    noun = world.rng.choice(NOUNS)
    thing = _noun_phrase(
        world, "the", _adjectives(world, noun, int(world.chance(0.3))), noun, number
    )
    the, *rest = thing.phrase.french
    contracted = CONTRACTED.get((french, the.word))
    if contracted is None:
        return same(english, french) + thing.phrase
    shifted = (replace(word, keys=frozenset(key + 1 for key in word.keys)) for word in rest)
    first = French(contracted, frozenset((0, 1)))
    return Phrase((english, *thing.phrase.english), (first, *shifted), thing.phrase.reserved)


@dataclass(frozen=True)
class Someone:
    """A name; a made-up one does not show its gender."""

    phrase: Phrase
    gender: Gender
    known: bool


def _someone(world: World) -> Someone:
    if world.chance(0.15):
        name = _capital(world.made_up())
        return Someone(same(name, name, content=True), world.rng.choice(("m", "f")), known=False)
    name, gender = world.rng.choice(NAMES)
    return Someone(same(name, name, content=True), "f" if gender == "f" else "m", known=True)


def _verb(world: World, number: Number) -> Phrase:
    verb = world.rng.choice(VERBS)
    return same(verb.english, verb.french(number), content=True)


def _was(number: Number, *, past: bool = True) -> Phrase:
    if past:
        return same("was", "était") if number == "s" else same("were", "étaient")
    return same("is", "est") if number == "s" else same("are", "sont")


def _described(world: World, gender: Gender, number: Number, noun: Noun | None = None) -> Phrase:
    """One or two adjectives after a verb, with or without `very`."""
    first, second = world.rng.sample(ADJECTIVES, 2)
    while noun and any(
        reserved(a.english, noun.english) != world.held_out for a in (first, second)
    ):
        first, second = world.rng.sample(ADJECTIVES, 2)
    said = same(first.english, first.french(gender, number), content=True)
    if world.chance(0.35):
        said = same("very", "très") + said
    if world.chance(0.35):
        other = same(second.english, second.french(gender, number), content=True)
        said = said + same("and", "et") + other
    return replace(said, reserved=world.held_out and noun is not None)


def _place(world: World) -> Phrase:
    english, french = world.rng.choice(PREPOSITIONS)
    return same(english, french) + _thing(world).phrase


def _is_a(world: World, gender: Gender) -> Phrase:
    """`he is a dog`: c'est un chien."""
    pronoun, _ = PRONOUNS[gender]
    noun = world.rng.choice(NOUNS)
    count = world.rng.choices((0, 1, 2), (70, 22, 8))[0]
    thing = _noun_phrase(world, "a", _adjectives(world, noun, count), noun, "s")
    return same(pronoun, "c'") + same("is", "est") + thing.phrase


def _thing_alone(world: World) -> Phrase:
    return _thing(world).phrase


def _subject(world: World) -> tuple[Phrase, Number]:
    if world.chance(0.2):
        return _someone(world).phrase, "s"
    if world.chance(0.06):
        return _someone(world).phrase + same("and", "et") + _someone(world).phrase, "p"
    thing = _thing(world)
    return thing.phrase, thing.number


def _deed(world: World) -> Phrase:
    subject, number = _subject(world)
    sentence = subject + _verb(world, number) + _thing(world).phrase
    return sentence + _place(world) if world.chance(0.2) else sentence


def _there_was(world: World) -> Phrase:
    thing = _thing(world)
    english = "there was" if thing.number == "s" else "there were"
    return same(english, "il y avait") + thing.phrase + _place(world)


def _quality(world: World) -> Phrase:
    thing = _thing(world, plain=world.chance(0.6))
    past = world.chance(0.7)
    said = _was(thing.number, past=past) + _described(world, thing.gender, thing.number, thing.noun)
    return thing.phrase + said


def _character(world: World) -> Phrase:
    """`Bark is very cute and he is a dog`; the pronoun shows the gender of a made-up name."""
    who = _someone(world)
    said = who.phrase + _was("s", past=False) + _described(world, who.gender, "s")
    if who.known and world.chance(0.25):
        return said
    joint = world.rng.choice((("and", "et"), ("and", "et"), (", and", ", et"), ("because", "car")))
    return said + _joint(*joint) + _is_a(world, who.gender)


def _joint(english: str, french: str) -> Phrase:
    """Words that stand for each other one by one."""
    phrase = Phrase((), ())
    for left, right in zip(english.split(), french.split(), strict=True):
        phrase = phrase + same(left, right)
    return phrase


def _pronoun(world: World) -> Phrase:
    gender: Gender = "m" if world.chance(0.5) else "f"
    english, french = PRONOUNS[gender]
    if world.chance(0.4):
        return _is_a(world, gender)
    subject = same(english, french)
    if world.chance(0.5):
        return subject + _was("s", past=world.chance(0.7)) + _described(world, gender, "s")
    return subject + _verb(world, "s") + _thing(world).phrase


def _belonging(world: World) -> Phrase:
    thing = _thing(world)
    whole = thing.phrase + _of_the(world, "of", "de")
    if world.chance(0.4):
        return whole
    return whole + _was(thing.number) + _described(world, thing.gender, thing.number, thing.noun)


def _journey(world: World) -> Phrase:
    subject, number = _subject(world)
    went = same("went", "allait" if number == "s" else "allaient", content=True)
    return subject + went + _of_the(world, "to", "à")


def _murderer(world: World) -> Phrase:
    who = same("the", "le") + same("murderer", "meurtrier", content=True)
    return who + _was("s") + _someone(world).phrase


TEMPLATES = {
    _thing_alone: 14,
    _deed: 34,
    _there_was: 8,
    _quality: 12,
    _character: 14,
    _pronoun: 6,
    _belonging: 8,
    _journey: 6,
    _murderer: 2,
}
