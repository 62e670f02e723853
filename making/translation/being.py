"""Sentences with be: qualities, jobs, places, comparisons, it is, where is, how old."""

from collections.abc import Callable

from making.translation.adjuncts import day, hour, place_phrase, time_phrase
from making.translation.conjugation import conjugate
from making.translation.lexicon import nouns_of
from making.translation.noun_phrases import (
    NUMBERS,
    OBJECTS,
    PEOPLE,
    PLACES,
    THINGS,
    Np,
    adjective_for,
    adjectives_of,
    built,
    name,
    noun_phrase,
    object_pronoun,
    pronoun_subject,
    subject,
)
from making.translation.parts import Part, Word, english, french, part
from making.translation.verb_phrases import BE, Clause, Complement, any_verb, clause, complement
from making.world.lexicon import World, article

TENSES = {"present": 62, "past": 24, "future": 8, "going": 2, "perfect": 1, "must": 1, "want-to": 2}
ANYTHING = f"{PEOPLE}|{THINGS}|{PLACES}|animal|food|drink|body|nature|weather|event|abstract"
DEGREES = (
    ("very", "très"), ("very", "très"), ("very", "très"), ("too", "trop"), ("so", "si"),
    ("really", "vraiment"), ("quite", "assez"), ("a little", "un peu"), ("a bit", "un peu"),
    ("always", "toujours"), ("often", "souvent"), ("already", "déjà"), ("almost", "presque"),
)  # fmt: skip
FRONT_DEGREES = {"always", "often", "already"}
SHORT = frozenset(
    "big small tall short old young new long fast slow strong weak rich poor cheap nice kind cold hot "
    "warm cool clean dirty dark light heavy hard soft easy busy happy funny pretty ugly early late "
    "high low deep wide thin thick fat smart clever quiet loud calm sweet sour clear dry wet sad safe "
    "great fine large little near close simple noisy lazy angry hungry healthy lucky friendly lovely "
    "brave proud cute crazy".split()
)


def tense_for(world: World) -> str:
    return world.rng.choices(list(TENSES), list(TENSES.values()))[0]


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
    return clause(
        world, who, BE, tense or tense_for(world), Complement(extra), negation=negation, asked=asked
    )


def someone_or_something(world: World) -> Np:
    if world.chance(0.5):
        who = pronoun_subject(world)
        while who.part.english[0].word == "it":
            who = pronoun_subject(world)
        return who
    if world.chance(0.15):
        return subject(world, pronouns=0)
    return noun_phrase(world, ANYTHING, subject=True, plain=world.chance(0.85))


def said_of(world: World, who: Np) -> Part:
    """An adjective or two for a subject, in some degree."""
    first, second = adjective_for(world, who), adjective_for(world, who)
    said = part(first.english, _form(first.french(who.gender, plural=who.plural)), content=True)
    said.reserved = world.held_out and who.noun is not None
    degree = Part()
    if world.chance(0.33):
        degree = part(*world.rng.choice(DEGREES))
    if world.chance(0.1) and second != first:
        other = part(
            second.english, _form(second.french(who.gender, plural=who.plural)), content=True
        )
        said = said + part("and", "et") + other
    return degree + said


def _form(word: str) -> str:
    return word.split("/")[0]


def quality(world: World) -> Part:
    who = someone_or_something(world)
    asked = world.chance(0.16) and not who.impersonal
    extra = said_of(world, who)
    some = extra.english[0].word in ("almost", "already", "a", "so", "quite", "often")
    said = be(world, who, extra, asked=asked, negative=0 if some else 0.16)
    if asked:
        return said.question() + part("?", "?")
    tail = time_phrase(world, "any") if world.chance(0.07) else Part()
    return said.statement() + tail


