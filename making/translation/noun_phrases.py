"""Noun phrases: determiners, adjectives and nouns that agree."""

from collections.abc import Sequence
from functools import cache

from making.translation.lexicon import (
    Adjective,
    Gender,
    Noun,
    adjectives,
    nouns_of,
    one_only,
    weighted,
)
from making.translation.nominal import (
    ACTING,
    ALIKE,
    CASUAL,
    MANY,
    MUCH,
    NUMBERS,
    OBJECT_I,
    PEOPLE,
    POSSESSIVES,
    THINGS,
    Np,
    indefinite,
    name,
    pronoun_subject,
    strange_word,
)
from making.translation.parts import English, Part, Word, english, french, part
from making.world.lexicon import World, article, reserved


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
        return both(world, name(world), "et", name(world))
    if draw < pronouns + 0.205:
        return both(world, part_np(OBJECT_I, world), "et", name(world), turned=True)
    if classes == PEOPLE:
        classes = world.rng.choices((PEOPLE, "animal", ACTING), (72, 13, 15))[0]
    return noun_phrase(world, classes, subject=True)


def part_np(words: tuple[str, str], _: World) -> Np:
    return Np(part(*words), "m", 0)


def both(world: World, first: Np, _: str, second: Np, *, turned: bool = False) -> Np:
    """`Anna and Tom`; `my brother and I`: mon frère et moi."""
    if turned:
        second = second if world.chance(0.5) else noun_phrase(world, "relative", subject=True)
        return Np(second.part + part("and", "et") + first.part, "m", 3)
    gender: Gender = "f" if first.gender == second.gender == "f" else "m"
    return Np(first.part + part("and", "et") + second.part, gender, 5)


@cache
def fitting(classes: frozenset[str]) -> tuple[Adjective, ...]:
    return weighted([a for a in adjectives() if "any" in a.classes or _fits(a, classes)])


