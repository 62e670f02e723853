"""What stands after a verb: objects, pronouns, infinitives, prepositions with nouns."""

from functools import cache

from making.translation.lexicon import Verb, verbs, weighted
from making.translation.nominal import OBJECTS, PEOPLE, Np, name, object_pronoun
from making.translation.noun_phrases import adjective_for, noun_phrase
from making.translation.parts import English, Part, Word, english, french, part, vowel
from making.translation.verb_phrases import REFLEXIVE, Complement
from making.world.lexicon import World

LIKING = ("aimer", "détester", "préférer", "adorer")
STATES_OF_BODY = (
    ("hungry", "faim"), ("thirsty", "soif"), ("cold", "froid"), ("hot", "chaud"),
    ("afraid", "peur"), ("scared", "peur"), ("sleepy", "sommeil"), ("right", "raison"),
    ("wrong", "tort"), ("lucky", "de la chance"), ("ashamed", "honte"),
)  # fmt: skip
BARE = frozenset("school work church class college university bed home prison".split())
TONIC = ("faire attention", "penser")
PARTICLES = frozenset("off on up down out away back".split())
PREPOSITIONS = ("dans", "en", "à", "de", "sur", "avec", "avant")
ANYTHING_FEARED = "animal|relative|job|abstract|nature|weather"
EXPRESSIONS = (
    ("afraid of", "avoir peur", f"de:{ANYTHING_FEARED}"),
    ("scared of", "avoir peur", f"de:{ANYTHING_FEARED}"),
    ("interested in", "s'intéresser", "a:subject|sport|abstract|read|watch|listen"),
    ("late", "être en retard", "0 for=pour:event|place"),
    ("early", "être en avance", "0"),
    ("on time", "être à l'heure", "0"),
    ("on holiday", "être en vacances", "0"),
    ("at home", "être à la maison", "0"),
    ("home", "être à la maison", "0"),
    ("back", "être de retour", "0"),
)


@cache
def body_verbs() -> list[Verb]:
    """be hungry: avoir faim; be afraid of: avoir peur de."""
    made = [(a, f"avoir {b}", "0") for a, b in STATES_OF_BODY]
    made += [(a, b, frames) for a, b, frames in EXPRESSIONS]
    return [_be_verb(*row) for row in made]


def _be_verb(words: str, heard: str, frames: str) -> Verb:
    be, is_, was, been, being = (f"{f} {words}" for f in ("be", "is", "was", "been", "being"))
    reflexive = heard.startswith("s'")
    kinds = tuple(frames.split())
    return Verb(be, is_, was, been, being, heard.removeprefix("s'"), reflexive, "a", kinds)


@cache
def usable(kind: str) -> tuple[Verb, ...]:
    """Verbs that have a frame of this kind (or any), the much used several times."""
    return weighted(
        [v for v in verbs() if kind == "" or any(f.split(":")[0] == kind for f in v.frames)]
    )


def any_verb(world: World) -> Verb:
    if world.chance(0.07):
        return world.rng.choice(body_verbs())
    return world.rng.choice(usable(""))


def complement(
    world: World, verb: Verb, who: Np, *, negated: bool = False, depth: int = 0
) -> Complement:
    """Something that this verb can have after it."""
    frames = [f for f in verb.frames if not (depth and f.startswith(("that", "inf", "ing")))] or [
        "0"
    ]
    weights = [_weight(f) for f in frames]
    frame = world.rng.choices(frames, weights)[0]
    return of_frame(world, verb, frame, who, negated=negated, depth=depth)


def _weight(frame: str) -> float:
    kind = frame.split(":")[0]
    return {
        "np": 5,
        "0": 1.6,
        "adv": 0.6,
        "give": 3.5,
        "inf": 2,
        "that": 2,
        "a": 4,
        "de": 4,
        "adj": 4,
    }.get(kind, 1.3)


def of_frame(
    world: World, verb: Verb, frame: str, who: Np, *, negated: bool = False, depth: int = 0
) -> Complement:
    kind, _, classes = frame.partition(":")
    if kind in ("0", "adv"):
        return Complement()
    if kind in ("np", "for=0"):
        base = english("for") if kind != "np" else []
        return _direct(world, verb, classes, base, who, negated=negated)
    if kind in ("a", "de"):
        return _indirect(world, verb, kind, classes, who)
    if kind == "adj":
        adjective = adjective_for(world, who)
        form = (
            adjective.masculine
            if verb.french == "avoir l'air"
            else adjective.french(who.gender, plural=who.plural)
        )
        said = part(adjective.english, form.split("/")[0], content=True)
        return Complement(_very(world) + said)
    if kind == "give":
        return _gift(world, verb, who, negated=negated)
    if kind.startswith("inf") or kind.startswith("ing"):
        return infinitive(world, who, kind, depth=depth)
    if kind == "that":
        return Complement()  # written by the sentences
    if "=" in kind:
        left, _, right = kind.partition("=")
        if (
            right == "à"
            and left == "to"
            and not verb.reflexive
            and "person" in classes
            and world.chance(0.45)
        ):
            return _indirect(world, verb, "to", classes, who)
        return Complement(prepositional(world, left, right.replace("_", " "), who, classes))
    return Complement()


