"""What stands after a verb: objects, pronouns, infinitives, prepositions with nouns."""

from functools import cache

from making.translation.lexicon import Verb, table, verbs, weighted
from making.translation.nominal import OBJECTS, Np, from_table, name, object_pronoun, of_people
from making.translation.noun_phrases import adjective_for, form_for, noun_phrase, someone
from making.translation.parts import Part, Word, Words, english, french, part, vowel
from making.translation.verb_phrases import REFLEXIVE, Complement
from making.world.lexicon import World

LIKING = ("aimer", "détester", "préférer", "adorer")
BARE = frozenset("school work church class college university bed home prison".split())
TONIC = ("faire attention", "penser")
PARTICLES = frozenset("off on up down out away back".split())
PREPOSITIONS = ("dans", "en", "à", "de", "sur", "avec", "avant")
FRAME_WEIGHTS = {
    "np": 5, "0": 1.6, "adv": 0.6, "give": 3.5, "inf": 2, "that": 2, "a": 4, "de": 4, "adj": 4,
}  # fmt: skip
OTHER_FRAMES = 1.3


@cache
def body_verbs() -> tuple[Verb, ...]:
    """be hungry: avoir faim; be afraid of: avoir peur de."""
    return tuple(_be_verb(*row) for row in table("be verb"))


def _be_verb(words: str, heard: str, frames: str) -> Verb:
    be, is_, was, been, being = (f"{f} {words}" for f in ("be", "is", "was", "been", "being"))
    french, reflexive = heard.removeprefix("s'"), heard.startswith("s'")
    return Verb(be, is_, was, been, being, french, reflexive, frames=tuple(frames.split()))


@cache
def usable(kind: str) -> tuple[Verb, ...]:
    """Verbs that have a frame of this kind (or any), the much used several times."""
    return weighted(
        [v for v in verbs() if kind == "" or any(f.split(":")[0] == kind for f in v.frames)]
    )


def any_verb(world: World, *, doing: bool = False) -> Verb:
    """Some verb; doing: not that of a state."""
    while True:
        verb = world.rng.choice(body_verbs() if world.chance(0.07) else usable(""))
        if not doing or not verb.state:
            return verb


def complement(
    world: World, verb: Verb, who: Np, *, negated: bool = False, depth: int = 0
) -> Complement:
    """Something that this verb can have after it."""
    frames = [f for f in verb.frames if not (depth and f.startswith(("that", "inf", "ing")))]
    frames = frames or ["0"]
    weights = [FRAME_WEIGHTS.get(frame.split(":")[0], OTHER_FRAMES) for frame in frames]
    frame = world.rng.choices(frames, weights)[0]
    return of_frame(world, verb, frame, who, negated=negated, depth=depth)


def of_frame(
    world: World, verb: Verb, frame: str, who: Np, *, negated: bool = False, depth: int = 0
) -> Complement:
    kind, _, classes = frame.partition(":")
    left, _, right = kind.partition("=")
    if kind in ("np", "for=0"):
        before = english("for") if kind == "for=0" else ()
        return _direct(world, verb, classes, before, who, negated=negated)
    if kind in ("a", "de"):
        return _indirect(world, verb, kind, classes, who)
    if kind == "adj":
        adjective = adjective_for(world, who)
        form = form_for(adjective, Np(Part()) if verb.french == "avoir l'air" else who)
        degree = from_table(world, "slight degree") if world.chance(0.3) else Part()
        return Complement(degree + part(adjective.english, form, content=True))
    if kind == "give":
        return _gift(world, verb, who, negated=negated)
    if kind.startswith(("inf", "ing")):
        return infinitive(world, who, kind, depth=depth)
    if not right:
        return Complement()  # nothing, or a clause that the sentences write
    if (
        (left, right) == ("to", "à")
        and not verb.reflexive
        and "person" in classes
        and world.chance(0.45)
    ):
        return _indirect(world, verb, "to", classes, who)
    return Complement(_prepositional(world, left, right.replace("_", " "), who, classes))


