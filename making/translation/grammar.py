"""Sentence pairs of everyday English: English, its French, and which word stands for which.

The sentences are put together from the hand-written lists in `words/` by the modules beside this
one: noun phrases, verb phrases, sentences with verbs and with be. The simple past is a passé
composé; questions have est-ce que; `you` is tu.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache

from making.translation import asking, being, clauses, commands, comparing, questions, statements
from making.translation.adjuncts import place_phrase, time_phrase
from making.translation.complements import usable
from making.translation.lexicon import (
    Verb,
    adjectives,
    adverbs,
    formulae,
    nouns,
    nouns_of,
    one_only,
    verbs,
)
from making.translation.nominal import NUMBERS, Np, name, pronoun_subject
from making.translation.noun_phrases import (
    OTHERWISE,
    adjectives_of,
    built,
    noun_phrase,
    proper,
    subject,
)
from making.translation.parts import (
    CUTS,
    French,
    Part,
    Phrase,
    Word,
    english,
    finished,
    french,
    part,
)
from making.translation.verb_phrases import Complement, clause
from making.world.lexicon import World

__all__ = ["CUTS", "French", "Phrase", "pairs", "same"]

ALL = (
    "mass|person|relative|job|animal|food|drink|thing|small|"
    "clothes|vehicle|furniture|body|place|room|building|event|abstract|"
    "nature|weather|material|group|read|watch|listen|plant|tool|"
    "drinkware|device|money|time|instrument"
)


def pairs(seed: int | str, *, held_out: bool = False) -> Iterator[Phrase]:
    """Sentence pairs without end, a pure function of the seed.

    A held-out sentence has adjectives only on nouns that training never puts them on; a sentence
    that is not `reserved` has no adjective on a noun.
    """
    world = World(random.Random(f"translation {seed} {held_out}"), held_out)
    templates = list(TEMPLATES)
    weights = [TEMPLATES[template] for template in templates]
    while True:
        said = world.rng.choices(templates, weights)[0](world)
        if not 0 < len(said.english) <= LONGEST:
            continue
        phrase = _written(world, said)
        if _contradicts(phrase):
            continue
        yield phrase


LONGEST = 16
WITH_ARTICLE = {"language", "subject", "sport", "meal", "color"}


def _plain(words: Iterable[str]) -> str:
    return " ".join(words).lower().rstrip(" .!?")


@cache
def _fixed() -> dict[str, str]:
    """The fixed phrases; of those that are alike but for their marks, the first."""
    fixed: dict[str, str] = {}
    for said, heard in formulae():
        phrase = finished(_aligned(said, heard))
        fixed.setdefault(_plain(phrase.english), _plain(word.word for word in phrase.french))
    return fixed


def _contradicts(phrase: Phrase) -> bool:
    """Whether a fixed phrase is these words, with other French."""
    fixed = _fixed().get(_plain(phrase.english))
    return fixed is not None and fixed != _plain(word.word for word in phrase.french)


def same(english_words: str, french_words: str, *, content: bool = False) -> Phrase:
    """English words and the French words that stand for all of them together."""
    words = tuple(english_words.split())
    keys = frozenset(range(len(words)))
    return Phrase(words, tuple(French(word, keys, content) for word in french_words.split()))


def _written(world: World, said: Part) -> Phrase:
    """With or without final mark and capital letter, alike in both languages."""
    last = said.english[-1].word
    if last == "?" and world.chance(0.06):
        said = Part(said.english[:-1], [w for w in said.french if w.word != "?"], said.reserved)
    elif last not in ".?!" and world.chance(0.62):
        said = said + part(*world.rng.choice(((".", "."),) * 9 + (("!", "!"),)))
    phrase = finished(said)
    if not world.chance(0.55) and not phrase.english[0][0].isupper():
        return phrase
    first = phrase.french[0]
    return Phrase(
        (_capital(phrase.english[0]), *phrase.english[1:]),
        (replace(first, word=_capital(first.word)), *phrase.french[1:]),
        phrase.reserved,
    )


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]


def formula(world: World) -> Part:
    """A fixed phrase, alone, with a name, before or after a clause."""
    said, heard = world.rng.choice(formulae())
    phrase = _aligned(said, heard)
    end = said.split()[-1]
    draw = world.rng.random()
    if end in (".", "?", "!"):
        return phrase
    if draw < 0.1:
        return phrase + part(",", ",") + name(world).part
    if draw < 0.16:
        return phrase + part(",", ",") + statements.short_statement(world)
    return phrase


def _aligned(said: str, heard: str) -> Part:
    """Names and marks stand for themselves, all other words for all."""
    words = english(said)
    ends = {w.word for w in words if w.word in "?!.,"}
    plain = [w for w in words if w.word not in ends]
    right: list[Word] = []
    for word in french(heard, plain):
        same_ = [w for w in words if w.word == word.word]
        right.append(
            Word(word.word, tuple(same_), word.word not in ends)
            if same_
            else replace(word, content=len(plain) == 1)
        )
    return Part(words, right)


def bare(world: World) -> Part:
    """A noun phrase alone."""
    draw = world.rng.random()
    if draw < 0.75:
        return noun_phrase(world, ALL).part
    if draw < 0.85:
        return place_phrase(world)
    if draw < 0.92:
        return time_phrase(world, world.rng.choice(("past", "future", "any")))
    return name(world).part


def single(world: World) -> Part:
    """One headword of the lists, each as often as another."""
    draw = world.rng.random()
    rng = world.rng
    if draw < 0.42:
        noun = rng.choice(nouns())
        if noun.english[0].isupper() and "time" in noun.classes:
            return proper(noun).part
        if noun.classes & {"city", "country"}:
            np = noun_phrase(world, "|".join(noun.classes & {"city", "country"}))
            return np.part
        plural = (not noun.mass and world.chance(0.25)) or noun.plural_only
        plural = plural and not one_only(noun)
        determiner = rng.choice(("the", "a", "my", "the", "this"))
        if noun.classes & WITH_ARTICLE or (noun.mass and determiner == "a"):
            determiner = "the*"
        if noun.mass and determiner == "the*" and not noun.classes & WITH_ARTICLE:
            determiner = ""
        np = built(world, noun, [], determiner, plural=plural)
        return np.part if world.chance(0.5) else _in_sentence(world, np)
    if draw < 0.62:
        return _verb_alone(world, rng.choice(verbs()))
    if draw < 0.8:
        adjective = rng.choice(adjectives())
        who = pronoun_subject(world)
        while who.part.english[0].word == "it":
            who = pronoun_subject(world)
        form = adjective.french(who.gender, plural=who.plural).split("/")[0]
        if world.chance(0.35) or adjective.english in OTHERWISE:
            return part(adjective.english, adjective.masculine.split("/")[0], content=True)
        return being.be(world, who, part(adjective.english, form, content=True)).statement()
    if draw < 0.86:
        adverb = rng.choice(adverbs())
        return part(adverb.english, adverb.french)
    if draw < 0.92:
        said, heard = rng.choice(list(NUMBERS.items()))
        return part(said, heard)
    said, heard = rng.choice(LITTLE)
    return part(said, heard)


LITTLE = (
    ("and", "et"), ("but", "mais"), ("or", "ou"), ("yes", "oui"), ("no", "non"), ("not", "pas"),
    ("with", "avec"), ("without", "sans"), ("for", "pour"), ("in", "dans"), ("on", "sur"),
    ("where", "où"), ("who", "qui"), ("when", "quand"), ("why", "pourquoi"), ("how", "comment"),
    ("what", "quoi"), ("because", "parce que"), ("under", "sous"), ("behind", "derrière"),
    ("me", "moi"), ("you", "toi"), ("zero", "zéro"), ("one", "un"), ("please", "s'il te plaît"),
)  # fmt: skip


def _in_sentence(world: World, np: Np) -> Part:
    """A rare noun in a plain sentence."""
    heard = np.part
    if world.chance(0.5):
        plural = np.plural
        front = english("are" if plural else "is")
        where = english("where")
        return (
            Part(
                where + front,
                [Word("où", tuple(where)), Word("sont" if plural else "est", tuple(front))],
            )
            + heard
            + part("?", "?")
        )
    verb = next(v for v in verbs() if v.base == "see")
    who = pronoun_subject(world)
    tense = world.rng.choice(("present", "past", "future", "can"))
    extra = Complement(heard)
    return clause(world, who, verb, tense, extra).statement()


def _verb_alone(world: World, verb: Verb) -> Part:
    """A rare verb in a plain sentence."""
    who = subject(world, pronouns=0.85)
    return statements.verbal(world, who, verb).statement()


def there_was(world: World) -> Part:
    return statements.there_is(world)


def character(world: World) -> Part:
    """`Bark is very cute and he is a dog`."""
    who = name(world)
    pronoun, heard = ("she", "CE") if who.gender == "f" else ("he", "CE")
    said = being.be(world, who, being.said_of(world, who), tense="present", negative=0).statement()
    link = world.rng.choice((("and", "et"), ("and", "et"), ("because", "parce que")))
    noun = world.rng.choice(nouns_of("animal"))
    what = built(
        world, noun, adjectives_of(world, noun, world.rng.choice((0, 0, 1))), "a", plural=False
    )
    is_ = english("is")
    return (
        said + part(*link) + part(pronoun, heard) + Part(is_, [Word("est", tuple(is_))]) + what.part
    )


def murderer(world: World) -> Part:
    who = world.rng.choice(
        (("murderer", "meurtrier"), ("thief", "voleur"), ("killer", "tueur"), ("winner", "gagnant"))
    )
    was = english("was") if world.chance(0.7) else english("is")
    heard = "était" if was[0].word == "was" else "est"
    suspect = (
        name(world)
        if world.chance(0.6)
        else noun_phrase(world, "job|person", plain=True, determiner="the")
    )
    subject = part("the", "LE") + part(who[0], who[1], content=True)
    return subject + Part(was, [Word(heard, tuple(was))]) + suspect.part


def deed(world: World) -> Part:
    """`a fluffy blue creature roamed the verdant forest`."""
    usable_ = [v for v in usable("np") if v.auxiliary == "a"]
    verb = world.rng.choice(usable_)
    classes = "animal|person|job"
    noun = world.rng.choice(nouns_of(classes))
    who = built(
        world,
        noun,
        adjectives_of(world, noun, world.rng.choices((1, 2, 3), (45, 45, 10))[0]),
        world.rng.choice(("a", "the")),
        plural=world.chance(0.15) and not noun.mass,
    )
    frame = next(f for f in verb.frames if f.startswith("np:"))[3:]
    place = noun_phrase(world, frame)
    if (
        place.noun
        and not place.part.reserved
        and not place.noun.mass
        and place.kind != "name"
        and world.chance(0.5)
    ):
        place = built(
            world,
            place.noun,
            adjectives_of(world, place.noun, 1),
            world.rng.choice(("a", "the")),
            plural=False,
        )
    extra = Complement(place.part)
    return clause(world, who, verb, "past", extra).statement()


def girl_who(world: World) -> Part:
    return being.girl_who(world, clauses.related)


clauses.INNER += [being.told]
TEMPLATES: dict[Callable[[World], Part], float] = {
    statements.statement: 23,
    statements.works: 0.5,
    clauses.while_doing: 0.8,
    statements.would_love: 0.4,
    statements.body: 0.8,
    statements.been_to: 0.7,
    statements.born: 0.5,
    statements.prefer_to: 0.3,
    asking.when_is: 0.7,
    girl_who: 0.7,
    statements.short_statement: 7,
    questions.yes_no: 6,
    questions.wh_question: 8,
    commands.command: 6,
    statements.would_like: 1.5,
    statements.have_got: 1,
    statements.there_is: 3,
    clauses.that_clause: 3,
    clauses.joined: 3,
    clauses.relative_sentence: 1.6,
    clauses.passive: 1.2,
    clauses.since: 0.8,
    clauses.clause_adverb_first: 1.5,
    questions.let_me: 2,
    clauses.at_time: 1,
    being.quality: 7,
    being.job: 3,
    being.located: 3.5,
    being.weather: 0.8,
    being.that_is: 4,
    comparing.compared: 2.2,
    comparing.superlative: 1.2,
    asking.age: 1,
    asking.clock_now: 0.8,
    asking.where_is: 3,
    formula: 8,
    bare: 4,
    single: 8,
    character: 0.8,
    murderer: 0.3,
    deed: 2.5,
}
