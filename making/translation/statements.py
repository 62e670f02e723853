"""Statements with a verb."""

from making.translation.adjuncts import clock_time, place_phrase, time_phrase
from making.translation.complements import any_verb, complement, of_frame, usable
from making.translation.conjugation import conjugate
from making.translation.lexicon import Adverb, Verb, adverbs
from making.translation.nominal import PEOPLE, THINGS, Np, pronoun_subject
from making.translation.noun_phrases import noun_phrase, subject
from making.translation.parts import Part, Word, english, french, part
from making.translation.verb_phrases import LIKELY, STATES, Clause, Complement, clause
from making.world.lexicon import World

TIMES = {"past": "past", "was-ing": "past", "had-to": "past", "future": "future", "going": "future"}
SHORT_ADVERBS = ("bien", "très bien", "mal", "beaucoup", "mieux", "un peu", "trop", "assez")
LIKE = Verb("like", "likes", "liked", "liked", "liking", "vouloir", False, "a", ())  # would like
GOT = Verb("got", "got", "got", "got", "got", "avoir", False, "a", ())


def tense_for(world: World, verb: Verb) -> str:
    while True:
        tense = world.rng.choices(list(LIKELY), list(LIKELY.values()))[0]
        state = verb.base.split()[0] in STATES | {"be"} and verb.base in STATES | {
            verb.base if verb.base.startswith("be") else ""
        }
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


def some_adverb(world: World, kinds: tuple[str, ...], position: str) -> Adverb | None:
    fit = [a for a in adverbs() if a.kind in kinds and a.position == position]
    return world.rng.choice(fit) if fit else None


def with_adjuncts(world: World, tense: str, *, place: float = 0.1, time: float = 0.17) -> Part:
    added = Part()
    if world.chance(place):
        added = added + place_phrase(world, only_places=world.chance(0.85))
    if world.chance(time):
        added = added + time_phrase(
            world, TIMES.get(tense, "present" if tense == "prog" else "any")
        )
    if added.english and world.chance(0.06):
        added = clock_time(world) + added if "à" not in [w.word for w in added.french] else added
    if not added.english and world.chance(0.06):
        manner = some_adverb(world, ("manner", "place"), "end")
        added = (
            part(manner.english, manner.french)
            if manner and manner.french not in SHORT_ADVERBS
            else added
        )
    return added


def verbal(
    world: World,
    who: Np,
    verb: Verb | None = None,
    *,
    tense: str = "",
    asked: bool = False,
    negative: float = 0.2,
    frame: str = "",
) -> Clause:
    """A clause with a verb that means something."""
    verb = verb or any_verb(world)
    tense = unmistakable(tense or tense_for(world, verb), verb, who, asked=asked)
    negation = ""
    if (
        world.chance(negative)
        and not who.impersonal
        and tense not in ("used-to", "may", "might", "would", "had-to")
    ):
        negation = world.rng.choices(
            ("not", "never", "no longer"), (80, 16 if not asked else 0, 3 if not asked else 0)
        )[0]
    if negation == "never" and tense in (
        "prog",
        "was-ing",
        "going",
        "would-like",
        "want-to",
        "wanted-to",
    ):
        negation = "not"
    negated = bool(negation) or bool(who.impersonal)
    extra = (
        of_frame(world, verb, frame, who, negated=negated)
        if frame
        else complement(world, verb, who, negated=negated)
    )
    if extra.negative and (who.impersonal or negation in ("never", "no longer")):
        extra = Complement()
    if extra.negative and not negation and extra.negative.of[0].word.startswith("any"):
        extra = Complement()
    adverb = beside = None
    if (
        not negation
        and not extra.negative
        and world.chance(0.09)
        and tense not in ("would-like", "want-to", "have-to", "had-to", "wanted-to")
    ):
        some = some_adverb(world, ("frequency", "degree"), "verb")
        if some and some.english not in (
            "too",
            "even",
            "just",
            "only",
            "hardly ever",
            "almost never",
            "almost",
            "nearly",
        ):
            adverb = (some.english, some.french)
    elif negation == "not" and tense == "perfect" and world.chance(0.3):
        beside = ("yet", "encore")
    elif asked and tense == "perfect" and not negation and world.chance(0.3):
        adverb = ("ever", "déjà")
    elif (
        verb.base[:3] != "be "
        and (not asked or world.chance(0.6))
        and not extra.negative
        and world.chance(0.08)
    ):
        fit = [a for a in adverbs() if a.french in SHORT_ADVERBS]
        some = world.rng.choice(fit)
        if some.kind != "degree" or not extra.part.french:
            beside = (some.english, some.french)
    said = clause(
        world, who, verb, tense, extra, negation=negation, asked=asked, adverb=adverb, beside=beside
    )
    tail = with_adjuncts(world, tense) if not beside else Part()
    said.english = said.english + tail.english
    said.french = said.french + tail.french
    return said