def job(world: World) -> Part:
    """`she is a doctor`: elle est médecin. `he is my friend`: c'est mon ami."""
    draw = world.rng.random()
    who = (
        pronoun_subject(world)
        if world.chance(0.6)
        else subject(world, pronouns=0, classes="relative|person")
    )
    while who.impersonal or who.part.english[0].word == "it":
        who = pronoun_subject(world)
    if draw < 0.6:
        noun = world.rng.choice(nouns_of("job"))
        single = noun.feminine[0] if noun.feminine and who.gender == "f" else noun.french
        plural = noun.feminine[1] if noun.feminine and who.gender == "f" else noun.french_plural
        words = english(noun.english_plural if who.plural else noun.english)
        heard = french(plural if who.plural else single, words, content=True)
        first = english(article(noun.english)) if not who.plural else []
        extra = Part(first + words, heard)
        asked = world.chance(0.12)
        said = be(world, who, extra, asked=asked)
        if world.chance(0.1) and not asked:
            verb_like = Complement(part("to be", "être") + extra)
            del verb_like
        return said.question() + part("?", "?") if asked else said.statement()
    feminine = who.gender == "f"
    what = person_noun(world, feminine=feminine, plural=who.plural)
    return identity(world, who, what)


def person_noun(world: World, *, feminine: bool, plural: bool) -> Np:
    """`a good friend`: with the gender of who it is."""
    while True:
        noun = world.rng.choice(nouns_of("person|relative|job"))
        if noun.mass or noun.plural_only:
            continue
        if noun.feminine and feminine:
            noun = type(noun)(noun.english, noun.english_plural, *noun.feminine, "f", noun.classes)
        elif not noun.feminine and (noun.gender == "f") != feminine and not plural:
            continue
        break
    many = adjectives_of(world, noun, world.rng.choices((0, 1), (65, 35))[0])
    kind = world.rng.choice(("my", "my", "a" if many or "relative" not in noun.classes else "my"))
    if not many and "job" in noun.classes:
        kind = "my"
    return built(world, noun, many, kind, plural=plural)


def identity(world: World, who: Np, what: Np) -> Part:
    """`he is my brother`: c'est mon frère; but `I am your friend`: je suis ton ami."""
    if who.kind == "pron" and who.person in (2, 5):
        tense = world.rng.choices(("present", "past"), (80, 20))[0]
        verb = {
            ("present", 2): "est",
            ("present", 5): "sont",
            ("past", 2): "était",
            ("past", 5): "étaient",
        }[tense, who.person]
        front = english(
            {
                "present": "is" if who.person == 2 else "are",
                "past": "was" if who.person == 2 else "were",
            }[tense]
        )
        if tense == "present" and world.chance(0.45):
            front = english("'s" if who.person == 2 else "'re")
        nots = english("not") if world.chance(0.12) else []
        ne = (
            [
                Word("ne", tuple(nots)),
            ]
            if nots
            else []
        )
        pas = [Word("pas", tuple(nots))] if nots else []
        heard = [Word("CE", tuple(who.part.english)), *ne, Word(verb, tuple(front)), *pas]
        return Part(who.part.english + front + nots, heard) + what.part
    return be(
        world, who, what.part, tense=world.rng.choice(("present", "present", "past"))
    ).statement()


def located(world: World) -> Part:
    """`the cat is under the table`."""
    who = someone_or_something(world)
    asked = world.chance(0.16) and not who.impersonal
    said = be(world, who, place_phrase(world, only_places=True), asked=asked)
    tail = time_phrase(world, "any") if world.chance(0.08) else Part()
    return said.question() + tail + part("?", "?") if asked else said.statement() + tail


