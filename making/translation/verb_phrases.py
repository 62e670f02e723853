"""Verbs with tense, negation and their objects, each language in its own order."""

from dataclasses import dataclass, field
from functools import cache

from making.translation.conjugation import Tense, conjugate, past_participle
from making.translation.lexicon import Verb, verbs, weighted
from making.translation.noun_phrases import (
    OBJECTS,
    PEOPLE,
    Np,
    adjective_for,
    name,
    noun_phrase,
    object_pronoun,
)
from making.translation.parts import English, Part, Word, english, french, part, vowel
from making.world.lexicon import World

# tense: English auxiliary, form of the verb, French modal verb, French tense
TENSES: dict[str, tuple[str, str, str, str]] = {
    "present": ("do", "finite", "", "present"),
    "past": ("did", "past", "", "perfect"),
    "future": ("will", "base", "", "future"),
    "going": ("be going to", "base", "aller", "present"),
    "prog": ("be", "ing", "", "present"),
    "was-ing": ("was", "ing", "", "imperfect"),
    "can": ("can", "base", "pouvoir", "present"),
    "could": ("could", "base", "pouvoir", "imperfect"),
    "must": ("must", "base", "devoir", "present"),
    "should": ("should", "base", "devoir", "conditional"),
    "may": ("may", "base", "pouvoir", "present"),
    "might": ("might", "base", "pouvoir", "conditional"),
    "would": ("would", "base", "", "conditional"),
    "would-like": ("would like to", "base", "vouloir", "conditional"),
    "have-to": ("do have to", "base", "devoir", "present"),
    "had-to": ("did have to", "base", "devoir", "perfect"),
    "want-to": ("do want to", "base", "vouloir", "present"),
    "wanted-to": ("did want to", "base", "vouloir", "imperfect"),
    "perfect": ("have", "participle", "", "perfect"),
    "used-to": ("did use to", "base", "", "imperfect"),
}
LIKELY = {
    "present": 34, "past": 26, "future": 9, "going": 7, "prog": 16, "was-ing": 5, "can": 7,
    "could": 3, "must": 3, "should": 3, "may": 0.4, "might": 0.4, "would": 0.8,
    "would-like": 4, "have-to": 4, "had-to": 0.8, "want-to": 5, "wanted-to": 1, "perfect": 5,
    "used-to": 0.6,
}  # fmt: skip
STATES = frozenset(
    "have know want need like love hate prefer believe understand remember seem own belong "
    "contain cost hope wish mean recognize feel deserve matter".split()
)
IMPERFECT = frozenset("have know want need seem hope wish belong cost own feel live be".split())
LIKING = ("aimer", "détester", "préférer", "adorer")
NOT = {"do": "don't", "does": "doesn't", "did": "didn't", "will": "won't", "can": "can't",
       "could": "couldn't", "should": "shouldn't", "would": "wouldn't", "must": "mustn't",
       "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "have": "haven't",
       "has": "hasn't"}  # fmt: skip
SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "have": "'ve", "has": "'s",
         "would": "'d"}  # fmt: skip
BE = Verb("be", "is", "was", "been", "being", "être", False, "a", ())
STATES_OF_BODY = (
    ("hungry", "faim"), ("thirsty", "soif"), ("cold", "froid"), ("hot", "chaud"),
    ("afraid", "peur"), ("scared", "peur"), ("sleepy", "sommeil"), ("right", "raison"),
    ("wrong", "tort"), ("lucky", "de la chance"), ("ashamed", "honte"),
)  # fmt: skip
BARE = frozenset("school work church class college university bed home prison".split())
TONIC = ("faire attention", "penser")
PARTICLES = frozenset("off on up down out away back".split())
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
PREPOSITIONS = ("dans", "en", "à", "de", "sur", "avec", "avant")


def is_form(person: int, *, past: bool = False) -> str:
    if past:
        return "was" if person in (0, 2) else "were"
    return "am" if person == 0 else "is" if person == 2 else "are"


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
    reflexive = heard.startswith("s'")
    forms = (f"{form} {words}" for form in ("be", "is", "was", "been", "being"))
    kinds = tuple(frames.split())
    return Verb(*forms, heard.removeprefix("s'"), reflexive, "a", kinds)


@dataclass
class Complement:
    """What stands after the verb; `clitics`: pronouns before the French verb, in order."""

    part: Part = field(default_factory=Part)
    clitics: list[tuple[int, Word]] = field(default_factory=list)
    inner: list[English] = field(default_factory=list)  # between verb and particle: turn IT off
    agreement: str = ""  # of the participle with a pronoun before it
    negative: Word | None = None  # rien, personne
    asked: str = ""


