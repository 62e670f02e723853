"""Ages, times, and questions with be."""

from making.translation.adjuncts import hour, time_phrase
from making.translation.being import ANYTHING, be, to_do
from making.translation.conjugation import conjugate
from making.translation.nominal import NUMBERS, PEOPLE, THINGS, Np, name, pronoun_subject
from making.translation.noun_phrases import noun_phrase, subject
from making.translation.parts import Part, Word, english, french, part
from making.translation.verb_phrases import BE, Complement, clause
from making.world.lexicon import World


def age(world: World) -> Part:
    who = subject(world)
    while who.impersonal:
        who = subject(world)
    said, heard = world.rng.choice(list(NUMBERS.items())[:-1])
    words, years = english(said), english("years old")
    asked = world.chance(0.08)
    if world.chance(0.25) and who.noun is None and who.part.english[0].word != "it":
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
        return it + part("time", "l'heure") + verb_part
    if draw < 0.9:
        words = english("today")
        is_ = english("is")
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
        finite = Word("sont" if what.plural else "est", tuple(front))
        asked = [*french("de quelle couleur", words), finite]
        return Part(words + front, asked) + what.part + part("?", "?")
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
        tail: Word | None = Word("-" + who.part.french[0].word, who.part.french[0].of)
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