def that_is(world: World) -> Part:
    """`it is good`: c'est bon; `this is my book`; `these are my keys`; `it is mine`."""
    draw = world.rng.random()
    tense = world.rng.choices(("present", "past", "future"), (76, 18, 6))[0]
    negated, asked = world.chance(0.18), world.chance(0.2)
    plural = world.chance(0.1)
    if draw < 0.5:
        plural = False
        fake = Np(Part(), "m", 2)
        thing = Np(Part(), "m", 2, world.rng.choice(nouns_of("thing|food|abstract|small")))
        if world.held_out:
            thing = fake
        extra = said_of(world, thing)
        extra.reserved = False
        if extra.english[-1].word == "great":
            extra = part("great", "super", content=True)
        if world.chance(0.12):
            extra = part(
                *world.rng.choice(
                    (
                        ("far", "loin"),
                        ("here", "ici"),
                        ("there", "là"),
                        ("late", "tard"),
                        ("early", "tôt"),
                        ("near here", "près d'ici"),
                        ("far from here", "loin d'ici"),
                    )
                )
            )
        if world.chance(0.15):
            extra = extra + to_do(world)
    elif draw < 0.85:
        plural = world.chance(0.2)
        what = noun_phrase(
            world,
            f"{THINGS}|{PEOPLE}|animal|food|abstract|event|building",
            determiner="my" if world.chance(0.4) else "",
        )
        while what.kind == "name":
            what = noun_phrase(world, THINGS)
        plural = what.plural
        extra = what.part
    elif draw < 0.93:
        extra = part(
            *world.rng.choice(
                (
                    ("mine", "à moi"),
                    ("yours", "à toi"),
                    ("his", "à lui"),
                    ("hers", "à elle"),
                    ("ours", "à nous"),
                    ("theirs", "à eux"),
                    ("me", "moi"),
                    ("you", "toi"),
                    ("us", "nous"),
                )
            )
        )
        plural = False
    else:
        who = name(world)
        extra = who.part
        plural = False
    said = world.rng.choice(
        ("it", "it", "it", "this", "that") if not plural else ("they", "these", "those")
    )
    pronoun = english(said)
    shape = {
        ("present", False): "is",
        ("present", True): "are",
        ("past", False): "was",
        ("past", True): "were",
    }.get((tense, plural), "will")
    verb = {
        ("present", False): "est",
        ("present", True): "sont",
        ("past", False): "était",
        ("past", True): "étaient",
    }.get((tense, plural), "sera" if not plural else "seront")
    front = english(shape)
    rest = english("be") if shape == "will" else []
    ne: list[Word] = []
    pas: list[Word] = []
    nots = []
    if negated:
        if world.chance(0.6):
            front = english(
                {
                    "is": "isn't",
                    "are": "aren't",
                    "was": "wasn't",
                    "were": "weren't",
                    "will": "won't",
                }[shape]
            )
            source = tuple(front)
        else:
            nots = english("not")
            if (
                not asked
                and world.chance(0.6)
                and shape in ("is", "are")
                and said not in ("this", "these", "those")
            ):
                front = english("'s" if shape == "is" else "'re")
            source = tuple(nots)
        ne, pas = [Word("ne", source)], [Word("pas", source)]
    elif not asked and shape in ("is", "will") and said in ("it", "that") and world.chance(0.5):
        front = english("'s" if shape == "is" else "'ll")
    keys = tuple(front + rest)
    ce = Word("CE", tuple(pronoun))
    heard = [ce, *ne, Word(verb, keys), *pas]
    left = (front + pronoun if asked else pronoun + front) + nots + rest
    if asked:
        heard = [*french("est-ce que", front), *heard]
    return Part(left, heard) + extra + (part("?", "?") if asked else Part())


def to_do(world: World) -> Part:
    """`(it is easy) to learn`: de apprendre."""
    verb = any_verb(world)
    while verb.base.startswith("be ") or verb.reflexive:
        verb = any_verb(world)
    inner = complement(world, verb, Np(Part(), "m", 2), depth=1)
    to, main = english("to"), english(verb.base.replace("one's", "your"))
    infinitive, *tail = verb.french.split(" ")
    clitics = [w for _, w in sorted(inner.clitics, key=lambda pair: pair[0])]
    if inner.negative:
        inner = Complement()
    heard = [
        Word("de", tuple(to)),
        *clitics,
        Word(infinitive, tuple(main), content=True),
        *french(" ".join(tail), main),
    ]
    words = [main[0], *inner.inner, *main[1:]]
    return Part(to + words, heard) + inner.part


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


