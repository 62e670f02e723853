"""Sentences of more than one clause, and clauses turned round: that, when, who, by, since."""

from collections.abc import Callable

from making.translation.adjuncts import clock_time, time_phrase
from making.translation.being import told
from making.translation.complements import any_verb, usable
from making.translation.conjugation import conjugate, past_participle
from making.translation.lexicon import table
from making.translation.nominal import PEOPLE, Np, from_table, pronoun_subject
from making.translation.noun_phrases import (
    adjective_for,
    form_for,
    noun_phrase,
    personal,
    someone,
    subject,
)
from making.translation.parts import Part, Word, english, french, part
from making.translation.statements import TIMES, short_statement, some_adverb, tense_for, verbal
from making.translation.verb_phrases import (
    NOT,
    REFLEXIVE,
    Complement,
    agreeing,
    clause,
    is_form,
    negation_of,
)
from making.world.lexicon import World

THAT_VERBS = "think know hope believe say see feel understand hear forget".split()
WITH_SUBJUNCTIVE = ("vouloir", "souhaiter", "douter", "préférer", "aimer")
RELATIVE_VERBS = "know see like love find want read buy meet".split()
LASTING = "live work wait sleep study play read sing travel cry walk drive swim smoke rain".split()


def while_doing(world: World) -> Part:
    """`he was sleeping when I arrived`: il dormait quand je suis arrivé."""
    return _doing(world, "was-ing") + part("when", "quand") + _doing(world, "past")


def _doing(world: World, tense: str) -> Part:
    who, verb = subject(world, pronouns=0.8), any_verb(world, doing=True)
    return verbal(world, who, verb, tense=tense, negative=0.03).statement()


def that_clause(world: World) -> Part:
    """`I think that he sleeps`: je pense qu'il dort."""
    fit = [v for v in usable("that") if v.french.split()[0] not in WITH_SUBJUNCTIVE]
    much_used = [v for v in fit if v.base in THAT_VERBS]
    verb = world.rng.choice(much_used if world.chance(0.7) else fit)
    who = personal(world, subject(world, pronouns=0.85))
    tense = world.rng.choices(("present", "past"), (80, 20))[0]
    head = clause(world, who, verb, tense, Complement()).statement()
    that = english("that") if world.chance(0.4) else ()
    return head + Part(that, [Word("que", that)]) + _inner(world)


def joined(world: World) -> Part:
    """Two short clauses with and, but, because, when, if, so."""
    link = from_table(world, "link")
    with_comma = link.english[0].word in ("but", "so", "and") and world.chance(0.4)
    if world.chance(0.3):
        return condition(world)
    comma = part(",", ",") if with_comma else Part()
    return _inner(world) + comma + link + _inner(world)


def condition(world: World) -> Part:
    """`if it rains, we will stay home`."""
    who, other = pronoun_subject(world), pronoun_subject(world)
    left, right, tense = world.rng.choice(table("condition"))
    first = verbal(world, who, tense=tense, negative=0.1).statement()
    if world.chance(0.15) and tense == "present":
        first = part("it", "il") + from_table(world, "weather verb", content=True)
    if tense == "present" and world.chance(0.8):
        tense = "future"
    second = verbal(world, other, tense=tense, negative=0.1).statement()
    if world.chance(0.6):
        return part(left, right) + first + part(",", ",") + second
    return second + part(left, right) + first


def related(world: World) -> Np:
    """`the man who lives here`, `the book that I bought`."""
    if world.chance(0.5):
        who = noun_phrase(world, PEOPLE, plain=True, determiner="the")
        link = part(world.rng.choice(("who", "who", "that")), "qui")
        inner = Np(link, who.gender, who.person, kind="wh")
        body = verbal(world, inner, negative=0.1).statement()
        return Np(who.part + body, who.gender, who.person, who.noun)
    verb = world.rng.choice(usable("np"))
    what = noun_phrase(world, verb.objects, plain=True, determiner="the")
    that = english("who" if what.person_like else "that") if world.chance(0.6) else ()
    tense = tense_for(world, verb)
    extra = Complement(agreement=what.agreement)
    said = clause(world, pronoun_subject(world), verb, tense, extra).statement()
    whole = what.part + Part(that, [Word("que", that)]) + said
    return Np(whole, what.gender, what.person, what.noun)


