"""Comparatives and superlatives."""

from making.translation.being import _form, be, identity, someone_or_something
from making.translation.lexicon import nouns_of
from making.translation.nominal import OBJECTS, PEOPLE, PLACES, THINGS, Np, name, object_pronoun
from making.translation.noun_phrases import adjective_for, adjectives_of, noun_phrase, subject
from making.translation.parts import Part, Word, english, french, part
from making.world.lexicon import World

SHORT = frozenset(
    "big small tall short old young new long fast slow "
    "strong weak rich poor cheap nice kind cold hot "
    "warm cool clean dirty dark light heavy hard soft easy busy happy funny pretty ugly early late "
    "high low deep wide thin thick fat smart clever quiet "
    "loud calm sweet sour clear dry wet sad safe "
    "great fine large little near close simple noisy "
    "lazy angry hungry healthy lucky friendly lovely "
    "brave proud cute crazy".split()
)


def compared(world: World) -> Part:
    """`he is taller than his father`, `as big as`, `the biggest house`."""
    who = someone_or_something(world)
    while who.impersonal:
        who = someone_or_something(world)
    adjective = adjective_for(world, who)
    while adjective.english not in SHORT and world.chance(0.6):
        adjective = adjective_for(world, who)
    form = _form(adjective.french(who.gender, plural=who.plural))
    draw = world.rng.random()
    if adjective.english in ("good", "bad", "well", "better", "worse") or draw < 0.06:
        better = world.chance(0.75)
        word = "meilleur" if better else "pire"
        ending = ("e" if who.gender == "f" and better else "") + ("s" if who.plural else "")
        said = part("better" if better else "worse", word + ending, content=True)
        link = part("than", "que")
    elif draw < 0.72:
        link = part("than", "que")
        if draw < 0.08:
            said = part("less", "moins") + part(adjective.english, form, content=True)
        elif adjective.english in SHORT or (
            adjective.english.islower()
            and len(adjective.english) <= 5
            and not adjective.english.endswith(("ed", "ful", "ous", "al"))
        ):
            words = english(_er(adjective.english))
            said = Part(words, [Word("plus", tuple(words)), *french(form, words, content=True)])
        else:
            said = part("more", "plus") + part(adjective.english, form, content=True)
    else:
        said = part("as", "aussi") + part(adjective.english, form, content=True)
        link = part("as", "que")
    if world.chance(0.16) and link.english[0].word == "than":
        return be(world, who, said, tense="present", negative=0.1).statement()
    if world.chance(0.35):
        pronoun = object_pronoun(world, person=True)
        other = part(pronoun, OBJECTS[pronoun][2])
    elif world.chance(0.25):
        yours = world.rng.choice(
            (("mine", "le mien", "la mienne"), ("yours", "le tien", "la tienne"))
        )
        other = (
            part(yours[0], yours[2 if who.gender == "f" else 1])
            if not who.plural
            else name(world).part
        )
    else:
        other = noun_phrase(
            world, "|".join(who.noun.classes) if who.noun else PEOPLE, subject=True, plain=True
        ).part
    return be(
        world,
        who,
        said + link + other,
        tense=world.rng.choice(("present", "present", "past")),
        negative=0.12,
    ).statement()


def _er(word: str, ending: str = "er") -> str:
    if word.endswith("e"):
        return word + ending[1:]
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "i" + ending
    if len(word) <= 4 and word[-1] in "bdgnpt" and word[-2] in "aeiou" and word[-3] not in "aeiou":
        return word + word[-1] + ending
    return word + ending


def superlative(world: World) -> Part:
    """`the biggest house in the village`; `she is the best student in the class`."""
    noun = world.rng.choice(nouns_of(f"{THINGS}|{PEOPLE}|{PLACES}|animal|event|abstract"))
    while noun.mass or noun.plural_only:
        noun = world.rng.choice(nouns_of(f"{THINGS}|{PEOPLE}|{PLACES}|animal|event|abstract"))
    the = "LE" if noun.gender == "m" else "LA"
    first, last = english("the"), english(noun.english)
    named = french(noun.french, last, content=True)
    if world.chance(0.2):
        words = english("best")
        phrase = Part(
            first + words + last,
            [
                Word(the, tuple(first)),
                *french("meilleur" if noun.gender == "m" else "meilleure", words, content=True),
                *named,
            ],
        )
    else:
        one = adjectives_of(world, noun, 1)
        if not one:
            return superlative(world)
        adjective = one[0]
        form = _form(adjective.french(noun.gender))
        if adjective.english in ("good", "bad"):
            return superlative(world)
        if adjective.english in SHORT or len(adjective.english) <= 4:
            words = english(_er(adjective.english, "est"))
            most: list[Word] = [Word("plus", tuple(words)), *french(form, words, content=True)]
        else:
            more, word = english("most"), english(adjective.english)
            words = more + word
            most = [Word("plus", tuple(more)), *french(form, word, content=True)]
        if adjective.before:
            heard = [Word(the, tuple(first)), *most, *named]
        else:
            heard = [Word(the, tuple(first)), *named, Word(the.lower() + "_", tuple(first)), *most]
            heard[len(named) + 1] = Word(the, tuple(first))
        phrase = Part(first + words + last, heard, world.held_out)
    tail = (
        part("in", "de")
        + part(
            *world.rng.choice(
                (
                    ("the world", "LE monde"),
                    ("the class", "LA classe"),
                    ("the city", "LA ville"),
                    ("the village", "LE village"),
                    ("the country", "LE pays"),
                )
            )
        )
        if world.chance(0.5)
        else Part()
    )
    draw = world.rng.random()
    if draw < 0.4:
        return phrase + tail
    who = subject(world, pronouns=0.5)
    while who.impersonal or who.plural or who.part.english[0].word in ("I", "you", "it"):
        who = subject(world, pronouns=0.5)
    return (
        identity(world, who, Np(phrase + tail, noun.gender, 2, noun))
        if draw < 0.8
        else part("it", "CE") + part("is", "est") + phrase + tail
    )