def _direct(
    world: World, verb: Verb, classes: str, before: Words, who: Np, *, negated: bool
) -> Complement:
    """A pronoun, something, that, a name or a noun phrase."""
    people = of_people(classes)
    draw = world.rng.random()
    if (
        draw < (0.3 if people else 0.14)
        and not verb.reflexive
        and verb.french.split()[-1] not in PREPOSITIONS
    ):
        return _pronoun_object(world, verb, before, who, people=people)
    if draw > 0.965:
        return _something(world, before, people=people, negated=negated)
    if draw > 0.94:
        what = from_table(world, "all")
    elif people and draw > 0.84:
        what = name(world).part
    else:
        general = verb.french.split()[0] in LIKING
        named = noun_phrase(world, classes, negated=negated, general=general)
        what = named.part
        if verb.french == "parler" and named.noun and "language" in named.noun.classes:
            what = Part(what.english, what.french[1:])
    return Complement(Part(before) + what)


def _pronoun_object(
    world: World, verb: Verb, before: Words, who: Np, *, people: bool
) -> Complement:
    said = object_pronoun(world, who, person=people and world.chance(0.85))
    words = english(said)
    clitics = [Word(OBJECTS[said][0], words)]
    agreement = {"her": "e", "them": "s", "us": "s"}.get(said, "")
    _, *particles = verb.base.split()
    if particles and particles[-1] in PARTICLES and not before:
        return Complement(Part(), clitics, words, agreement)
    return Complement(Part(before + words), clitics, agreement=agreement)


def _something(world: World, before: Words, *, people: bool, negated: bool) -> Complement:
    if negated or world.chance(0.35):
        some, none = ("anyone", "nobody") if people else ("anything", "nothing")
        words = english(some if negated else none)
        negative = Word("personne" if people else "rien", words)
        return Complement(Part(before + words), negative=negative)
    what = part("someone", "quelqu'un") if people else part("something", "quelque chose")
    return Complement(Part(before) + what)


def _indirect(world: World, verb: Verb, kind: str, classes: str, who: Np) -> Complement:
    """What French has after à or de; kind: a, de, or `to`, where it is to in English."""
    people = of_people(classes)
    preposition = "à" if kind == "a" else "de"
    if people and (kind == "to" or world.chance(0.45)):
        said = object_pronoun(world, who)
        words = english(said)
        _, indirect, tonic = OBJECTS[said]
        if kind in ("a", "to") and not verb.reflexive and verb.french not in TONIC:
            words = (english("to") if kind == "to" else ()) + words
            return Complement(Part(words), [Word(indirect, words)])
        return Complement(Part(words, [Word(preposition, words), Word(tonic, words)]))
    named = people and world.chance(0.25)
    other = name(world) if named else noun_phrase(world, classes)
    if other.noun and "country" in other.noun.classes:
        return Complement(_country((), preposition, other))
    return Complement(_leaning(preposition, other))


def _leaning(preposition: str, what: Np) -> Part:
    """A French preposition that English has no word for."""
    said = what.part
    return Part(said.english, [Word(preposition, said.english[:1]), *said.french], said.reserved)


def _gift(world: World, verb: Verb, who: Np, *, negated: bool) -> Complement:
    """`give me the book`, `give it to Anna`, `give Anna the book`."""
    what = noun_phrase(world, verb.objects or "small|read|money", negated=negated).part
    draw = world.rng.random()
    if draw < 0.5:
        said = object_pronoun(world, who)
        words, indirect = english(said), OBJECTS[said][1]
        if world.chance(0.8):
            return Complement(Part(words) + what, [Word(indirect, words)])
        words = english("to") + words
        return Complement(what + Part(words), [Word(indirect, words)])
    other = someone(world, 0.35)
    if draw < 0.65:
        thing = world.rng.choice(("it", "it", "them"))
        words = english(thing)
        whole = Part(words) + part("to", "à") + other.part
        agreement = "s" if thing == "them" else ""
        return Complement(whole, [Word(OBJECTS[thing][0], words)], agreement=agreement)
    if draw < 0.82:
        receiver = _leaning("à", other)
        whole = what + receiver
        whole.english = receiver.english + what.english
        return Complement(whole)
    return Complement(what + part("to", "à") + other.part)