def relative_sentence(world: World) -> Part:
    """A relative clause in a sentence."""
    draw = world.rng.random()
    if draw < 0.4:
        return related(world).part
    if draw < 0.7:
        this = "this" if world.chance(0.5) else "that"
        return part(this, "CE") + part("is", "est") + related(world).part
    who = pronoun_subject(world)
    verb = world.rng.choice([v for v in usable("np") if v.base in RELATIVE_VERBS])
    tense = tense_for(world, verb)
    return clause(world, who, verb, tense, Complement(related(world).part)).statement()


def passive(world: World) -> Part:
    """`the cake was eaten by the dog`: le gâteau a été mangé par le chien."""
    fit = [v for v in usable("np") if v.auxiliary == "a" and " " not in v.french]
    verb = world.rng.choice([v for v in fit if v.base not in ("have", "want", "like")])
    what = noun_phrase(world, verb.objects, subject=True)
    past = world.chance(0.8)
    negated = world.chance(0.1)
    be = is_form(what.english_person, past=past)
    front, main = english(NOT[be] if negated else be), english(verb.participle)
    ne, pas = negation_of(front if negated else ())
    heard = [
        *ne,
        Word(conjugate("avoir" if past else "être", "present", what.person), front),
        *pas,
        *(french("été", front) if past else ()),
        Word(agreeing(past_participle(verb.french), what.agreement), main, content=True),
    ]
    said = what.part + Part(front + main, heard)
    if world.chance(0.75):
        said += part("by", "par") + someone(world, 0.3, PEOPLE + "|animal").part
    return said + (time_phrase(world, "past") if past and world.chance(0.15) else Part())


def since(world: World) -> Part:
    """`they have lived here for ten years`: ils habitent ici depuis dix ans."""
    who = personal(world, subject(world))
    verb = world.rng.choice([v for v in usable("0") if v.base in LASTING])
    time = from_table(world, "since")
    third = who.person == 2
    has = english("has" if third else "have")
    if who.kind == "pron" and world.chance(0.5):
        has = english("'s" if third else "'ve")
    main = english(f"been {verb.ing}" if world.chance(0.6) else verb.participle)
    here = part("here", "ici") if world.chance(0.4) else Part()
    if world.chance(0.2):
        adjective = adjective_for(world, who)
        been, said = english("been"), english(adjective.english)
        is_ = Word(conjugate("être", "present", who.person), has + been)
        form = french(form_for(adjective, who), said, content=True)
        return who.part + Part(has + been + said, [is_, *form]) + time
    infinitive, *tail = verb.french.split(" ")
    heard = [
        *([Word(REFLEXIVE[who.person], has + main)] if verb.reflexive else []),
        Word(conjugate(infinitive, "present", who.person), has + main, content=True),
        *french(" ".join(tail), main),
    ]
    return who.part + Part(has + main, heard) + here + time


def clause_adverb_first(world: World) -> Part:
    """`tomorrow we will go`: the time first, or an adverb of the sentence."""
    tense = world.rng.choice(("present", "past", "future", "past"))
    inner = verbal(world, subject(world), tense=tense, negative=0.1)
    if world.chance(0.5):
        some = some_adverb(world, ("sentence",), "front")
        first = part(some.english, some.french)
    else:
        first = time_phrase(world, TIMES.get(tense, "any"))
    comma = part(",", ",") if world.chance(0.5) else Part()
    return first + comma + inner.statement()


def at_time(world: World) -> Part:
    """`the train leaves at eight`."""
    who = subject(world)
    verb = any_verb(world)
    tense = "present"
    if not verb.state:
        tense = world.rng.choice(("present", "past", "future", "going", "prog"))
    return verbal(world, who, verb, tense=tense, negative=0.05).statement() + clock_time(world)


def _inner(world: World) -> Part:
    return world.rng.choice(INNER)(world)


def inner_statement(world: World) -> Part:
    return verbal(world, subject(world, pronouns=0.8)).statement()


INNER: tuple[Callable[[World], Part], ...] = (inner_statement, short_statement, told)
"""What a clause inside a sentence can be."""
