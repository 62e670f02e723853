"""Statements with a verb."""

from making.translation.adjuncts import clock_time, place_phrase, time_phrase
from making.translation.complements import any_verb, complement, of_frame, usable
from making.translation.conjugation import conjugate
from making.translation.lexicon import Adverb, Verb, adverbs
from making.translation.nominal import PEOPLE, THINGS, Np, pronoun_subject
from making.translation.noun_phrases import noun_phrase, personal, subject
from making.translation.parts import Part, Word, Words, english, part
from making.translation.verb_phrases import (
    LIKELY,
    NOT,
    Clause,
    Complement,
    clause,
    is_form,
    negation_of,
)
from making.world.lexicon import World

TIMES = {"past": "past", "was-ing": "past", "had-to": "past", "future": "future", "going": "future"}
NEVER_NEGATED = ("used-to", "may", "might", "would", "had-to")
WITHOUT_NEVER = ("prog", "was-ing", "going", "would-like", "want-to", "wanted-to")
WITHOUT_ADVERB = ("would-like", "want-to", "have-to", "had-to", "wanted-to")
SHORT_ADVERBS = ("bien", "très bien", "mal", "beaucoup", "mieux", "un peu", "trop", "assez")
NOT_BESIDE_VERBS = (
    "too", "even", "just", "only", "hardly ever", "almost never", "almost", "nearly",
)  # fmt: skip
LIKE = Verb("like", "likes", "liked", "liked", "liking", "vouloir")  # would like
GOT = Verb("got", "got", "got", "got", "got", "avoir")
BEEN = Verb("go", "goes", "went", "been", "going", "aller", auxiliary="e")
WORK = Verb("work", "works", "worked", "worked", "working", "fonctionner")


def tense_for(world: World, verb: Verb) -> str:
    """A tense that the verb can have: no knowing, seldom can know."""
    state = verb.state or verb.base == "be"
    while True:
        tense = world.rng.choices(list(LIKELY), list(LIKELY.values()))[0]
        if state and tense in ("prog", "was-ing"):
            continue
        if state and tense in ("can", "could", "must", "may", "might") and world.chance(0.7):
            continue
        if verb.base in ("want", "need") and tense in ("want-to", "wanted-to", "would-like"):
            continue
        return tense


def unmistakable(tense: str, verb: Verb, who: Np, *, asked: bool = False) -> str:
    """`we put it` is the present here, for it could be either."""
    either = tense == "past" and verb.past == verb.base and who.english_person != 2 and not asked
    return "present" if either else tense


def some_adverb(world: World, kinds: tuple[str, ...], position: str) -> Adverb:
    return world.rng.choice([a for a in adverbs() if a.kind in kinds and a.position == position])


def with_adjuncts(world: World, tense: str, *, time: float = 0.17) -> Part:
    """A place, a time, a manner, or nothing."""
    added = Part()
    if world.chance(0.1):
        added += place_phrase(world, only_places=world.chance(0.85))
    if world.chance(time):
        added += time_phrase(world, TIMES.get(tense, "present" if tense == "prog" else "any"))
    if added.english and world.chance(0.06) and "à" not in [w.word for w in added.french]:
        added = clock_time(world) + added
    if not added.english and world.chance(0.06):
        manner = some_adverb(world, ("manner", "place"), "end")
        if manner.french not in SHORT_ADVERBS:
            added = part(manner.english, manner.french)
    return added


def verbal(
    world: World,
    who: Np,
    verb: Verb | None = None,
    *,
    tense: str = "",
    asked: bool = False,
    negative: float = 0.2,
) -> Clause:
    """A clause with a verb that means something."""
    verb = verb or any_verb(world)
    tense = unmistakable(tense or tense_for(world, verb), verb, who, asked=asked)
    negation = ""
    if world.chance(negative) and not who.impersonal and tense not in NEVER_NEGATED:
        weights = (80, 0, 0) if asked else (80, 16, 3)
        negation = world.rng.choices(("not", "never", "no longer"), weights)[0]
    if negation == "never" and tense in WITHOUT_NEVER:
        negation = "not"
    extra = complement(world, verb, who, negated=bool(negation) or who.impersonal)
    if extra.negative and (
        who.impersonal
        or negation in ("never", "no longer")
        or (not negation and extra.negative.of[0].word.startswith("any"))
    ):
        extra = Complement()
    adverb, beside = _adverbs(world, verb, tense, extra, negation=negation, asked=asked)
    said = clause(
        world, who, verb, tense, extra, negation=negation, asked=asked, adverb=adverb, beside=beside
    )
    tail = with_adjuncts(world, tense) if not beside else Part()
    said.english += tail.english
    said.french += tail.french
    return said


