"""Questions with a verb: yes or no, who, what, where, how many."""

from making.translation.adjuncts import time_phrase
from making.translation.asking import which
from making.translation.complements import any_verb, complement, usable
from making.translation.lexicon import table
from making.translation.nominal import PEOPLE, Np
from making.translation.noun_phrases import noun_phrase, personal, subject
from making.translation.parts import Part, english, french, part
from making.translation.statements import NEVER_NEGATED, TIMES, please, tense_for, verbal
from making.translation.verb_phrases import Complement, clause
from making.world.lexicon import World


def yes_no(world: World) -> Part:
    """`do you have any friends ?`."""
    who = personal(world, subject(world, pronouns=0.78))
    said = verbal(world, who, asked=True, negative=0.04)
    if world.chance(0.6):
        for word in said.english:
            word.word = "any" if word.word == "some" else word.word
    return said.sentence(asked=True)


def wh_question(world: World) -> Part:
    draw = world.rng.random()
    who = subject(world, pronouns=0.75)
    while who.impersonal or who.kind == "indefinite":
        who = subject(world, pronouns=0.75)
    if draw < 0.42:
        return _where_question(world, who)
    if draw < 0.64:
        return _what_question(world, who)
    if draw < 0.78:
        asker = Np(part("who", "qui"), kind="wh")
        return verbal(world, asker, negative=0.03).statement() + part("?", "?")
    return _which_question(world, who)


def _where_question(world: World, who: Np) -> Part:
    """`where do you live`: où est-ce que tu habites."""
    rows = table("question")
    left, right, _ = world.rng.choices(rows, [float(row[2]) for row in rows])[0]
    verb = any_verb(world)
    while verb.with_be and left != "why":
        verb = any_verb(world)
    tense = tense_for(world, verb)
    extra = Complement()
    if "0" not in verb.frames or not world.chance(0.6):
        extra = complement(world, verb, who)
    if extra.negative:
        extra = Complement()
    negated = left == "why" and world.chance(0.3) and tense not in NEVER_NEGATED
    negation = "not" if negated else ""
    said = clause(world, who, verb, tense, extra, asked=True, negation=negation)
    return part(left, right) + said.sentence(asked=True)


def _what_question(world: World, who: Np) -> Part:
    """`what do you eat`: qu'est-ce que tu manges."""
    verb = world.rng.choice(usable("np"))
    people = set(verb.objects.split("|")) <= set(PEOPLE.split("|"))
    tense = tense_for(world, verb)
    said = clause(world, who, verb, tense, Complement(), asked=True)
    tail = time_phrase(world, TIMES.get(tense, "any")) if world.chance(0.15) else Part()
    if people or world.chance(0.12):
        return part("who", "qui") + said.question() + tail + part("?", "?")
    first = english("what") + said.auxiliary
    heard = [*french("qu'est-ce que", first), *said.french]
    return Part(first + who.part.english + said.english, heard) + tail + part("?", "?")


def _which_question(world: World, who: Np) -> Part:
    """`which book did you read`, `how many books`."""
    verb = world.rng.choice(usable("np"))
    what = noun_phrase(world, verb.objects, plain=True, determiner="the")
    if what.noun is None or what.kind == "name" or what.first != "the":
        return _what_question(world, who)
    tense = tense_for(world, verb)
    said = clause(world, who, verb, tense, Complement(), asked=True).sentence(asked=True)
    if (what.plural or what.noun.mass) and world.chance(0.7):
        first = part("how many" if what.many else "how much", "combien de")
    else:
        first = part(world.rng.choice(("which", "what")), which(what))
    return first + Part(what.part.english[1:], what.part.french[1:]) + said


def let_me(world: World) -> Part:
    """`can you help me`, `could you open the window , please`."""
    who = Np(part("you", "tu"), person=1, kind="pron")
    if world.chance(0.3):
        who = Np(part("I", "je"), person=0, kind="pron")
    verb = any_verb(world, doing=True)
    tense = world.rng.choice(("can", "can", "could"))
    extra = complement(world, verb, who)
    if extra.negative:
        extra = Complement()
    said = clause(world, who, verb, tense, extra, asked=True).question()
    return said + (please() if world.chance(0.25) else Part()) + part("?", "?")