def infinitive(world: World, who: Np, kind: str, *, depth: int) -> Complement:
    """`to see Anna`: voir Anna. kind: inf or ing, with a French preposition (`inf-de`)."""
    verb = any_verb(world)
    while verb.base.split()[0] == "be" and kind.startswith("ing"):
        verb = any_verb(world)
    return Complement(infinitive_of(world, verb, who, kind, who.possessive, depth=depth))


def infinitive_of(
    world: World, verb: Verb, who: Np, kind: str, possessive: str, *, depth: int = 0
) -> Part:
    shape, _, link = kind.partition("-")
    inner = complement(world, verb, who, depth=depth + 1).affirmed
    to = english("to") if shape == "inf" else ()
    main = english((verb.base if shape == "inf" else verb.ing).replace("one's", possessive))
    head, *tail = verb.french.split(" ")
    heard = [
        *([Word(link, to or main)] if link else []),
        *([Word(REFLEXIVE[who.person], main)] if verb.reflexive else []),
        *inner.clitics,
        Word(head, main, content=True),
        *french(" ".join(tail), main),
        *inner.part.french,
    ]
    return Part(to + inner.english_after(main), heard, inner.part.reserved)


def _prepositional(world: World, left: str, right: str, who: Np, classes: str) -> Part:
    """A preposition with a noun phrase: au cinéma, en France, avec moi."""
    people = of_people(classes)
    if people and world.chance(0.4) and (left, right) != ("to", "à"):
        pronoun = object_pronoun(world, who)
        return part(left, right) + part(pronoun, OBJECTS[pronoun][2])
    if people and world.chance(0.25):
        return part(left, right) + name(world).part
    determiner = ""
    if not people:
        determiner = world.rng.choice(("the", "the", "the", "the", "a", "my", "this", "the"))
        if classes == "vehicle" and right == "en":
            determiner = "the"
    what = noun_phrase(world, classes, determiner=determiner, plain=world.chance(0.8))
    return joined(world, english(left), right, what)


def joined(world: World, said: Words, right: str, what: Np) -> Part:
    """English preposition and noun phrase, with what French makes of them."""
    noun, left, heard = what.noun, what.part.english, what.part.french
    classes: frozenset[str] = noun.classes if noun else frozenset()
    if "country" in classes:
        return _country(said, right, what)
    if "city" in classes and right in ("dans", "à", "en"):
        right = "à"
    if right == "en" and "vehicle" in classes:
        named = [word for word in heard if word.content]
        return Part(said + left[-1:], french("en", said) + named[-1:])
    if noun and noun.english in BARE:
        if len(left) == 2 and what.first == "the" and world.chance(0.8):
            the, *named = heard
            return Part(said + left[1:], [*french(right, said), Word(the.word, left[1:]), *named])
        right = "à" if right == "dans" else right
    return Part(said + left, french(right, said) + heard, what.part.reserved)


def _country(said: Words, right: str, what: Np) -> Part:
    """en France, au Japon, aux États-Unis; de France, du Japon."""
    the, *named = what.part.french
    heard = [the, *named]
    elided = the.word != "LES" and (the.word == "LA" or vowel(named[0].word))
    if right in ("à", "en", "dans"):
        right, heard = ("en", named) if elided else ("à", heard)
    elif right == "de" and elided:
        heard = named
    return Part(said + what.part.english, french(right, said) + heard)
