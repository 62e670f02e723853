"""Fixed phrases, noun phrases alone, and the rare words of the lists."""

from making.translation.adjuncts import place_phrase, time_phrase
from making.translation.being import be
from making.translation.lexicon import adjectives, adverbs, formulae, nouns, one_only, verbs
from making.translation.nominal import Np, from_table, name, pronoun_subject
from making.translation.noun_phrases import (
    OTHERWISE,
    built,
    noun_phrase,
    predicate,
    proper,
    subject,
)
from making.translation.parts import Part, Word, english, french, part
from making.translation.statements import short_statement, verbal
from making.translation.verb_phrases import Complement, clause
from making.world.lexicon import World

ALL = (
    "mass|person|relative|job|animal|food|drink|thing|small|clothes|vehicle|furniture|body|place|"
    "room|building|event|abstract|nature|weather|material|group|read|watch|listen|plant|tool|"
    "drinkware|device|money|time|instrument"
)


def formula(world: World) -> Part:
    """A fixed phrase, alone, before a name or before a clause."""
    said, heard = world.rng.choice(formulae())
    phrase = aligned(said, heard)
    draw = world.rng.random()
    if phrase.english[-1].word in ".?!" or draw >= 0.16:
        return phrase
    after = name(world).part if draw < 0.1 else short_statement(world)
    return phrase + part(",", ",") + after


def aligned(said: str, heard: str) -> Part:
    """Names and marks stand for themselves, all other words for all."""
    words = english(said)
    plain = tuple(word for word in words if word.word not in "?!.,")
    right: list[Word] = []
    for word in french(heard, plain, content=len(plain) == 1):
        itself = tuple(other for other in words if other.word == word.word)
        if itself:
            word = Word(word.word, itself, content=word.word not in "?!.,")
        right.append(word)
    return Part(words, right)


def bare(world: World) -> Part:
    """A noun phrase, a place, a time or a name alone."""
    draw = world.rng.random()
    if draw < 0.75:
        return noun_phrase(world, ALL).part
    if draw < 0.85:
        return place_phrase(world)
    if draw < 0.92:
        return time_phrase(world, world.rng.choice(("past", "future", "any")))
    return name(world).part


def single(world: World) -> Part:
    """One headword of the lists, each as often as another; nouns and verbs in plain sentences."""
    draw = world.rng.random()
    if draw < 0.42:
        return _noun(world)
    if draw < 0.62:
        verb = world.rng.choice(verbs())
        return verbal(world, subject(world, pronouns=0.85), verb).statement()
    if draw < 0.8:
        adjective = world.rng.choice(adjectives())
        who = pronoun_subject(world, but=("it",))
        if world.chance(0.35) or adjective.english in OTHERWISE:
            return predicate(adjective, Np(Part()))
        return be(world, who, predicate(adjective, who)).statement()
    if draw < 0.86:
        adverb = world.rng.choice(adverbs())
        return part(adverb.english, adverb.french)
    return from_table(world, "number" if draw < 0.92 else "little")


def _noun(world: World) -> Part:
    noun = world.rng.choice(nouns())
    if noun.named_time:
        return proper(noun).part
    if noun.classes & {"city", "country"}:
        return noun_phrase(world, "|".join(noun.classes & {"city", "country"})).part
    plural = (not noun.mass and world.chance(0.25)) or noun.plural_only
    determiner = world.rng.choice(("the", "a", "my", "the", "this"))
    if noun.with_article:
        determiner = "the*"
    elif noun.mass and determiner == "a":
        determiner = ""
    np = built(world, noun, [], determiner, plural=plural and not one_only(noun))
    if world.chance(0.5):
        return np.part
    if world.chance(0.5):
        is_ = part("are", "sont") if np.plural else part("is", "est")
        return part("where", "où") + is_ + np.part + part("?", "?")
    verb = next(v for v in verbs() if v.base == "see")
    who = pronoun_subject(world)
    tense = world.rng.choice(("present", "past", "future", "can"))
    return clause(world, who, verb, tense, Complement(np.part)).statement()
