"""Sentences of the kinds that lessons on attention show."""

from making.translation.being import be, person_noun, said_of
from making.translation.clauses import related
from making.translation.complements import usable
from making.translation.lexicon import nouns_of
from making.translation.nominal import from_table, name
from making.translation.noun_phrases import adjectives_of, built, noun_phrase, someone
from making.translation.parts import Part, part
from making.translation.verb_phrases import Complement, clause
from making.world.lexicon import World


def character(world: World) -> Part:
    """`Bark is very cute and he is a dog`: c'est un chien."""
    who = name(world)
    said = be(world, who, said_of(world, who), tense="present", negative=0).statement()
    link = world.rng.choice((("and", "et"), ("and", "et"), ("because", "parce que")))
    noun = world.rng.choice(nouns_of("animal"))
    many = adjectives_of(world, noun, world.rng.choice((0, 0, 1)))
    what = built(world, noun, many, "a", plural=False)
    he = part("she" if who.gender == "f" else "he", "CE")
    return said + part(*link) + he + part("is", "est") + what.part


def murderer(world: World) -> Part:
    """`the murderer was Anna`."""
    who = from_table(world, "suspect", content=True)
    was = part("was", "était") if world.chance(0.7) else part("is", "est")
    suspect = someone(world, 0.6, "job|person", "the")
    return part("the", "LE") + who + was + suspect.part


def deed(world: World) -> Part:
    """`a fluffy blue creature roamed the verdant forest`."""
    verb = world.rng.choice([v for v in usable("np") if v.auxiliary == "a"])
    noun = world.rng.choice(nouns_of("animal|person|job"))
    count = world.rng.choices((1, 2, 3), (45, 45, 10))[0]
    many = adjectives_of(world, noun, count)
    determiner = world.rng.choice(("a", "the"))
    plural = world.chance(0.15) and not noun.mass
    who = built(world, noun, many, determiner, plural=plural)
    what = noun_phrase(world, verb.objects)
    known = what.noun and not what.noun.mass and what.kind != "name"
    if what.noun and known and not what.part.reserved and world.chance(0.5):
        one = adjectives_of(world, what.noun, 1)
        what = built(world, what.noun, one, world.rng.choice(("a", "the")), plural=False)
    return clause(world, who, verb, "past", Complement(what.part)).statement()


def girl_who(world: World) -> Part:
    """`the girl who lives here is my friend`."""
    who = related(world)
    extra = said_of(world, who) if world.chance(0.5) else person_noun(world, who).part
    return be(world, who, extra, tense=world.rng.choice(("present", "past"))).statement()