def _very(world: World) -> Part:
    pairs = (
        ("very", "très"),
        ("very", "très"),
        ("too", "trop"),
        ("so", "si"),
        ("really", "vraiment"),
        ("a little", "un peu"),
    )
    return part(*world.rng.choice(pairs)) if world.chance(0.3) else Part()


def _direct(
    world: World, verb: Verb, classes: str, before: list[English], who: Np, *, negated: bool
) -> Complement:
    people = bool(set(classes.split("|")) & set(PEOPLE.split("|")))
    draw = world.rng.random()
    if (
        draw < (0.3 if people else 0.14)
        and not verb.reflexive
        and verb.french.split()[-1] not in PREPOSITIONS
    ):
        return pronoun_object(world, verb, before, who, people=people)
    if draw > 0.965:
        return _something(world, before, people=people, negated=negated)
    if draw > 0.94:
        said, heard = world.rng.choice(
            (("this", "ça"), ("that", "ça"), ("everything", "tout"), ("it all", "tout"))
        )
        return Complement(Part(before) + part(said, heard))
    if people and draw > 0.84:
        return Complement(Part(before) + name(world).part)
    general = verb.french.split()[0] in LIKING
    what = noun_phrase(world, classes, negated=negated, general=general)
    if verb.french == "parler" and what.noun and "language" in what.noun.classes:
        what.part = Part(what.part.english, what.part.french[1:])
    return Complement(Part(before) + what.part)


def pronoun_object(
    world: World, verb: Verb, before: list[English], who: Np, *, people: bool
) -> Complement:
    said = object_pronoun(world, who, person=people and world.chance(0.85))
    words = english(said)
    clitic = Word(OBJECTS[said][0], tuple(words))
    agreement = {"her": "e", "them": "s", "us": "s"}.get(said, "")
    last = verb.base.split()[-1]
    if len(verb.base.split()) > 1 and last in PARTICLES and not before:
        return Complement(Part(), [(0, clitic)], words, agreement)
    return Complement(Part(before + words), [(_slot(clitic.word), clitic)], [], agreement)


def _slot(word: str) -> int:
    return {"le": 1, "la": 1, "les": 1, "lui": 2, "leur": 2, "y": 3, "en": 4}.get(word, 0)


def _something(world: World, before: list[English], *, people: bool, negated: bool) -> Complement:
    if negated:
        words = english("anyone" if people else "anything")
        return Complement(
            Part(before + words), negative=Word("personne" if people else "rien", tuple(words))
        )
    if world.chance(0.35):
        words = english("nobody" if people else "nothing")
        return Complement(
            Part(before + words), negative=Word("personne" if people else "rien", tuple(words))
        )
    return Complement(
        Part(before)
        + (part("someone", "quelqu'un") if people else part("something", "quelque chose"))
    )


def _indirect(world: World, verb: Verb, kind: str, classes: str, who: Np) -> Complement:
    people = bool(set(classes.split("|")) & set(PEOPLE.split("|")))
    preposition = "à" if kind == "a" else "de"
    if people and (kind == "to" or world.chance(0.45)):
        said = object_pronoun(world, who, person=True)
        words = english(said)
        if kind in ("a", "to") and not verb.reflexive and verb.french not in TONIC:
            words = [*(english("to") if kind == "to" else []), *words]
            return Complement(
                Part(words), [(_slot(OBJECTS[said][1]), Word(OBJECTS[said][1], tuple(words)))]
            )
        return Complement(
            Part(words, [Word(preposition, tuple(words)), Word(OBJECTS[said][2], tuple(words))])
        )
    named = people and world.chance(0.25)
    other = name(world) if named else noun_phrase(world, classes)
    link = tuple(other.part.english[:1])
    if other.noun and "country" in other.noun.classes:
        return Complement(_country([], preposition, other))
    return Complement(
        Part(other.part.english, [Word(preposition, link), *other.part.french], other.part.reserved)
    )