@dataclass
class Clause:
    """A clause whose English auxiliary can be moved before its subject."""

    subject: Np
    auxiliary: list[English]
    english: list[English]
    french: list[Word]
    reserved: bool = False

    def statement(self) -> Part:
        said = self.subject.part.english + self.auxiliary + self.english
        return Part(said, self.french, self.reserved)

    def question(self) -> Part:
        said = self.auxiliary + self.subject.part.english + self.english
        asked = [*french("est-ce que", self.auxiliary), *self.french]
        return Part(said, asked, self.reserved)


def clause(
    world: World,
    who: Np,
    verb: Verb,
    tense: str,
    complement: Complement,
    *,
    negation: str = "",
    asked: bool = False,
    adverb: tuple[str, str] | None = None,
    beside: tuple[str, str] | None = None,
) -> Clause:
    """The clause; negation: not, never, no longer. adverb: one that stands beside the verb;
    beside: one that does so in French only (I like it a lot: je l'aime beaucoup)."""
    last = english(beside[0]) if beside else []
    auxiliary, main, negative, often, modal = _english(
        world, who, verb, tense, negation=negation, asked=asked, adverb=adverb
    )
    often = often + french(beside[1], last) if beside else often
    head, *particle = main
    rest = [] if "empty" in modal else main
    if complement.inner:
        rest = [head, *complement.inner, *particle]
    english_rest = modal["before"] + rest + complement.part.english + last
    return Clause(
        who,
        auxiliary,
        english_rest,
        _french(who, verb, tense, complement, auxiliary, main, negative, often, modal, asked=asked),
        who.part.reserved or complement.part.reserved,
    )


def _english(
    world: World,
    who: Np,
    verb: Verb,
    tense: str,
    *,
    negation: str,
    asked: bool,
    adverb: tuple[str, str] | None,
) -> tuple[list[English], list[English], list[Word], list[Word], dict[str, list[English]]]:
    """Auxiliary; verb with its particles; pas, jamais; the adverb; words of the modal."""
    helper, form = TENSES[tense][:2]
    words = helper.split()
    be = verb.base.split()[0] == "be"
    third = who.english_person == 2
    first = words[0]
    modal = words[1:]
    mine = {0: "my", 1: "your", 2: "her" if who.gender == "f" else "his", 3: "our"}.get(
        who.person, "their"
    )
    no = negation == "not"
    if first == "be" or first == "was":
        first = is_form(who.english_person, past=first == "was")
    elif first == "do" and third:
        first = "does"
    elif first == "have" and third:
        first = "has"
    shape = {
        "base": verb.base,
        "ing": verb.ing,
        "participle": verb.participle,
        "past": verb.past,
        "finite": verb.base,
    }[form]
    lone = False  # a finite verb without auxiliary
    if be and form in ("finite", "past"):
        first = is_form(who.english_person, past=form == "past")
        shape = verb.base
        main = english(shape)[1:]
        front = english(first)
        lone = True
    elif words[0] in ("do", "did") and not no and not asked:
        if modal:
            finite = modal[0]
            if words[0] == "do":
                finite = {"have": "has", "want": "wants"}[finite] if third else finite
            else:
                finite = {"have": "had", "want": "wanted", "use": "used"}[finite]
            modal = [finite, *modal[1:]]
        elif form == "finite":
            shape = verb.third if third else verb.base
        front, main = [], english(shape.replace("one's", mine))
    else:
        if form in ("finite", "past"):
            shape = verb.base
        front, main = english(first), english(shape.replace("one's", mine))
    pronoun = who.kind == "pron"
    negative: list[Word] = []
    middle: list[English] = []
    if no:
        if first in NOT and world.chance(0.75) and not (first == "am"):
            short = english(NOT[first] if first != "can" or world.chance(0.9) else "cannot")
            front = short
            negative = [Word("pas", tuple(short))]
        else:
            nots = english("not")
            if front and not asked and pronoun and first in SHORT and world.chance(0.6):
                front = english(SHORT[first])
            front = front if first != "can" else english("can")
            negative = [Word("pas", tuple(nots))]
            middle = nots
    elif front and not asked and first in SHORT:
        chance = 0.5 if pronoun else 0.12 if first == "is" else 0.0
        if tense == "would":
            chance = 0.4 if pronoun else 0
        if world.chance(chance) and not (lone and not main and False):
            front = english(SHORT[first])
    if negation in ("never", "no longer", "anymore"):
        nots = english(negation)
        negative = french("jamais" if negation == "never" else "plus", nots)
        middle = nots
    often: list[Word] = []
    if adverb:
        words_of = english(adverb[0])
        middle = middle + words_of
        often = french(adverb[1], words_of)
    modals = english(" ".join(modal))
    key = {"before": middle + modals, "modal": modals, "front": list(front)}
    if be and lone:
        key["be"] = list(front)
    return front, main or list(front), negative, often, key if main else {**key, "empty": front}


