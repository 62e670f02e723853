"""Sentences with be: qualities, jobs, places, it is."""

from making.translation.adjuncts import place_phrase, time_phrase
from making.translation.complements import any_verb, infinitive_of
from making.translation.conjugation import Tense, conjugate
from making.translation.lexicon import Noun, nouns_of, table
from making.translation.nominal import PEOPLE, PLACES, THINGS, Np, from_table, name, pronoun_subject
from making.translation.noun_phrases import (
    OTHERWISE,
    adjective_for,
    adjectives_of,
    built,
    noun_phrase,
    predicate,
    subject,
)
from making.translation.parts import Part, Word, Words, english, french, part
from making.translation.verb_phrases import (
    BE,
    NOT,
    SHORT,
    Clause,
    Complement,
    clause,
    is_form,
    negation_of,
)
from making.world.lexicon import World, article

LIKELY = {"present": 62, "past": 24, "future": 8, "going": 2, "perfect": 1, "must": 1, "want-to": 2}
ANYTHING = f"{PEOPLE}|{THINGS}|{PLACES}|animal|food|drink|body|nature|weather|event|abstract"
NOT_OF_IT = OTHERWISE | frozenset("cool windy sunny cloudy foggy rainy snowy dark nice".split())


def be(
    world: World,
    who: Np,
    extra: Part,
    *,
    asked: bool = False,
    tense: str = "",
    negative: float = 0.16,
) -> Clause:
    negation = "not" if world.chance(negative) and not who.impersonal else ""
    if negation and world.chance(0.1) and not asked:
        negation = world.rng.choice(("never", "no longer"))
    tense = tense or world.rng.choices(list(LIKELY), list(LIKELY.values()))[0]
    return clause(world, who, BE, tense, Complement(extra), negation=negation, asked=asked)


def etre(tense: str, person: int) -> str:
    """A simple tense of être; past is the imperfect."""
    simple: dict[str, Tense] = {"present": "present", "past": "imperfect", "future": "future"}
    return conjugate("être", simple[tense], person)


def someone_or_something(world: World) -> Np:
    if world.chance(0.5):
        return pronoun_subject(world, but=("it",))
    if world.chance(0.15):
        return subject(world, pronouns=0)
    return noun_phrase(world, ANYTHING, subject=True, plain=world.chance(0.85))


def said_of(world: World, who: Np) -> Part:
    """An adjective or two for a subject, in some degree."""
    first, second = adjective_for(world, who), adjective_for(world, who)
    said = predicate(first, who)
    said.reserved = world.held_out and who.noun is not None
    degree = from_table(world, "degree") if world.chance(0.33) else Part()
    if world.chance(0.1) and second != first:
        said += part("and", "et") + predicate(second, who)
    return degree + said


def quality(world: World) -> Part:
    """`the soup is too hot`."""
    who = someone_or_something(world)
    asked = world.chance(0.16) and not who.impersonal
    extra = said_of(world, who)
    some = extra.english[0].word in ("almost", "already", "a", "so", "quite", "often")
    said = be(world, who, extra, asked=asked, negative=0 if some else 0.16).sentence(asked=asked)
    return said + time_phrase(world, "any") if not asked and world.chance(0.07) else said


def job(world: World) -> Part:
    """`she is a doctor`: elle est médecin. `he is my friend`: c'est mon ami."""
    draw = world.rng.random()
    if world.chance(0.6):
        who = pronoun_subject(world)
    else:
        who = subject(world, pronouns=0, classes="relative|person")
    while who.impersonal or who.first == "it":
        who = pronoun_subject(world)
    if draw >= 0.6:
        return identity(world, who, person_noun(world, who))
    noun = world.rng.choice(nouns_of("job"))
    forms = (noun.french, noun.french_plural)
    one, many = noun.feminine if noun.feminine and who.gender == "f" else forms
    if who.plural:
        extra = part(noun.english_plural, many, content=True)
    else:
        extra = part(article(noun.english), "") + part(noun.english, one, content=True)
    asked = world.chance(0.12)
    return be(world, who, extra, asked=asked).sentence(asked=asked)


def person_noun(world: World, who: Np) -> Np:
    """`a good friend`: with the gender of who it is."""
    female = who.gender == "f"
    while True:
        noun = world.rng.choice(nouns_of(PEOPLE))
        if noun.mass or noun.plural_only:
            continue
        if noun.feminine and female:
            noun = Noun(noun.english, noun.english_plural, *noun.feminine, "f", noun.classes)
            break
        if noun.feminine or (noun.gender == "f") == female or who.plural:
            break
    many = adjectives_of(world, noun, world.rng.choices((0, 1), (65, 35))[0])
    kind = world.rng.choice(("my", "my", "a" if many or "relative" not in noun.classes else "my"))
    if not many and "job" in noun.classes:
        kind = "my"
    return built(world, noun, many, kind, plural=who.plural)


def identity(world: World, who: Np, what: Np) -> Part:
    """`he is my brother`: c'est mon frère; but `I am your friend`: je suis ton ami."""
    if who.kind != "pron" or who.person not in (2, 5):
        tense = world.rng.choice(("present", "present", "past"))
        return be(world, who, what.part, tense=tense).statement()
    tense = world.rng.choices(("present", "past"), (80, 20))[0]
    shape = is_form(who.person, past=tense == "past")
    if tense == "present" and world.chance(0.45):
        shape = SHORT[shape]
    nots = english("not") if world.chance(0.12) else ()
    ne, pas = negation_of(nots)
    front, ce = english(shape), Word("CE", who.part.english)
    heard = [ce, *ne, Word(etre(tense, who.person), front), *pas]
    return Part(who.part.english + front + nots, heard) + what.part


