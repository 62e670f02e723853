"""Questions with a verb: yes or no, who, what, where, how many."""

from making.translation.adjuncts import time_phrase
from making.translation.complements import any_verb, complement, usable
from making.translation.nominal import Np
from making.translation.noun_phrases import noun_phrase, subject
from making.translation.parts import Part, english, french, part
from making.translation.statements import TIMES, please, tense_for, verbal
from making.translation.verb_phrases import STATES, Clause, Complement, clause
from making.world.lexicon import World


def yes_no(world: World) -> Part:
    who = subject(world, pronouns=0.78)
    while who.impersonal:
        who = subject(world)
    said = verbal(world, who, asked=True, negative=0.04)
    if world.chance(0.6):
        for word in said.english:
            word.word = "any" if word.word == "some" else word.word
    return said.question() + part("?", "?")


QUESTION_WORDS = (
    ("where", "où", 20), ("when", "quand", 12), ("why", "pourquoi", 14), ("how", "comment", 9),
    ("how often", "à quelle fréquence", 1), ("what time", "à quelle heure", 6),
    ("how long", "combien de temps", 2), ("with whom", "avec qui", 0.4),
)  # fmt: skip


def asked_with(left: str, right: str, said: Clause) -> Part:
    """`where do you live`: où est-ce que tu habites."""
    first = part(left, right)
    body = said.question()
    return first + body + part("?", "?")


def wh_question(world: World) -> Part:
    draw = world.rng.random()
    who = subject(world, pronouns=0.75)
    while who.impersonal or who.kind == "indefinite":
        who = subject(world, pronouns=0.75)
    if draw < 0.42:
        left, right, _ = world.rng.choices(QUESTION_WORDS, [row[2] for row in QUESTION_WORDS])[0]
        verb = any_verb(world)
        while verb.base.startswith("be ") and left != "why":
            verb = any_verb(world)
        tense = tense_for(world, verb)
        extra = (
            Complement()
            if "0" in verb.frames and world.chance(0.6)
            else complement(world, verb, who)
        )
        if extra.negative:
            extra = Complement()
        not_so = (
            left == "why"
            and world.chance(0.3)
            and tense not in ("used-to", "may", "might", "would", "had-to")
        )
        said = clause(world, who, verb, tense, extra, asked=True, negation="not" if not_so else "")
        return asked_with(left, right, said)
    if draw < 0.64:
        return what_question(world, who)
    if draw < 0.78:
        asker = Np(part("who", "qui"), "m", 2, None, "wh")
        return verbal(world, asker, negative=0.03).statement() + part("?", "?")
    return which_question(world, who)


def what_question(world: World, who: Np) -> Part:
    verb = world.rng.choice(usable("np"))
    classes = next(f for f in verb.frames if f.startswith("np:"))[3:]
    people = set(classes.split("|")) <= {"person", "relative", "job"}
    tense = tense_for(world, verb)
    said = clause(world, who, verb, tense, Complement(), asked=True)
    tail = time_phrase(world, TIMES.get(tense, "any")) if world.chance(0.15) else Part()
    if people or world.chance(0.12):
        return part("who", "qui") + said.question() + tail + part("?", "?")
    first = english("what")
    keys = tuple(first + said.auxiliary)
    heard = [*french("qu'est-ce que", keys), *said.french]
    body = Part(first + said.auxiliary + who.part.english + said.english, heard)
    return body + tail + part("?", "?")


def which_question(world: World, who: Np) -> Part:
    verb = world.rng.choice(usable("np"))
    classes = next(f for f in verb.frames if f.startswith("np:"))[3:]
    noun = noun_phrase(world, classes, plain=True, determiner="the")
    if (
        noun.noun is None
        or noun.kind == "name"
        or not noun.part.english
        or noun.part.english[0].word != "the"
    ):
        return what_question(world, who)
    said = clause(world, who, verb, tense_for(world, verb), Complement(), asked=True).question()
    if (noun.plural or noun.noun.mass) and world.chance(0.7):
        first = part("how many" if noun.many else "how much", "combien de")
    else:
        form = "quel" if noun.gender == "m" else "quelle"
        first = part(world.rng.choice(("which", "what")), form + ("s" if noun.plural else ""))
    return first + Part(noun.part.english[1:], noun.part.french[1:]) + said + part("?", "?")


def let_me(world: World) -> Part:
    """`can you help me`, `could you open the window , please`."""
    you = Np(part("you", "tu"), "m", 1, None, "pron")
    if world.chance(0.3):
        you = Np(part("I", "je"), "m", 0, None, "pron")
    verb = any_verb(world)
    while verb.base in STATES or verb.base.startswith("be "):
        verb = any_verb(world)
    tense = world.rng.choice(("can", "can", "could"))
    extra = complement(world, verb, you)
    said = clause(
        world, you, verb, tense, extra if not extra.negative else Complement(), asked=True
    ).question()
    return said + (please() if world.chance(0.25) else Part()) + part("?", "?")