def statement(world: World) -> Part:
    return verbal(world, subject(world)).statement()


def been_to(world: World) -> Part:
    """`I have never been to London`: je ne suis jamais allé à Londres."""
    who, asked = pronoun_subject(world) if world.chance(0.8) else subject(world), world.chance(0.25)
    while who.impersonal:
        who = pronoun_subject(world)
    extra = of_frame(
        world, BEEN, world.rng.choice(("to=à:city|country", "to=à:city|country", "to=à:place")), who
    )
    negation = "" if asked else world.rng.choice(("never", "never", "", "not"))
    adverb = (
        ("ever", "déjà")
        if asked
        else ("already", "déjà")
        if not negation and world.chance(0.3)
        else None
    )
    said = clause(world, who, BEEN, "perfect", extra, negation=negation, asked=asked, adverb=adverb)
    return said.question() + part("?", "?") if asked else said.statement()


BEEN = Verb("go", "goes", "went", "been", "going", "aller", False, "e", ())


def born(world: World) -> Part:
    """`she was born in Paris`: elle est née à Paris."""
    who = subject(world, classes="person|relative")
    while who.impersonal or who.part.english[0].word == "it":
        who = subject(world)
    was = english("was" if who.person in (0, 2) else "were")
    form = "né" + ("e" if who.gender == "f" else "") + ("s" if who.plural else "")
    words = english("born")
    heard = [
        *who.part.french,
        Word(conjugate("être", "present", who.person), tuple(was)),
        Word(form, tuple(words), content=True),
    ]
    where = (
        of_frame(world, BEEN, "in=à:city|country", who).part
        if world.chance(0.7)
        else time_phrase(world, "past")
    )
    if world.chance(0.2):
        first = part(*world.rng.choice((("where", "où"), ("when", "quand"))))
        return (
            first
            + Part(was + who.part.english + words, [*french("est-ce que", was), *heard])
            + part("?", "?")
        )
    return who.part + Part(was + words, heard[len(who.part.french) :]) + where


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
    what = noun_phrase(
        world, "body", determiner="" if verb.base == "have" else "my", negated=bool(who.impersonal)
    )
    return clause(
        world,
        who,
        verb,
        "present" if verb.base == "have" else tense_for(world, verb),
        Complement(what.part),
    ).statement()


def would_love(world: World) -> Part:
    """`I would love to go`: j'aimerais aller."""
    who = pronoun_subject(world)
    verb = next(v for v in usable("inf") if v.base == "love")
    return clause(world, who, verb, "would", of_frame(world, verb, "inf", who)).statement()


def works(world: World) -> Part:
    """`my computer doesn't work`: mon ordinateur ne fonctionne pas."""
    who = noun_phrase(
        world,
        "device|vehicle|tool|device",
        subject=True,
        determiner=world.rng.choice(("my", "the", "this")),
    )
    tense = world.rng.choice(("present", "present", "past", "prog", "future"))
    extra, asked = Complement(), world.chance(0.2)
    negation = "not" if world.chance(0.5) else ""
    said = clause(world, who, WORK, tense, extra, negation=negation, asked=asked)
    return said.question() + part("?", "?") if asked else said.statement()