def _adverbs(
    world: World, verb: Verb, tense: str, extra: Complement, *, negation: str, asked: bool
) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """An adverb beside the verb in both languages, or in French alone."""
    bare = not negation and not extra.negative
    if bare and world.chance(0.09) and tense not in WITHOUT_ADVERB:
        some = some_adverb(world, ("frequency", "degree"), "verb")
        named = (some.english, some.french)
        return (None if some.english in NOT_BESIDE_VERBS else named), None
    if negation == "not" and tense == "perfect" and world.chance(0.3):
        return None, ("yet", "encore")
    if asked and tense == "perfect" and not negation and world.chance(0.3):
        return ("ever", "déjà"), None
    if (
        not verb.with_be
        and (not asked or world.chance(0.6))
        and not extra.negative
        and world.chance(0.08)
    ):
        some = world.rng.choice([a for a in adverbs() if a.french in SHORT_ADVERBS])
        if some.kind != "degree" or not extra.part.french:
            return None, (some.english, some.french)
    return None, None


def statement(world: World) -> Part:
    return verbal(world, subject(world)).statement()


def been_to(world: World) -> Part:
    """`I have never been to London`: je ne suis jamais allé à Londres."""
    who = pronoun_subject(world) if world.chance(0.8) else subject(world)
    asked = world.chance(0.25)
    while who.impersonal:
        who = pronoun_subject(world)
    frame = world.rng.choice(("to=à:city|country", "to=à:city|country", "to=à:place"))
    extra = of_frame(world, BEEN, frame, who)
    negation = "" if asked else world.rng.choice(("never", "never", "", "not"))
    adverb = ("ever", "déjà") if asked else None
    if not asked and not negation and world.chance(0.3):
        adverb = ("already", "déjà")
    said = clause(world, who, BEEN, "perfect", extra, negation=negation, asked=asked, adverb=adverb)
    return said.sentence(asked=asked)


def born(world: World) -> Part:
    """`she was born in Paris`: elle est née à Paris."""
    who = personal(world, subject(world, classes="person|relative"), but=("it",))
    was, words = english(is_form(who.person, past=True)), english("born")
    is_ = Word(conjugate("être", "present", who.person), was)
    heard = [is_, Word("né" + who.agreement, words, content=True)]
    if world.chance(0.7):
        where = of_frame(world, BEEN, "in=à:city|country", who).part
    else:
        where = time_phrase(world, "past")
    if world.chance(0.2):
        asking = part(*world.rng.choice((("where", "où"), ("when", "quand"))))
        said = Clause(who, was, words, [*who.part.french, *heard])
        return asking + said.sentence(asked=True)
    return who.part + Part(was + words, heard) + where


def prefer_to(world: World) -> Part:
    """`I prefer tea to coffee`: je préfère le thé au café."""
    who = pronoun_subject(world)
    verb = next(v for v in usable("np") if v.base == "prefer")
    classes = world.rng.choice(("drink", "food", "sport", "animal"))
    first = noun_phrase(world, classes, plain=True, determiner="the*")
    second = noun_phrase(world, classes, plain=True, determiner="the*")
    while second.noun == first.noun:
        second = noun_phrase(world, classes, plain=True, determiner="the*")
    extra = Complement(first.part + part("to", "à") + second.part)
    return clause(world, who, verb, "present", extra).statement()


def body(world: World) -> Part:
    """`my sister has blue eyes`: ma sœur a des yeux bleus."""
    who = subject(world, classes="person|relative")
    verb = next(
        v
        for v in usable("np")
        if v.base
        == world.rng.choice(
            ("have", "have", "wash", "break", "touch", "open", "close", "see", "like")
        )
        or v.base == "have"
    )
    has = verb.base == "have"
    what = noun_phrase(world, "body", determiner="" if has else "my", negated=who.impersonal)
    tense = "present" if has else tense_for(world, verb)
    return clause(world, who, verb, tense, Complement(what.part)).statement()


