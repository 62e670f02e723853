"""Noun phrases: determiners, adjectives and nouns that agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from making.translation.lexicon import (
    Adjective,
    Noun,
    adjectives,
    nouns_of,
    one_only,
    table,
    weighted,
)
from making.translation.nominal import (
    NUMBERS,
    PEOPLE,
    THINGS,
    Np,
    indefinite,
    name,
    pronoun_subject,
    strange_word,
)
from making.translation.parts import Part, Word, Words, english, french, part
from making.world.lexicon import World, article, reserved

ACTING = "vehicle|device|event|building|watch|group|body|weather"
ALIKE = {
    "person": {"person", "relative", "job"},
    "thing": {*THINGS.split("|"), "money", "instrument", "material"},
    "place": {"place", "building", "room", "city", "country", "nature"},
    "food": {"food", "drink", "meal"},
    "abstract": {"abstract", "event", "subject", "language"},
    "color": {"thing", "small", "clothes", "vehicle", "furniture", "animal", "plant", "device"},
    "size": {"thing", "small", "clothes", "vehicle", "furniture", "animal", "building", "room"},
}
"""The classes of nouns that adjectives of a class fit."""
POSSESSIVES = {
    "my": ("mon", "ma", "mes"), "your": ("ton", "ta", "tes"), "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"), "its": ("son", "sa", "ses"), "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}  # fmt: skip
OWNERS = ("my",) * 5 + ("your", "your", "his", "her", "his", "her", "our", "their")
DETERMINERS = {"a": 30, "the": 34, "my": 26, "this": 9, "number": 6, "quantity": 8, "of": 5}
# of persons these are other verbs in French (j'ai faim, je suis en retard)
OTHERWISE = frozenset(
    "hungry thirsty cold hot warm afraid scared sleepy right wrong lucky ashamed late early bored "
    "asleep born".split()
)


def subject(world: World, *, pronouns: float = 0.62, classes: str = PEOPLE) -> Np:
    """A subject: a pronoun, somebody's name, a noun phrase, everyone, nobody."""
    draw = world.rng.random()
    if draw < pronouns:
        return pronoun_subject(world)
    if draw < pronouns + 0.13:
        return name(world)
    if draw < pronouns + 0.17:
        return indefinite(world)
    if draw < pronouns + 0.19:
        first, second = name(world), name(world)
        female = first.gender == second.gender == "f"
        both = first.part + part("and", "et") + second.part
        return Np(both, "f" if female else "m", 5)
    if draw < pronouns + 0.205:
        other = name(world)
        other = other if world.chance(0.5) else noun_phrase(world, "relative", subject=True)
        return Np(other.part + part("and", "et") + part("I", "moi"), "m", 3)
    if classes == PEOPLE:
        classes = world.rng.choices((PEOPLE, "animal", ACTING), (72, 13, 15))[0]
    return noun_phrase(world, classes, subject=True)


def personal(world: World, who: Np, *, but: tuple[str, ...] = ()) -> Np:
    """This subject or another; not everyone or nobody, nor one that begins with a word of `but`."""
    while who.impersonal or who.first in but:
        who = subject(world)
    return who


@cache
def fitting(classes: frozenset[str]) -> tuple[Adjective, ...]:
    """The adjectives that nouns of these classes can have."""
    fit = [
        adjective
        for adjective in adjectives()
        if "any" in adjective.classes
        or any(classes & ALIKE.get(kind, {kind}) for kind in adjective.classes)
    ]
    return weighted(fit)


def adjectives_of(world: World, noun: Noun, count: int) -> list[Adjective]:
    """Different adjectives, of which at most one stands before the noun in French."""
    chosen: list[Adjective] = []
    choices = fitting(noun.classes)
    for _ in range(40):
        if len(chosen) == count or not choices:
            break
        adjective = world.rng.choice(choices)
        second = adjective.before and any(other.before for other in chosen)
        if adjective in chosen or second or " " in adjective.english:
            continue
        if reserved(adjective.english, noun.english) == world.held_out:
            chosen.append(adjective)
    return sorted(chosen, key=lambda adjective: not adjective.before)


def adjective_for(world: World, np: Np) -> Adjective:
    """An adjective that can be said of the phrase."""
    alive = np.noun is None or bool(np.noun.classes & {"person", "relative", "job", "animal"})
    classes = np.noun.classes if np.noun else frozenset(("person",))
    for _ in range(60):
        adjective = world.rng.choice(fitting(classes))
        if alive and adjective.english in OTHERWISE:
            continue
        if np.noun is None or reserved(adjective.english, np.noun.english) == world.held_out:
            break
    return adjective