def located(world: World) -> Part:
    """`the cat is under the table`."""
    who = someone_or_something(world)
    asked = world.chance(0.16) and not who.impersonal
    said = be(world, who, place_phrase(world, only_places=True), asked=asked)
    tail = time_phrase(world, "any") if world.chance(0.08) else Part()
    return said.question() + tail + part("?", "?") if asked else said.statement() + tail


def weather(world: World) -> Part:
    """`it is cold`: il fait froid; `it was late`: il était tard."""
    said, heard, infinitive = world.rng.choice(table("weather"))
    tense = world.rng.choices((0, 1, 2), (60, 28, 12))[0]
    asked, negated = world.chance(0.15), world.chance(0.18)
    shape = ("is", "was", "will")[tense]
    if negated:
        shape = NOT[shape]
    elif tense != 1 and not asked and world.chance(0.45):
        shape = SHORT[shape]
    front, rest, words = english(shape), english("be" if tense == 2 else ""), english(said)
    of = front + rest if heard else front + rest + words
    tenses: tuple[Tense, ...] = ("present", "imperfect", "future")
    *y, verb = infinitive.split()
    finite = [
        *french(" ".join(y), of),
        Word(conjugate(verb, tenses[tense], 2), of, content=not heard),
    ]
    if y and negated:
        heard = heard.replace("du", "de")
    ne, pas = negation_of(front if negated else ())
    it = part("it", "il")
    extra = french(heard, words, content=True)
    whole = Clause(Np(it), front, rest + words, [*it.french, *ne, *finite, *pas, *extra])
    told = whole.question() if asked else whole.statement()
    if world.chance(0.35) and said not in ("late", "early", "too late"):
        day = (("today", "aujourd'hui"), ("yesterday", "hier"), ("tomorrow", "demain"))[tense]
        told += part(*world.rng.choice((day, ("outside", "dehors"), ("here", "ici"))))
    return told + part("?", "?") if asked else told


def that_is(world: World) -> Part:
    """`it is good`: c'est bon; `this is my book`; `these are my keys`; `it is mine`."""
    draw = world.rng.random()
    tense = world.rng.choices(("present", "past", "future"), (76, 18, 6))[0]
    negated, asked = world.chance(0.18), world.chance(0.2)
    world.rng.random()  # for nothing: the pairs of a seed depend on the number of draws
    plural = False
    if draw < 0.5:
        extra = _said_of_it(world)
    elif draw < 0.85:
        what = _thing(world)
        extra, plural = what.part, what.plural
    elif draw < 0.93:
        extra = from_table(world, "owner")
    else:
        extra = name(world).part
    these = ("they", "these", "those") if plural else ("it", "it", "it", "this", "that")
    said = _pointed(
        world, world.rng.choice(these), extra, tense, plural=plural, negated=negated, asked=asked
    )
    return said.sentence(asked=asked)


def _said_of_it(world: World) -> Part:
    """`good`, `too difficult to learn`, `far`."""
    noun = world.rng.choice(nouns_of("thing|food|abstract|small"))
    thing = Np(Part(), noun=None if world.held_out else noun)
    extra = said_of(world, thing)
    while any(word.word in NOT_OF_IT for word in extra.english):
        extra = said_of(world, thing)
    if extra.english[-1].word == "great":
        extra = part("great", "super", content=True)
    if world.chance(0.12):
        extra = from_table(world, "distance")
    return extra + to_do(world) if world.chance(0.15) else extra


def _thing(world: World) -> Np:
    """`my book`, `a friend`: no city or country."""
    world.rng.random()  # for nothing, as above
    classes = f"{THINGS}|{PEOPLE}|animal|food|abstract|event|building"
    what = noun_phrase(world, classes, determiner="my" if world.chance(0.4) else "")
    while what.kind == "name":
        what = noun_phrase(world, THINGS)
    return what


def _pointed(
    world: World, said: str, extra: Part, tense: str, *, plural: bool, negated: bool, asked: bool
) -> Clause:
    """it is, these are not, this won't be."""
    person = 5 if plural else 2
    shape = "will" if tense == "future" else is_form(person, past=tense == "past")
    rest = english("be") if shape == "will" else ()
    front = english(shape)
    nots: Words = ()
    source: Words = ()
    if negated:
        if world.chance(0.6):
            source = front = english(NOT[shape])
        else:
            source = nots = english("not")
            short = shape in ("is", "are") and said not in ("this", "these", "those")
            if not asked and world.chance(0.6) and short:
                front = english(SHORT[shape])
    elif not asked and shape in ("is", "will") and said in ("it", "that") and world.chance(0.5):
        front = english(SHORT[shape])
    ne, pas = negation_of(source)
    it = part(said, "CE")
    heard = [*it.french, *ne, Word(etre(tense, person), front + rest), *pas, *extra.french]
    return Clause(Np(it), front, nots + rest + extra.english, heard, extra.reserved)


def to_do(world: World) -> Part:
    """`(it is easy) to learn`: d'apprendre."""
    verb = any_verb(world)
    while verb.with_be or verb.reflexive:
        verb = any_verb(world)
    return infinitive_of(world, verb, Np(Part()), "inf-de", "your")


def told(world: World) -> Part:
    """A statement with be, short enough for a that-clause."""
    while True:
        said = world.rng.choice((quality, quality, that_is, job, located))(world)
        if said.english[-1].word != "?":
            return said