def would_love(world: World) -> Part:
    """`I would love to go`: j'aimerais aller."""
    who = pronoun_subject(world)
    verb = next(v for v in usable("inf") if v.base == "love")
    return clause(world, who, verb, "would", of_frame(world, verb, "inf", who)).statement()


def works(world: World) -> Part:
    """`my computer doesn't work`: mon ordinateur ne fonctionne pas."""
    determiner = world.rng.choice(("my", "the", "this"))
    who = noun_phrase(world, "device|vehicle|tool", subject=True, determiner=determiner)
    tense = world.rng.choice(("present", "present", "past", "prog", "future"))
    asked = world.chance(0.2)
    negation = "not" if world.chance(0.5) else ""
    said = clause(world, who, WORK, tense, Complement(), negation=negation, asked=asked)
    return said.sentence(asked=asked)


def short_statement(world: World) -> Part:
    """Subject and verb, or with a pronoun: she sleeps, I love you."""
    verb = any_verb(world)
    who = pronoun_subject(world) if world.chance(0.8) else subject(world)
    extra = Complement()
    if verb.objects and ("0" not in verb.frames or world.chance(0.5)):
        extra = of_frame(world, verb, f"np:{verb.objects}", who).affirmed
    elif "0" not in verb.frames:
        extra = complement(world, verb, who).affirmed
    tense = unmistakable(tense_for(world, verb), verb, who)
    return clause(world, who, verb, tense, extra).statement()


def would_like(world: World) -> Part:
    who = pronoun_subject(world)
    classes = world.rng.choice(("food", "drink", "small|clothes|read", "food|drink"))
    extra = Complement(noun_phrase(world, classes).part)
    if world.chance(0.25):
        return clause(world, who, LIKE, "would", extra, asked=True).sentence(asked=True)
    said = clause(world, who, LIKE, "would", extra).statement()
    return said + please() if world.chance(0.3) else said


def please() -> Part:
    return part(",", ",") + part("please", "s'il te plaît")


def have_got(world: World) -> Part:
    """`I have got a dog`: j'ai un chien; have and got stand for one French verb."""
    who = subject(world)
    negated = world.chance(0.25)
    classes = THINGS + "|animal|relative|money"
    what = noun_phrase(world, classes, negated=negated or who.impersonal).part
    negation = "not" if negated and not who.impersonal else ""
    said = clause(world, who, GOT, "perfect", Complement(what), negation=negation)
    has = conjugate("avoir", "present", who.person)
    got = said.english[: -len(what.english)][-1:]
    heard = [word for word in said.french if word.word != "eu"]
    start = len(who.part.french)
    at = next(i for i, word in enumerate(heard) if word.word == has and i >= start)
    heard[at] = Word(has, said.auxiliary + got, content=True)
    said.french = heard
    return said.statement()


def there_is(world: World) -> Part:
    """`there are two dogs`: il y a deux chiens."""
    tense = world.rng.choices(("present", "past", "future"), (70, 24, 6))[0]
    asked = world.chance(0.22)
    negated = not asked and world.chance(0.25)
    classes = world.rng.choice(
        (THINGS, PEOPLE, "animal", "food|drink", "building|place|nature", THINGS, "event|abstract")
    )
    determiners = ("any", "no", "a") if negated else ("a", "a", "quantity", "number")
    determiner = world.rng.choice(determiners)
    what = noun_phrase(world, classes, negated=negated, determiner=determiner)
    be = "will" if tense == "future" else is_form(what.english_person, past=tense == "past")
    there, front = english("there"), english(be)
    nots: Words = ()
    if negated and determiner == "no" and what.first == "no":
        nots = what.part.english[:1]
    elif negated:
        nots = front = english(NOT[be])
    elif be in ("is", "will") and not asked and world.chance(0.4):
        front = english("'s" if be == "is" else "'ll")
    rest = english("be") if tense == "future" else ()
    keys = there + front + rest
    finite = {"present": "a", "past": "avait", "future": "aura"}[tense]
    ne, pas = negation_of(nots)
    heard = [Word("il", keys), *ne, Word("y", keys), Word(finite, keys), *pas]
    said = Clause(Np(Part(there)), front, rest + what.part.english, heard + what.part.french)
    said.reserved = what.part.reserved
    whole = said.question() if asked else said.statement()
    if world.chance(0.6):
        whole += place_phrase(world, only_places=True)
    return whole + part("?", "?") if asked else whole
