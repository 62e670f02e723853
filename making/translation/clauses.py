"""Sentences of more than one clause, and clauses turned round: that, when, who, by, since."""

from collections.abc import Callable

from making.translation.adjuncts import clock_time, time_phrase
from making.translation.complements import any_verb, usable
from making.translation.conjugation import conjugate, past_participle
from making.translation.lexicon import Verb
from making.translation.nominal import PEOPLE, Np, name, pronoun_subject
from making.translation.noun_phrases import adjective_for, noun_phrase, subject
from making.translation.parts import Part, Word, english, french, part
from making.translation.statements import (
    TIMES,
    short_statement,
    some_adverb,
    tense_for,
    verbal,
)
from making.translation.verb_phrases import REFLEXIVE, STATES, Complement, clause
from making.world.lexicon import World


def while_doing(world: World) -> Part:
    """`he was sleeping when I arrived`: il dormait quand je suis arrivé."""
    first = verbal(
        world, subject(world, pronouns=0.8), _doing(world), tense="was-ing", negative=0.03
    ).statement()
    second = verbal(
        world, subject(world, pronouns=0.8), _doing(world), tense="past", negative=0.03
    ).statement()
    return first + part("when", "quand") + second


def _doing(world: World) -> Verb:
    while True:
        verb = any_verb(world)
        if verb.base not in STATES and not verb.base.startswith("be "):
            return verb


THAT_VERBS = (
    "think",
    "know",
    "hope",
    "believe",
    "say",
    "see",
    "feel",
    "understand",
    "hear",
    "forget",
)


def that_clause(world: World) -> Part:
    verbs_ = [
        v
        for v in usable("that")
        if v.french.split()[0] not in ("vouloir", "souhaiter", "douter", "préférer", "aimer")
    ]
    verb = world.rng.choice(
        [v for v in verbs_ if v.base in THAT_VERBS] if world.chance(0.7) else verbs_
    )
    who = subject(world, pronouns=0.85)
    while who.impersonal:
        who = subject(world)
    tense = world.rng.choices(("present", "past"), (80, 20))[0]
    head = clause(world, who, verb, tense, Complement()).statement()
    words = english("that") if world.chance(0.4) else []
    inner = world.rng.choice(INNER)(world)
    link = Word("que", tuple(words))
    return head + Part(words, [link]) + inner


def joined(world: World) -> Part:
    """Two short clauses with and, but, because, when, if, so."""
    left, right = world.rng.choice(
        (("and", "et"), ("and", "et"), ("but", "mais"), ("but", "mais"), ("because", "parce que"),
         ("because", "parce que"), ("when", "quand"), ("so", "donc"), ("or", "ou"))
    )  # fmt: skip
    comma = part(",", ",") if left in ("but", "so", "and") and world.chance(0.4) else Part()
    if world.chance(0.3):
        return condition(world)
    return (
        world.rng.choice(INNER)(world) + comma + part(left, right) + world.rng.choice(INNER)(world)
    )


def condition(world: World) -> Part:
    """`if it rains, we will stay home`."""
    who, other = pronoun_subject(world), pronoun_subject(world)
    left, right, tense = world.rng.choice(
        (
            ("if", "si", "present"),
            ("if", "si", "present"),
            ("when", "quand", "present"),
            ("when", "quand", "past"),
            ("before", "avant que", ""),
        )
    )
    if not tense:
        left, right, tense = "if", "si", "present"
    first = verbal(world, who, tense=tense, negative=0.1).statement()
    if world.chance(0.15) and tense == "present":
        first = part("it", "il") + part(
            *world.rng.choice((("rains", "pleut"), ("snows", "neige"))), content=True
        )
    second = verbal(
        world,
        other,
        tense="future" if tense == "present" and world.chance(0.8) else tense,
        negative=0.1,
    ).statement()
    if world.chance(0.6):
        return part(left, right) + first + part(",", ",") + second
    return second + part(left, right) + first


def relative(world: World) -> Part:
    return related(world).part


def related(world: World) -> Np:
    """`the man who lives here`, `the book that I bought`."""
    if world.chance(0.5):
        who = noun_phrase(world, PEOPLE, plain=True, determiner="the")
        inner = Np(
            part(world.rng.choice(("who", "who", "that")), "qui"),
            who.gender,
            who.person,
            None,
            "wh",
        )
        body = verbal(world, inner, negative=0.1).statement()
        return Np(who.part + body, who.gender, who.person, who.noun)
    verb = world.rng.choice(usable("np"))
    classes = next(f for f in verb.frames if f.startswith("np:"))[3:]
    what = noun_phrase(world, classes, plain=True, determiner="the")
    agreement = ("e" if what.gender == "f" else "") + ("s" if what.plural else "")
    person = bool(what.noun and what.noun.classes & set(PEOPLE.split("|")))
    words = english("who" if person else "that") if world.chance(0.6) else []
    tense = tense_for(world, verb)
    said = clause(
        world, pronoun_subject(world), verb, tense, Complement(agreement=agreement)
    ).statement()
    whole = what.part + Part(words, [Word("que", tuple(words))]) + said
    return Np(whole, what.gender, what.person, what.noun)