WORK = Verb("work", "works", "worked", "worked", "working", "fonctionner", False, "a", ())


def short_statement(world: World) -> Part:
    """Subject and verb, or with a pronoun: she sleeps, I love you."""
    verb = any_verb(world)
    who = pronoun_subject(world) if world.chance(0.8) else subject(world)
    extra = Complement()
    direct = next((f for f in verb.frames if f.startswith("np:")), "")
    if direct and ("0" not in verb.frames or world.chance(0.5)):
        extra = of_frame(world, verb, direct, who)
    elif "0" not in verb.frames:
        extra = complement(world, verb, who)
    if extra.negative:
        extra = Complement()
    tense = unmistakable(tense_for(world, verb), verb, who)
    return clause(world, who, verb, tense, extra).statement()


def would_like(world: World) -> Part:
    who = pronoun_subject(world)
    what = noun_phrase(
        world, world.rng.choice(("food", "drink", "small|clothes|read", "food|drink"))
    )
    extra = Complement(what.part)
    if world.chance(0.25):
        asked = clause(world, who, LIKE, "would", extra, asked=True).question()
        return asked + part("?", "?")
    said = clause(world, who, LIKE, "would", extra).statement()
    return said + please() if world.chance(0.3) else said


def please() -> Part:
    return part(",", ",") + part("please", "s'il te plaît")


def have_got(world: World) -> Part:
    who = subject(world)
    negated = world.chance(0.25)
    what = noun_phrase(
        world, THINGS + "|animal|relative|money", negated=negated or bool(who.impersonal)
    )
    said = clause(
        world,
        who,
        GOT,
        "perfect",
        Complement(what.part),
        negation="not" if negated and not who.impersonal else "",
    )
    person = who.person
    finite = Word(
        conjugate("avoir", "present", person),
        tuple(said.auxiliary + said.english[-len(what.part.english) - 1 : -len(what.part.english)]),
        content=True,
    )
    heard = [w for w in said.french if w.word != "eu"]
    at = next(i for i, w in enumerate(heard) if w.word == finite.word and i >= len(who.part.french))
    heard[at] = finite
    said.french = heard
    return said.statement()


def there_is(world: World) -> Part:
    tense = world.rng.choices(("present", "past", "future"), (70, 24, 6))[0]
    asked = world.chance(0.22)
    negated = not asked and world.chance(0.25)
    classes = world.rng.choice(
        (THINGS, PEOPLE, "animal", "food|drink", "building|place|nature", THINGS, "event|abstract")
    )
    determiner = world.rng.choice(
        ("any", "no", "a") if negated else ("a", "a", "quantity", "number")
    )
    what = noun_phrase(world, classes, negated=negated, determiner=determiner)
    be = {
        "present": "are" if what.many else "is",
        "past": "were" if what.many else "was",
        "future": "will",
    }[tense]
    nots: list[Word] = []
    there = english("there")
    front = english(be)
    no = determiner == "no" and what.part.english[0].word == "no"
    if negated and not no and determiner:
        front = english(
            {"is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "will": "won't"}[
                be
            ]
        )
        nots = [Word("pas", tuple(front))]
    elif negated:
        nots = [Word("pas", tuple(what.part.english[:1]))]
    elif be in ("is", "will") and not asked and world.chance(0.4):
        front = english("'s" if be == "is" else "'ll")
    rest = english("be") if tense == "future" else []
    keys = tuple(there + front + rest)
    finite = {"present": "a", "past": "avait", "future": "aura"}[tense]
    ne = [Word("ne", nots[0].of)] if nots else []
    heard = [Word("il", keys), *ne, Word("y", keys), Word(finite, keys), *nots, *what.part.french]
    said = (front + there if asked else there + front) + rest + what.part.english
    if asked:
        heard = [*french("est-ce que", front), *heard]
    whole = Part(said, heard, what.part.reserved)
    if world.chance(0.6):
        whole = whole + place_phrase(world, only_places=True)
    return whole + part("?", "?") if asked else whole
