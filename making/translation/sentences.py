"""The sentences: statements, questions and commands of everyday English, and the little world's."""

from collections.abc import Callable

from making.translation.adjuncts import clock_time, place_phrase, time_phrase
from making.translation.conjugation import conjugate, imperative, past_participle
from making.translation.lexicon import Adverb, Verb, adverbs
from making.translation.noun_phrases import (
    OBJECTS,
    PEOPLE,
    THINGS,
    Np,
    adjective_for,
    name,
    noun_phrase,
    pronoun_subject,
    subject,
)
from making.translation.parts import Part, Word, english, french, part
from making.translation.verb_phrases import (
    LIKELY,
    REFLEXIVE,
    STATES,
    Clause,
    Complement,
    any_verb,
    clause,
    complement,
    of_frame,
    usable,
)
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
    tense = tense or tense_for(world, verb)
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
    if extra.negative and (tense == "perfect" or asked):
        negation = "" if not negation else negation
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
    return clause(world, who, verb, tense_for(world, verb), extra).statement()


def yes_no(world: World) -> Part:
    who = subject(world, pronouns=0.78)
    while who.impersonal:
        who = subject(world)
    said = verbal(world, who, asked=True, negative=0.04)
    if world.chance(0.6):
        for word in said.english:
            word.word = "any" if word.word == "some" else word.word
    return said.question() + part("?", "?")


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


PRONOUN_AFTER = {
    "me": "-moi",
    "you": "-toi",
    "him": "-le",
    "her": "-la",
    "it": "-le",
    "us": "-nous",
    "them": "-les",
}


def command(world: World) -> Part:
    verb = any_verb(world)
    while verb.base in STATES | {"be"} or verb.base.startswith("be ") or not _commands(verb):
        verb = any_verb(world)
    you = Np(Part(), "m", 1)
    negated = world.chance(0.25)
    together = world.chance(0.2)
    you.person = 3 if together else 1
    extra = complement(world, verb, you, negated=negated)
    if extra.negative or (
        extra.clitics
        and any(w.word in (("te",) if not together else ("nous", "te")) for _, w in extra.clitics)
    ):
        extra = (
            Complement(noun_phrase(world, PEOPLE).part)
            if "np" in verb.frames[0] and PEOPLE.split("|")[0] in verb.frames[0]
            else Complement()
        )
        if "0" not in verb.frames and not extra.part.french:
            return statement(world)
    main = english(verb.base.replace("one's", "our" if together else "your"))
    front = english("let 's" if together else "do") if together else []
    front = [*english("let"), *english("'s")] if together else []
    not_words = (
        english("not")
        if together
        else english(world.rng.choice(("don't", "don't", "don't", "never", "do not")))
    )
    infinitive, *tail = verb.french.split(" ")
    form = Word(imperative(infinitive, 3 if together else 1), tuple(front + main), content=True)
    tail_words = french(" ".join(tail), main)
    words = [main[0], *extra.inner, *main[1:]] + extra.part.english
    clitics = [w for _, w in sorted(extra.clitics, key=lambda pair: pair[0])]
    keys = tuple(main)
    if negated:
        if verb.reflexive:
            clitics = [Word("nous" if together else "te", keys), *clitics]
        no = "jamais" if not_words[0].word == "never" else "pas"
        heard = [
            Word("ne", tuple(not_words)),
            *clitics,
            form,
            Word(no, tuple(not_words)),
            *tail_words,
        ]
        said = Part(
            (front + not_words if together else not_words) + words, heard + extra.part.french
        )
    else:
        after = {"me": "-moi", "te": "-toi"}
        order = sorted(clitics, key=lambda w: w.word not in ("le", "la", "les"))
        joined = [Word(after.get(w.word, "-" + w.word), w.of) for w in order]
        if verb.reflexive:
            joined = [Word("-nous" if together else "-toi", keys), *joined]
        said = Part(front + words, [form, *joined, *tail_words, *extra.part.french])
    said.reserved = extra.part.reserved
    said = said + with_adjuncts(world, "future" if world.chance(0.3) else "present", time=0.08)
    draw = world.rng.random()
    if together or draw > 0.28:
        return said
    if draw < 0.2:
        return said + (please() if world.chance(0.6) else part("please", "s'il te plaît"))
    return part("please", "s'il te plaît") + said if world.chance(0) else _please_first(said)


def _please_first(said: Part) -> Part:
    words = english("please")
    return Part(
        words + said.english,
        said.french + [Word(",", tuple(words)), *french("s'il te plaît", words)],
        said.reserved,
    )


def _commands(verb: Verb) -> bool:
    return verb.french.split()[0] not in (
        "pouvoir",
        "devoir",
        "falloir",
        "valoir",
        "coûter",
        "sembler",
        "appartenir",
        "mourir",
        "naître",
        "en",
        "y",
    )


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
    long = [("for an hour", "depuis une heure"), ("for two hours", "depuis deux heures"), ("for ten years", "depuis dix ans"),
            ("for a year", "depuis un an"), ("for a long time", "depuis longtemps"), ("since yesterday", "depuis hier"),
            ("since Monday", "depuis lundi"), ("for three days", "depuis trois jours"), ("for a week", "depuis une semaine"),
            ("for five minutes", "depuis cinq minutes"), ("since this morning", "depuis ce matin"), ("for six months", "depuis six mois")]  # fmt: skip
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
_ = OBJECTS