def relative_sentence(world: World) -> Part:
    """A relative clause in a sentence."""
    draw = world.rng.random()
    if draw < 0.4:
        return relative(world)
    if draw < 0.7:
        thing = part("this", "CE") if world.chance(0.5) else part("that", "CE")
        return thing + part("is", "est") + relative(world)
    who = pronoun_subject(world)
    verb = world.rng.choice(
        [
            v
            for v in usable("np")
            if v.base in ("know", "see", "like", "love", "find", "want", "read", "buy", "meet")
        ]
        or usable("np")
    )
    return clause(world, who, verb, tense_for(world, verb), Complement(relative(world))).statement()


def passive(world: World) -> Part:
    """`the cake was eaten by the dog`: le gâteau a été mangé par le chien."""
    verb = world.rng.choice(
        [
            v
            for v in usable("np")
            if v.auxiliary == "a" and " " not in v.french and v.base not in ("have", "want", "like")
        ]
    )
    classes = next(f for f in verb.frames if f.startswith("np:"))[3:]
    what = noun_phrase(world, classes, subject=True)
    past = world.chance(0.8)
    be = ("were" if what.many else "was") if past else ("are" if what.many else "is")
    front, main = english(be), english(verb.participle)
    agreement = ("e" if what.gender == "f" else "") + ("s" if what.plural else "")
    form = past_participle(verb.french)
    form = form + (agreement if not (agreement == "s" and form.endswith("s")) else "")
    negated = world.chance(0.1)
    nots = [Word("pas", tuple(front))] if negated else []
    if negated:
        front = english(be + "n't")
        nots = [Word("pas", tuple(front))]
    ne = [Word("ne", tuple(front))] if negated else []
    finite = conjugate("avoir" if past else "être", "present", what.person)
    heard = [
        *ne,
        Word(finite, tuple(front)),
        *nots,
        *([Word("été", tuple(front))] if past else []),
        Word(form, tuple(main), content=True),
    ]
    said = what.part + Part(front + main, heard)
    if world.chance(0.75):
        agent = (
            name(world)
            if world.chance(0.3)
            else noun_phrase(world, PEOPLE + "|animal", subject=True, plain=True)
        )
        said = said + part("by", "par") + agent.part
    return said + (time_phrase(world, "past") if past and world.chance(0.15) else Part())


def since(world: World) -> Part:
    """`they have lived here for ten years`: ils habitent ici depuis dix ans."""
    who = subject(world)
    while who.impersonal:
        who = subject(world)
    verb = world.rng.choice(
        [
            v
            for v in usable("0")
            if v.base
            in (
                "live",
                "work",
                "wait",
                "sleep",
                "study",
                "play",
                "read",
                "sing",
                "travel",
                "cry",
                "walk",
                "drive",
                "swim",
                "smoke",
                "rain",
            )
        ]
        or usable("0")
    )
    long = [("for an hour", "depuis une heure"), ("for two hours", "depuis deux heures"),
            ("for ten years", "depuis dix ans"),
            ("for a year", "depuis un an"), ("for a long time", "depuis longtemps"),
            ("since yesterday", "depuis hier"),
            ("since Monday", "depuis lundi"), ("for three days", "depuis trois jours"),
            ("for a week", "depuis une semaine"),
            ("for five minutes", "depuis cinq minutes"), ("since this morning", "depuis ce matin"),
            ("for six months", "depuis six mois")]  # fmt: skip
    left, right = world.rng.choice(long)
    has = english("has" if who.person == 2 else "have")
    if who.kind == "pron" and world.chance(0.5):
        has = english("'s" if who.person == 2 else "'ve")
    main = english(f"been {verb.ing}") if world.chance(0.6) else english(verb.participle)
    infinitive, *tail = verb.french.split(" ")
    of = tuple(has + main)
    pronoun = [Word(REFLEXIVE[who.person], of)] if verb.reflexive else []
    heard = [
        *pronoun,
        Word(conjugate(infinitive, "present", who.person), of, content=True),
        *french(" ".join(tail), main),
    ]
    here = part("here", "ici") if world.chance(0.4) else Part()
    if world.chance(0.2):
        adjective = adjective_for(world, who)
        form = adjective.french(who.gender, plural=who.plural).split("/")[0]
        main, said = english("been"), english(adjective.english)
        is_ = Word(conjugate("être", "present", who.person), tuple(has + main))
        here = Part()
        heard = [is_, *french(form, said, content=True)]
        main = main + said
    return who.part + Part(has + main, heard) + here + part(left, right)


def clause_adverb_first(world: World) -> Part:
    """`tomorrow we will go`: the time first, or an adverb of the sentence."""
    tense = world.rng.choice(("present", "past", "future", "past"))
    inner = verbal(world, subject(world), tense=tense, negative=0.1)
    if world.chance(0.5):
        some = some_adverb(world, ("sentence",), "front")
        first = part(some.english, some.french) if some else Part()
    else:
        first = time_phrase(world, TIMES.get(tense, "any"))
    comma = part(",", ",") if world.chance(0.5) else Part([], [])
    return first + comma + inner.statement()


def at_time(world: World) -> Part:
    who = subject(world)
    verb = any_verb(world)
    return verbal(
        world,
        who,
        verb,
        tense=world.rng.choice(("present", "past", "future", "going", "prog"))
        if verb.base not in STATES and not verb.base.startswith("be ")
        else "present",
        negative=0.05,
    ).statement() + clock_time(world)


def inner_statement(world: World) -> Part:
    return verbal(world, subject(world, pronouns=0.8)).statement()


INNER: list[Callable[[World], Part]] = [inner_statement, short_statement]