def age(world: World) -> Part:
    who = subject(world)
    while who.impersonal:
        who = subject(world)
    said, heard = world.rng.choice(list(NUMBERS.items())[:-1])
    words, years = english(said), english("years old")
    asked = world.chance(0.08)
    if world.chance(0.25) and who.noun is None:
        years = []
    ans = Word("ans", tuple(years or words), content=True)
    extra = Complement(Part(words + years, [*french(heard, words), ans]))
    verb = type(BE)("be", "is", "was", "been", "being", "avoir", False, "a", ())
    tense = world.rng.choices(("present", "past", "future"), (85, 9, 6))[0]
    done = clause(world, who, verb, tense, extra, asked=asked)
    return done.question() + part("?", "?") if asked else done.statement()


def clock_now(world: World) -> Part:
    draw = world.rng.random()
    front = english("is") if world.chance(0.5) else english("'s")
    it = part("it", "il") + Part(front, [Word("est", tuple(front))])
    if draw < 0.6:
        return it + hour(world)
    if draw < 0.75:
        verb_part = to_do(world)
        return it + part("time", "temps") + verb_part
    if draw < 0.9:
        words = english("today")
        is_ = english("is")
        _ = day
        days = (
            ("Monday", "lundi"),
            ("Tuesday", "mardi"),
            ("Wednesday", "mercredi"),
            ("Thursday", "jeudi"),
            ("Friday", "vendredi"),
            ("Saturday", "samedi"),
            ("Sunday", "dimanche"),
        )
        named = part(*world.rng.choice(days), content=True)
        keys = tuple(words)
        if world.chance(0.5):
            return (
                Part(
                    words + is_,
                    [
                        Word("aujourd'hui", keys),
                        Word(",", ()),
                        Word("CE", tuple(is_)),
                        Word("est", tuple(is_)),
                    ],
                )
                + named
            )
        both = english("it") + english("is")
        return Part(both, [Word("CE", tuple(both[:1])), Word("est", tuple(both[1:]))]) + named
    return it + part("already", "déjà") + hour(world)


def where_is(world: World) -> Part:
    """`where is my phone ?`, `who is that man ?`, `how old is she ?`, `what color is it ?`."""
    draw = world.rng.random()
    past = world.chance(0.15)
    if draw < 0.4:
        said, heard = world.rng.choice(
            (("where", "où"), ("where", "où"), ("where", "où"), ("who", "qui"), ("how", "comment"))
        )
        return _asked(world, said, heard, past=past)
    if draw < 0.58:
        what = noun_phrase(
            world,
            f"{THINGS}|abstract|event|food|color|animal",
            subject=True,
            plain=world.chance(0.7),
            determiner="my" if world.chance(0.6) else "the",
        )
        return _which_is(what, world, past=past)
    if draw < 0.78:
        return _how_old(world)
    if draw < 0.88:
        what = noun_phrase(
            world,
            THINGS + "|animal",
            plain=True,
            subject=True,
            determiner=world.rng.choice(("my", "the", "this")),
        )
        words = english(world.rng.choice(("what color", "what colour")))
        front = english("are" if what.many else "is")
        heard = [
            *french("de quelle couleur", words),
            Word("sont" if what.plural else "est", tuple(front)),
        ]
        return Part(words + front, heard) + what.part + part("?", "?")
    what = noun_phrase(world, THINGS + "|animal", plain=True, subject=True, determiner="this")
    words = english("whose")
    front = english("are" if what.many else "is")
    noun = what.part.english[1:]
    be_ = [Word("sont" if what.plural else "est", tuple(front))]
    return Part(
        words + noun + front + what.part.english[:1],
        [*french("à qui", words), *be_, *what.part.french],
    ) + part("?", "?")