def _french(
    who: Np,
    verb: Verb,
    tense: str,
    complement: Complement,
    front: list[English],
    main: list[English],
    negative: list[Word],
    often: list[Word],
    modal: dict[str, list[English]],
    *,
    asked: bool,
) -> list[Word]:
    _, _, helper, time = TENSES[tense]
    infinitive, *tail = verb.french.split(" ")
    if (
        time == "perfect"
        and tense == "past"
        and (verb.base.split()[0] in IMPERFECT)
        and (verb.base in IMPERFECT or verb.base.startswith("be "))
    ):
        time = "imperfect"
    if tense == "could" and asked:
        time = "conditional"
    person = who.person
    of = tuple(dict.fromkeys(main)) if main else tuple(front)
    if modal.get("be"):
        of = tuple(modal["be"])
    said = tuple(dict.fromkeys((*front, *of))) if not modal["modal"] and not helper else of
    clitics = [word for _, word in sorted(complement.clitics, key=lambda pair: pair[0])]
    if verb.reflexive:
        clitics = [Word(REFLEXIVE[person], of), *clitics]
    ne: list[Word] = []
    closing = list(negative)
    if complement.negative:
        closing = [w for w in closing if w.word != "pas"]
    if closing or complement.negative or who.impersonal:
        source = (
            closing[0].of
            if closing
            else complement.negative.of
            if complement.negative
            else tuple(who.part.english)
        )
        ne = [Word("ne", source)]
    if complement.negative and complement.negative.word == "rien":
        closing = [*closing, complement.negative]
    if (
        closing
        and tail
        and tail[0] in ("un", "une", "du", "des")
        and closing[0].word in ("pas", "plus", "jamais")
    ):
        tail = ["de", *tail[1:]]
    tail_words = french(" ".join(tail), main if main else front, content=False)
    tail_words = [Word(w.word, w.of, content=len(w.word) > 2) for w in tail_words]
    late = (
        [complement.negative]
        if complement.negative and complement.negative.word == "personne"
        else []
    )
    subject = who.part.french
    if helper:
        of_modal = tuple(dict.fromkeys((*front, *modal["modal"])))
        if time == "perfect":
            heard = _perfect_words(helper, "avoir", person, of_modal, "")
        else:
            heard = [Word(conjugate(helper, _tense(time), person), of_modal, content=True)]
        return [
            *subject, *ne, heard[0], *closing, *often, *heard[1:], *clitics,
            Word(infinitive, of, content=True), *tail_words, *late, *complement.part.french,
        ]  # fmt: skip
    if time == "perfect":
        auxiliary = "être" if verb.auxiliary == "e" or verb.reflexive else "avoir"
        agreement = complement.agreement
        if auxiliary == "être" and not (
            verb.reflexive and tail and tail[0] in ("le", "la", "les", "un", "une", "des", "de")
        ):
            agreement = ("e" if who.gender == "f" else "") + ("s" if who.plural else "")
        heard = _perfect_words(infinitive, auxiliary, person, said, agreement)
        return [
            *subject,
            *ne,
            *clitics,
            heard[0],
            *closing,
            *often,
            *heard[1:],
            *tail_words,
            *late,
            *complement.part.french,
        ]
    finite = Word(conjugate(infinitive, _tense(time), person), said, content=True)
    return [
        *subject,
        *ne,
        *clitics,
        finite,
        *closing,
        *often,
        *tail_words,
        *late,
        *complement.part.french,
    ]


def _tense(name: str) -> Tense:
    return name  # type: ignore[return-value]


def _perfect_words(
    infinitive: str, auxiliary: str, person: int, of: tuple[English, ...], agreement: str
) -> list[Word]:
    participle = past_participle(infinitive)
    if agreement.endswith("s") and participle.endswith("s") and not agreement.startswith("e"):
        agreement = ""
    return [
        Word(conjugate(auxiliary, "present", person), of),
        Word(participle + agreement, of, content=True),
    ]


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
    if people and world.chance(0.25):
        other = name(world)
    else:
        other = noun_phrase(world, classes)
    link = tuple(other.part.english[:1])
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
        said = Part(words) + part("to", "à") + other.part
        return Complement(
            said, [(1, Word(OBJECTS[thing][0], tuple(words)))], [], "s" if thing == "them" else ""
        )
    if draw < 0.82:
        to = [Word("à", tuple(other.part.english[:1]))]
        return Complement(
            Part(
                other.part.english + what.part.english,
                what.part.french + to + other.part.french,
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