def form_for(adjective: Adjective, who: Np) -> str:
    """Its French form after être."""
    return adjective.french(who.gender, plural=who.plural).split("/")[0]


def predicate(adjective: Adjective, who: Np) -> Part:
    return part(adjective.english, form_for(adjective, who), content=True)


def made_up_noun(world: World) -> Noun:
    word = strange_word(world)
    return Noun(word, word + "s", word, word + "s", "m", frozenset(("thing",)))


def noun_phrase(
    world: World,
    classes: str,
    *,
    subject: bool = False,
    negated: bool = False,
    general: bool = False,
    plain: bool = False,
    determiner: str = "",
) -> Np:
    """A noun of these classes with a determiner, adjectives, an owner.

    negated: after ne … pas (de for un, du). general: after like or love (les chats). plain: a
    known noun without adjectives.
    """
    rng = world.rng
    strange = world.invents and not plain and world.chance(0.06)
    noun = made_up_noun(world) if strange else rng.choice(nouns_of(classes) or nouns_of(THINGS))
    if noun.classes & {"city", "country"} or noun.named_time:
        return proper(noun)
    counts = (100, 0, 0, 0) if plain else (70, 24, 5, 1)
    many = adjectives_of(world, noun, rng.choices((0, 1, 2, 3), counts)[0])
    if noun.with_article:
        determiner = "the*"
    elif not determiner:
        determiner = _some_determiner(world, noun, subject=subject, general=general)
    plural = noun.plural_only or (not noun.mass and world.chance(0.2)) or determiner == "number"
    if not noun.mass and (
        determiner == "quantity" or (determiner == "the*" and not noun.with_article)
    ):
        plural = True
    if one_only(noun):
        plural, determiner = False, "a" if determiner in ("number", "quantity") else determiner
    return built(world, noun, many, determiner, plural=plural, negated=negated)


def _some_determiner(world: World, noun: Noun, *, subject: bool, general: bool) -> str:
    rng = world.rng
    if general and world.chance(0.75):
        return "the*"
    if noun.mass:
        determiner = rng.choice(("", "", "the", "my", "this", "quantity"))
        return rng.choice(("the", "my")) if subject and determiner == "" else determiner
    if "relative" in noun.classes:
        return rng.choices(("my", "the", "a", "of"), (70, 12, 10, 8))[0]
    return rng.choices(list(DETERMINERS), list(DETERMINERS.values()))[0]


def proper(noun: Noun) -> Np:
    """A city, a country with its article, a day or a month."""
    words = english(noun.english)
    heard = french(noun.french, words, content=True)
    if "country" not in noun.classes:
        return Np(Part(words, heard), noun.gender, noun=noun, kind="name")
    the = "LES" if noun.plural_only else "LE" if noun.gender == "m" else "LA"
    said = Part(words, [Word(the, words), *heard])
    return Np(said, noun.gender, 5 if noun.plural_only else 2, noun)


@dataclass(frozen=True)
class _Head:
    """What a determiner depends on."""

    noun: Noun
    first: str  # the English word after it
    last: Words
    plural: bool
    many: bool  # plural in English
    negated: bool
    before: bool  # an adjective stands before the French noun

    def agree(self, masculine: str, feminine: str, plural: str) -> str:
        return plural if self.plural else masculine if self.noun.gender == "m" else feminine

    @property
    def the(self) -> str:
        return self.agree("LE", "LA", "LES")

    @property
    def one(self) -> str:
        return "un" if self.noun.gender == "m" else "une"

    @property
    def some(self) -> str:
        if self.negated:
            return "de"
        if self.plural:
            return "de" if self.before else "des"
        return self.one if self.many else f"de {self.the}"


