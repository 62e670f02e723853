"""Comparatives and superlatives."""

from making.translation.being import be, identity, someone_or_something
from making.translation.lexicon import Noun, nouns_of, table
from making.translation.nominal import (
    OBJECTS,
    PEOPLE,
    PLACES,
    THINGS,
    Np,
    from_table,
    name,
    object_pronoun,
)
from making.translation.noun_phrases import (
    adjective_for,
    adjectives_of,
    form_for,
    noun_phrase,
    predicate,
    subject,
)
from making.translation.parts import Part, Word, english, french, part
from making.world.lexicon import World

SHORT = frozenset(
    "big small tall short old young new long fast slow strong weak rich poor cheap nice kind cold "
    "hot warm cool clean dirty dark light heavy hard soft easy busy happy funny pretty ugly early "
    "late high low deep wide thin thick fat smart clever quiet loud calm sweet sour clear dry wet "
    "sad safe great fine large little near close simple noisy lazy angry hungry healthy lucky "
    "friendly lovely brave proud cute crazy".split()
)
"""Adjectives that have -er and -est."""


def compared(world: World) -> Part:
    """`he is taller than his father`, `as big as`, `less expensive`."""
    who = someone_or_something(world)
    while who.impersonal:
        who = someone_or_something(world)
    adjective = adjective_for(world, who)
    while adjective.english not in SHORT and world.chance(0.6):
        adjective = adjective_for(world, who)
    draw = world.rng.random()
    word, plain, link = adjective.english, predicate(adjective, who), part("than", "que")
    if word in ("good", "bad", "well", "better", "worse") or draw < 0.06:
        said = _better(world, who)
    elif draw >= 0.72:
        said, link = part("as", "aussi") + plain, part("as", "que")
    elif draw < 0.08:
        said = part("less", "moins") + plain
    elif word in SHORT or (
        word.islower() and len(word) <= 5 and not word.endswith(("ed", "ful", "ous", "al"))
    ):
        said = _with_ending(word, "er", form_for(adjective, who))
    else:
        said = part("more", "plus") + plain
    if world.chance(0.16) and link.english[0].word == "than":
        return be(world, who, said, tense="present", negative=0.1).statement()
    said += link + _other(world, who)
    tense = world.rng.choice(("present", "present", "past"))
    return be(world, who, said, tense=tense, negative=0.12).statement()


def _better(world: World, who: Np) -> Part:
    if world.chance(0.75):
        return part("better", "meilleur" + who.agreement, content=True)
    return part("worse", "pires" if who.plural else "pire", content=True)


def _other(world: World, who: Np) -> Part:
    """What it is compared with."""
    if world.chance(0.35):
        pronoun = object_pronoun(world)
        return part(pronoun, OBJECTS[pronoun][2])
    if world.chance(0.25):
        yours, male, female = world.rng.choice(table("mine"))
        if who.plural:
            return name(world).part
        return part(yours, female if who.gender == "f" else male)
    classes = "|".join(who.noun.classes) if who.noun else PEOPLE
    return noun_phrase(world, classes, subject=True, plain=True).part


def _with_ending(adjective: str, ending: str, heard: str) -> Part:
    """`bigger`: plus grand, both of them for one English word."""
    stem = adjective
    if stem.endswith("e"):
        stem = stem[:-1]
    elif stem.endswith("y") and stem[-2] not in "aeiou":
        stem = stem[:-1] + "i"
    elif (
        len(stem) <= 4 and stem[-1] in "bdgnpt" and stem[-2] in "aeiou" and stem[-3] not in "aeiou"
    ):
        stem += stem[-1]
    words = english(stem + ending)
    return Part(words, [Word("plus", words), *french(heard, words, content=True)])


def superlative(world: World) -> Part:
    """`the biggest house in the village`; `she is the best student in the class`."""
    noun, phrase = None, None
    while noun is None or phrase is None:
        noun = world.rng.choice(nouns_of(f"{THINGS}|{PEOPLE}|{PLACES}|animal|event|abstract"))
        if not noun.mass and not noun.plural_only:
            phrase = _superlative_phrase(world, noun)
    if world.chance(0.5):
        phrase += part("in", "de") + from_table(world, "range")
    draw = world.rng.random()
    if draw < 0.4:
        return phrase
    who = subject(world, pronouns=0.5)
    while who.impersonal or who.plural or who.first in ("I", "you", "it"):
        who = subject(world, pronouns=0.5)
    if draw < 0.8:
        return identity(world, who, Np(phrase, noun.gender, noun=noun))
    return part("it", "CE") + part("is", "est") + phrase


def _superlative_phrase(world: World, noun: Noun) -> Part | None:
    """`the biggest house`; None where the noun has no adjective with a superlative."""
    the = part("the", "LE" if noun.gender == "m" else "LA")
    named = part(noun.english, noun.french, content=True)
    if world.chance(0.2):
        best = "meilleur" if noun.gender == "m" else "meilleure"
        return the + part("best", best, content=True) + named
    chosen = adjectives_of(world, noun, 1)
    if not chosen or chosen[0].english in ("good", "bad"):
        return None
    (adjective,) = chosen
    form = form_for(adjective, Np(Part(), noun.gender))
    if adjective.english in SHORT or len(adjective.english) <= 4:
        most = _with_ending(adjective.english, "est", form)
    else:
        most = part("most", "plus") + part(adjective.english, form, content=True)
    heard = [*most.french, *named.french]
    if not adjective.before:
        heard = [*named.french, *the.french, *most.french]
    said = the.english + most.english + named.english
    return Part(said, the.french + heard, world.held_out)