def _gift(world: World, verb: Verb, who: Np, *, negated: bool) -> Complement:
    things = (
        next((f.partition(":")[2] for f in verb.frames if f.startswith("np:")), "")
        or "small|read|money"
    )
    what = noun_phrase(world, things, negated=negated)
    draw = world.rng.random()
    if draw < 0.5:
        said = object_pronoun(world, who, person=True)
        words = english(said)
        clitic = (_slot(OBJECTS[said][1]), Word(OBJECTS[said][1], tuple(words)))
        if world.chance(0.8):
            return Complement(Part(words) + what.part, [clitic])
        to = english("to")
        return Complement(
            what.part + Part(to + words), [(clitic[0], Word(clitic[1].word, (*to, *words)))]
        )
    other = (
        name(world) if world.chance(0.35) else noun_phrase(world, PEOPLE, subject=True, plain=True)
    )
    if draw < 0.65:
        thing = world.rng.choice(("it", "it", "them"))
        words = english(thing)
        whole = Part(words) + part("to", "à") + other.part
        return Complement(
            whole, [(1, Word(OBJECTS[thing][0], tuple(words)))], [], "s" if thing == "them" else ""
        )
    if draw < 0.82:
        link = Word("à", tuple(other.part.english[:1]))
        return Complement(
            Part(
                other.part.english + what.part.english,
                [*what.part.french, link, *other.part.french],
                what.part.reserved or other.part.reserved,
            )
        )
    return Complement(what.part + part("to", "à") + other.part)


def infinitive(world: World, who: Np, kind: str, *, depth: int) -> Complement:
    """`to see Anna`: voir Anna."""
    shape, _, link = kind.partition("-")
    verb = any_verb(world)
    while verb.base.split()[0] == "be" and shape == "ing":
        verb = any_verb(world)
    inner = complement(world, verb, who, depth=depth + 1)
    mine = {0: "my", 1: "your", 2: "her" if who.gender == "f" else "his", 3: "our"}.get(
        who.person, "their"
    )
    to = english("to") if shape == "inf" else []
    main = english((verb.base if shape == "inf" else verb.ing).replace("one's", mine))
    head, *tail = verb.french.split(" ")
    heard: list[Word] = []
    of = tuple(to or main)
    if link:
        heard.append(Word(link, of))
    if inner.negative:
        inner = Complement()
    if verb.reflexive:
        heard.append(Word(REFLEXIVE[who.person], tuple(main)))
    heard += [w for _, w in sorted(inner.clitics, key=lambda pair: pair[0])]
    heard += [Word(head, tuple(main), content=True), *french(" ".join(tail), main)]
    words = [main[0], *inner.inner, *main[1:]]
    return Complement(Part(to + words, heard) + inner.part)


def prepositional(world: World, left: str, right: str, who: Np, classes: str = "") -> Part:
    """A preposition with a noun phrase: au cinéma, en France, avec moi."""
    kinds = set(classes.split("|"))
    people = bool(kinds & set(PEOPLE.split("|")))
    said = english(left)
    if people and world.chance(0.4) and (left, right) != ("to", "à"):
        pronoun = object_pronoun(world, who, person=True)
        return Part(said, french(right, said)) + part(pronoun, OBJECTS[pronoun][2])
    if people and world.chance(0.25):
        return Part(said, french(right, said)) + name(world).part
    determiner = (
        "" if people else world.rng.choice(("the", "the", "the", "the", "a", "my", "this", ""))
    )
    if kinds == {"vehicle"} and right == "en":
        determiner = ""
    what = noun_phrase(
        world,
        classes,
        determiner=determiner or ("the" if not people else ""),
        plain=world.chance(0.8),
    )
    return joined(world, said, right, what)


def joined(world: World, said: list[English], right: str, what: Np) -> Part:
    """English preposition and noun phrase, with what French makes of them."""
    noun = what.noun
    if noun and "country" in noun.classes:
        return _country(said, right, what)
    if noun and "city" in noun.classes and right in ("dans", "à", "en"):
        right = "à"
    if noun and right == "en" and "vehicle" in noun.classes:
        heard = [w for w in what.part.french if w.content]
        return Part(said + what.part.english[-1:], french("en", said) + heard[-1:])
    left = what.part.english
    if (
        noun
        and len(left) == 2
        and left[0].word == "the"
        and noun.english in BARE
        and world.chance(0.8)
    ):
        heard = [Word(what.part.french[0].word, tuple(left[1:])), *what.part.french[1:]]
        return Part(said + left[1:], french(right, said) + heard)
    if noun and noun.english in BARE and right == "dans":
        right = "à"
    return Part(said + left, french(right, said) + what.part.french, what.part.reserved)


def _country(said: list[English], right: str, what: Np) -> Part:
    the, *named = what.part.french
    female = the.word == "LA" or vowel(named[0].word)
    if right in ("à", "en", "dans"):
        heard = french("en", said) if female and the.word != "LES" else [*french("à", said), the]
        return Part(said + what.part.english, heard + named)
    if right == "de" and female and the.word != "LES":
        return Part(said + what.part.english, french("de", said) + named)
    return Part(said + what.part.english, french(right, said) + what.part.french)