def built(
    world: World,
    noun: Noun,
    many: Sequence[Adjective],
    determiner: str,
    *,
    plural: bool,
    negated: bool = False,
) -> Np:
    """The phrase with this determiner: a kind ("my": some possessive) or a word."""
    many_said = noun.always_many or (plural and not noun.mass)
    plural = noun.plural_only or (plural and not noun.always_many)
    body = _described(world, noun, many, plural=plural)
    before = bool(many) and many[0].before
    head = _Head(noun, body.english[0].word, body.english[-1:], plural, many_said, negated, before)
    owner = _owner(world) if determiner == "of" else None
    if owner and not owner.plural:
        mark = english("'s")
        heard = [Word(head.the), *body.french, Word("de", mark), *owner.part.french]
        said = Part(owner.part.english + mark + body.english, heard)
    else:
        said = _determiner(world, "my" if owner else determiner, head) + body
    said.reserved = world.held_out and bool(many)
    return Np(said, noun.gender, 5 if plural else 2, noun, said=5 if many_said else 2)


def someone(world: World, named: float, classes: str = PEOPLE, determiner: str = "") -> Np:
    """A name, with this probability, or a noun without adjectives."""
    if world.chance(named):
        return name(world)
    return noun_phrase(world, classes, subject=True, plain=True, determiner=determiner)


def _owner(world: World) -> Np:
    if world.chance(0.6):
        return name(world)
    determiner = world.rng.choice(("my", "the"))
    return noun_phrase(world, PEOPLE, subject=True, plain=True, determiner=determiner)


def _described(world: World, noun: Noun, many: Sequence[Adjective], *, plural: bool) -> Part:
    """Adjectives and noun, each language in its own order."""
    said: Words = ()
    before: list[Word] = []
    after: list[list[Word]] = []
    joint: Words = ()
    for i, adjective in enumerate(many):
        if i and i == len(many) - 1 and world.chance(0.25):
            joint = english("and")
        very = part("very", "très") if i == 0 and world.chance(0.08) else Part()
        form = adjective.french(noun.gender, plural=plural)
        described = very + part(adjective.english, form, content=True)
        said += (joint if i == len(many) - 1 else ()) + described.english
        if adjective.before:
            before += described.french
        else:
            after.append(described.french)
    names = english((noun.english_plural or noun.english) if plural else noun.english)
    named = french(noun.french_plural if plural else noun.french, names, content=True)
    heard = [*before, *named]
    for i, words in enumerate(reversed(after)):
        if i:
            heard.append(Word("et", joint) if i == len(after) - 1 else Word(","))
        heard += words
    return Part(said + names, heard)


def _determiner(world: World, kind: str, head: _Head) -> Part:
    rng = world.rng
    if kind == "the*":
        return Part((), [Word(head.the, head.last)])
    if kind == "the":
        return part("the", head.the)
    if kind in ("this", "that"):
        words = ("these", "those") if head.many else ("this", "this", "that")
        return part(rng.choice(words), head.agree("ce", "cette", "ces"))
    if kind in POSSESSIVES:
        word = rng.choice(OWNERS) if kind == "my" else kind
        return part(word, head.agree(*POSSESSIVES[word]))
    if kind == "number":
        return part(*rng.choice(NUMBERS if world.chance(0.3) else NUMBERS[:9]))
    if kind == "quantity":
        return _quantity(world, head)
    if kind == "no":
        return part("no", "de")
    if kind == "any":
        return part("any", head.some)
    if kind == "" or head.plural or head.many or head.noun.mass:
        return Part((), french(head.some, head.last))
    if head.negated:
        return part(article(head.first), "de")
    if world.chance(0.04):
        return part("another", f"{head.one} autre")
    return part(article(head.first), head.one)


def _quantity(world: World, head: _Head) -> Part:
    """A lot of, a cup of, all the."""
    if head.negated:
        much = "many" if head.plural else "much"
        few = (("any", "de"), ("any", "de"), ("enough", "assez de"), (much, "beaucoup de"))
        return part(*world.rng.choice(few))
    if head.plural and not head.noun.mass:
        said, heard = world.rng.choice(table("many"))
        if said == "many" and world.chance(0.5):
            said = "a lot of"
        if heard.startswith("ALL "):
            determiner = part(said.removeprefix("all "), heard.removeprefix("ALL "))
            return part("all", "tous" if head.noun.gender == "m" else "toutes") + determiner
        return part(said, head.some if heard == "SOME" else heard)
    fit = [row for row in table("much") if len(row) < 3 or row[2] in head.noun.classes]
    said, heard, *_ = world.rng.choice(fit)
    if heard == "SOME":
        return part("some", head.some)
    if said.endswith(" of") and said != "a lot of":
        return part(said.removesuffix(" of"), heard.removesuffix(" de")) + part("of", "de")
    return part(said, heard)