def _fits(adjective: Adjective, classes: frozenset[str]) -> bool:
    return any(classes & ALIKE.get(kind, {kind}) for kind in adjective.classes)


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

    negated: after ne … pas (de for un, du). general: after like or love (les chats).
    """
    rng = world.rng
    strange = not subject and not plain and world.chance(0.04)
    noun = made_up_noun(world) if strange else rng.choice(nouns_of(classes) or nouns_of(THINGS))
    if noun.classes & {"city", "country"} or (noun.english[0].isupper() and "time" in noun.classes):
        return proper(noun)
    if noun.classes & {"language", "subject", "sport", "meal", "color"}:
        determiner = "the*"
    counts = (100, 0, 0, 0) if plain else (70, 24, 5, 1)
    many = adjectives_of(world, noun, rng.choices((0, 1, 2, 3), counts)[0])
    if not determiner:
        if general and world.chance(0.75):
            determiner = "the*"
        elif noun.mass:
            determiner = rng.choice(("", "", "the", "my", "this", "quantity"))
            determiner = rng.choice(("the", "my")) if subject and determiner == "" else determiner
        elif "relative" in noun.classes:
            determiner = rng.choices(("my", "the", "a", "of"), (70, 12, 10, 8))[0]
        else:
            choice = list(CASUAL)[:-1]
            determiner = rng.choices(choice, [CASUAL[d] for d in choice])[0]
            if determiner == "bare":
                determiner = "the"
    plural = noun.plural_only or (not noun.mass and world.chance(0.2)) or (determiner == "number")
    plural = plural or (
        determiner == "the*"
        and not noun.mass
        and not noun.classes & {"language", "subject", "sport", "meal", "color"}
    )
    if determiner == "quantity" and not noun.mass:
        plural = True
    if one_only(noun):
        plural, determiner = False, "a" if determiner in ("number", "quantity") else determiner
    return built(world, noun, many, determiner, plural=plural, negated=negated)


def proper(noun: Noun) -> Np:
    words = english(noun.english)
    if "country" not in noun.classes:
        return Np(
            Part(words, french(noun.french, words, content=True)), noun.gender, 2, noun, "name"
        )
    the = "LES" if noun.plural_only else "LE" if noun.gender == "m" else "LA"
    heard = [Word(the, tuple(words)), *french(noun.french, words, content=True)]
    return Np(Part(words, heard), noun.gender, 5 if noun.plural_only else 2, noun)


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
    gender, one, several = _sex(world, noun)
    many_said = noun.always_many or (plural and not noun.mass)
    plural = noun.plural_only or (plural and not noun.always_many)
    body = _described(world, noun, many, gender, several if plural else one, plural=plural)
    front = bool(many) and many[0].before
    first, owner = _determiner(
        world,
        determiner,
        noun,
        body,
        gender=gender,
        plural=plural,
        negated=negated,
        front=front,
        many=many_said,
    )
    said = first.english + body.english
    heard = first.french + body.french
    if owner is not None:
        said = owner.part.english + english("'s") + body.english
        heard = first.french + body.french + _of(said[len(owner.part.english)], owner)
    reserved_pair = world.held_out and bool(many)
    return Np(
        Part(said, heard, reserved_pair),
        gender,
        5 if plural else 2,
        noun,
        said=5 if many_said else 2,
    )


def _of(mark: English, owner: Np) -> list[Word]:
    return [Word("de", (mark,)), *owner.part.french]


def _sex(world: World, noun: Noun) -> tuple[Gender, str, str]:
    """Gender and French forms. A noun with two forms is masculine."""
    return noun.gender, noun.french, noun.french_plural


def _described(
    world: World,
    noun: Noun,
    many: Sequence[Adjective],
    gender: Gender,
    named: str,
    *,
    plural: bool,
) -> Part:
    """Adjectives and noun, each language in its own order."""
    said: list[English] = []
    before: list[Word] = []
    after: list[list[Word]] = []
    joint: list[English] = []
    for i, adjective in enumerate(many):
        if i and i == len(many) - 1 and world.chance(0.25):
            joint = english("and")
            said += joint
        very = english("very") if i == 0 and world.chance(0.08) else []
        words = english(adjective.english)
        said += very + words
        form = [
            *french("très", very),
            *french(adjective.french(gender, plural=plural), words, content=True),
        ]
        form = form if very else form[1:]
        if adjective.before:
            before += form
        else:
            after.append(form)
    names = english((noun.english_plural or noun.english) if plural else noun.english)
    heard = [*before, *french(named, names, content=True)]
    for i, form in enumerate(reversed(after)):
        if i:
            heard += [Word("et", tuple(joint))] if i == len(after) - 1 else [Word(",")]
        heard += form
    return Part(said + names, heard)


def _determiner(
    world: World,
    kind: str,
    noun: Noun,
    body: Part,
    *,
    gender: Gender,
    plural: bool,
    negated: bool,
    front: bool,
    many: bool,
) -> tuple[Part, Np | None]:
    rng = world.rng
    the = "LES" if plural else "LE" if gender == "m" else "LA"
    mine = 2 if plural else 0 if gender == "m" else 1
    some = "de" if negated else ("de" if front else "des") if plural else f"de {the}"
    if many and not plural:
        some = "de" if negated else "un" if gender == "m" else "une"
    content = tuple(body.english[-1:])
    if kind == "the*":
        return Part([], [Word(the, content)]), None
    if kind == "the":
        return part("the", the), None
    if kind == "":
        return Part([], [Word(word, content) for word in some.split()]), None
    if kind in ("this", "that"):
        demonstrative = "ces" if plural else "ce" if gender == "m" else "cette"
        words = ("these", "those") if many else ("this", "this", "that")
        return part(rng.choice(words), demonstrative), None
    if kind == "of":
        owner = (
            name(world)
            if world.chance(0.6)
            else noun_phrase(
                world, PEOPLE, subject=True, plain=True, determiner=rng.choice(("my", "the"))
            )
        )
        if not owner.plural:
            return Part([], [Word(the, ())]), owner
        kind = "my"
    if kind == "my" or kind in POSSESSIVES:
        word = (
            kind
            if kind != "my"
            else rng.choice(
                ("my",) * 5 + ("your", "your", "his", "her", "his", "her", "our", "their")
            )
        )
        return part(word, POSSESSIVES[word][mine]), None
    if kind == "number":
        word, number = rng.choice(
            list(NUMBERS.items()) if world.chance(0.3) else list(NUMBERS.items())[:9]
        )
        return part(word, number), None
    if kind == "quantity":
        return _quantity(
            world, noun, some, the=the, gender=gender, plural=plural, negated=negated
        ), None
    if kind == "no":
        return part("no", "de"), None
    if kind == "any":
        return part("any", "de" if negated else some), None
    if plural or many or noun.mass:
        return Part([], [Word(word, content) for word in some.split()]), None
    if negated:
        return part(article(body.english[0].word), "de"), None
    another = world.chance(0.04)
    one = "un" if gender == "m" else "une"
    if another:
        return part("another", f"{one} autre"), None
    return part(article(body.english[0].word), one), None


def _quantity(
    world: World, noun: Noun, some: str, *, the: str, gender: Gender, plural: bool, negated: bool
) -> Part:
    if negated:
        few = (
            ("any", "de"),
            ("any", "de"),
            ("enough", "assez de"),
            ("many" if plural else "much", "beaucoup de"),
        )
        return part(*world.rng.choice(few))
    if plural and not noun.mass:
        said, heard = world.rng.choice(MANY)
        if said == "many" and world.chance(0.5):
            said, heard = "a lot of", "beaucoup de"
        all_of = "tous" if gender == "m" else "toutes"
        heard = {"DES": some, "ALL": f"{all_of} LES", "ALLMY": f"{all_of} mes"}.get(heard, heard)
        if heard.startswith(all_of):
            first, second = english("all"), english(said.split()[1])
            both = french(all_of, first) + french(heard.split()[1], second)
            return Part(first + second, both)
        return part(said, heard)
    fit = [row for row in MUCH if len(row) < 3 or row[2] in noun.classes]
    said, heard, *_ = world.rng.choice(fit)
    if heard == "SOME":
        return part("some", some)
    if len(fit[0]) and said.endswith(" of") and said != "a lot of":
        *measure, of = said.split()
        left, last = english(" ".join(measure)), english(of)
        unit = heard.removesuffix(" de")
        return Part(left + last, french(unit, left) + french("de", last))
    return part(said, heard)


# of persons these are other verbs in French (j'ai faim, je suis en retard)
OTHERWISE = frozenset(
    "hungry thirsty cold hot warm afraid scared sleepy right wrong lucky ashamed late early bored "
    "asleep born".split()
)


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