def _asked(world: World, said: str, heard: str, *, past: bool) -> Part:
    if world.chance(0.4):
        who = pronoun_subject(world)
        while who.part.english[0].word in ("I", "it"):
            who = pronoun_subject(world)
        tail = Word("-" + who.part.french[0].word, who.part.french[0].of)
    else:
        classes = {"who": PEOPLE, "how": "relative|event|time|food|job"}.get(said, ANYTHING)
        who = (
            name(world)
            if world.chance(0.12)
            else noun_phrase(
                world,
                classes,
                subject=True,
                plain=True,
                determiner=world.rng.choice(("my", "my", "the", "this")),
            )
        )
        tail = None
    first = english(said)
    shape = (
        ("was" if who.english_person in (0, 2) else "were")
        if past
        else "is"
        if who.english_person == 2
        else "are"
    )
    front = english(shape if past or shape == "are" or world.chance(0.75) else "'s")
    infinitive = (
        "aller"
        if said == "how"
        and not past
        and (who.noun is None or who.noun.classes & set(PEOPLE.split("|")))
        else "être"
    )
    finite = Word(
        conjugate(infinitive, "imperfect" if past else "present", who.person), tuple(front)
    )
    if tail and infinitive == "aller" and who.person == 2:
        tail = Word(f"-t{tail.word}", tail.of)
    words = [*french(heard, first), finite]
    body = [tail] if tail else who.part.french
    return Part(first + front + who.part.english, [*words, *body]) + part("?", "?")


def _which_is(what: Np, world: World, *, past: bool) -> Part:
    form = ("quel" if what.gender == "m" else "quelle") + ("s" if what.plural else "")
    first = english("what")
    shape = ("were" if what.many else "was") if past else "are" if what.many else "is"
    front = english(shape if past or shape == "are" or world.chance(0.7) else "'s")
    finite = {"is": "est", "are": "sont", "was": "était", "were": "étaient"}[shape]
    return (
        Part(first + front, [*french(form, first), Word(finite, tuple(front))])
        + what.part
        + part("?", "?")
    )


def _how_old(world: World) -> Part:
    old = world.chance(0.5)
    if old and world.chance(0.6):
        who = pronoun_subject(world)
        while who.part.english[0].word in ("I", "it"):
            who = pronoun_subject(world)
        pronoun = who.part.french[0]
        link = "-t-" if who.person == 2 else "-"
        tail = [Word(link + pronoun.word, pronoun.of)]
    else:
        who = noun_phrase(
            world,
            "relative|person" if old else ANYTHING,
            subject=True,
            plain=True,
            determiner=world.rng.choice(("my", "the", "this")),
        )
        tail = list(who.part.french)
    front = english("is" if who.english_person == 2 else "are")
    if old:
        words = english("how old")
        heard = [
            *french("quel âge", words),
            Word(conjugate("avoir", "present", who.person), tuple(front)),
            *tail,
        ]
        return Part(words + front + who.part.english, heard) + part("?", "?")
    said, noun = world.rng.choice((("how much", "combien"), ("how big", "quelle taille")))
    words = english(said)
    verb = "coûter" if said == "how much" else "faire"
    heard = [
        *french(noun, words),
        Word(conjugate(verb, "present", who.person), tuple(front)),
        *tail,
    ]
    return Part(words + front + who.part.english, heard) + part("?", "?")


def when_is(world: World) -> Part:
    """`my birthday is in June`, `when is the party ?`."""
    what = noun_phrase(
        world, "event", subject=True, plain=True, determiner=world.rng.choice(("my", "the"))
    )
    past = world.chance(0.25)
    shape = ("were" if what.many else "was") if past else "are" if what.many else "is"
    if world.chance(0.4):
        first, front = part("when", "quand"), english(shape)
        finite = Word(
            conjugate("être", "imperfect" if past else "present", what.person), tuple(front)
        )
        return first + Part(front, [finite]) + what.part + part("?", "?")
    extra = time_phrase(world, "past" if past else "future")
    return be(
        world, what, extra, tense="past" if past else world.rng.choice(("present", "future"))
    ).statement()


def told(world: World) -> Part:
    """A statement with be, short enough for a that-clause."""
    while True:
        said = world.rng.choice((quality, quality, that_is, job, located))(world)
        if said.english[-1].word != "?":
            return said


def girl_who(world: World, relative: Callable[[World], Np]) -> Part:
    """`the girl who lives here is my friend`."""
    who = relative(world)
    extra = (
        said_of(world, who)
        if world.chance(0.5)
        else person_noun(world, feminine=who.gender == "f", plural=who.plural).part
    )
    return be(world, who, extra, tense=world.rng.choice(("present", "past"))).statement()
