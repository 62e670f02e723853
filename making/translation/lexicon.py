"""The hand-written lists: nouns, verbs, adjectives, adverbs, names, fixed phrases, tables.

The columns of each list are described in its first line. A word of the first third of a list
is drawn three times as often as another, and one of the first tenth six times.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

Gender: TypeAlias = Literal["m", "f"]
FOLDER = Path(__file__).parent / "words"
MUCH_USED = 3
STATES = frozenset(
    "have know want need like love hate prefer believe understand remember seem own belong "
    "contain cost hope wish mean recognize feel deserve matter".split()
)
T = TypeVar("T")


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; `feminine`: (singular, plural) where people's French has one.

    A French word with an aspirated h begins with `*`.
    """

    english: str
    english_plural: str
    french: str
    french_plural: str
    gender: Gender
    classes: frozenset[str]
    feminine: tuple[str, str] | None = None
    plural_only: bool = False

    @property
    def mass(self) -> bool:
        return not self.english_plural

    @property
    def named_time(self) -> bool:
        """Monday, June."""
        return self.english[0].isupper() and "time" in self.classes

    @property
    def with_article(self) -> bool:
        """Whether its French has an article where its English has none (French, football)."""
        return bool(self.classes & {"language", "subject", "sport", "meal", "color"})

    @property
    def always_many(self) -> bool:
        """Plural in English alone (trousers)."""
        return self.english_plural == self.english and self.english.endswith("s")


@dataclass(frozen=True)
class Adjective:
    """An adjective with its French forms; `before`: it stands before the noun.

    `masculine` may be `beau/bel`, with the form before a vowel.
    """

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    before: bool
    classes: frozenset[str]

    def french(self, gender: Gender, *, plural: bool = False) -> str:
        if gender == "f":
            return french_plural(self.feminine) if plural else self.feminine
        return self.masculine_plural if plural else self.masculine


@dataclass(frozen=True)
class Verb:
    """A verb with its English forms (particles included) and what can follow it."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    french: str
    reflexive: bool = False
    auxiliary: str = "a"
    frames: tuple[str, ...] = ()

    @property
    def objects(self) -> str:
        """The classes of its direct object."""
        return next((f.removeprefix("np:") for f in self.frames if f.startswith("np:")), "")

    @property
    def state(self) -> bool:
        """Whether it has no progressive: know, be hungry."""
        return self.base in STATES or self.with_be

    @property
    def with_be(self) -> bool:
        return self.base.startswith("be ")


@dataclass(frozen=True)
class Adverb:
    """An adverb; kind: time, frequency, manner, degree, place, sentence."""

    english: str
    french: str
    kind: str
    position: str
    tense: str


@dataclass(frozen=True)
class Name:
    """A first name."""

    name: str
    gender: Gender


def rows(name: str) -> list[list[str]]:
    """The rows of a list, without its comments."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]


@cache
def table(name: str) -> tuple[tuple[str, ...], ...]:
    """A table of words: English, French and what else the table has."""
    return tuple(tuple(row[1:]) for row in rows("tables.txt") if row[0] == name)


def weighted(items: list[T]) -> tuple[T, ...]:
    """The items, those of the first third and still more those of the first tenth several times."""
    third, tenth = items[: len(items) // 3], items[: len(items) // 10]
    return (*items, *(third * (MUCH_USED - 1)), *(tenth * MUCH_USED))


def english_plural(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    return word + "s"


def french_plural(word: str) -> str:
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith(("eau", "eu", "au")) else "s")


def feminine(masculine: str) -> str:
    return masculine if masculine.endswith("e") else masculine + "e"


@cache
def nouns() -> tuple[Noun, ...]:
    return tuple(_noun(*row[:6]) for row in rows("nouns.txt"))


@cache
def one_only(noun: Noun) -> bool:
    """Whether its plural is the name of something else (glass: glasses) or cannot be told."""
    if noun.english == noun.english_plural and not noun.always_many:
        return True
    return any(other is not noun and other.english == noun.english_plural for other in nouns())


@cache
def nouns_of(classes: str) -> tuple[Noun, ...]:
    """Those of any of the classes (`food|drink`), the much used several times."""
    wanted = set(classes.split("|"))
    if "abstract" in wanted:
        wanted |= {"mass", "body"}
    return weighted([noun for noun in nouns() if noun.classes & wanted])


def _noun(
    english: str, plural: str, french: str, plural_french: str, gender: str, classes: str
) -> Noun:
    male, _, female = french.partition("/")
    several = {"=": english_plural(english), "-": ""}.get(plural, plural)
    many, _, many_female = plural_french.partition("/")
    if many in ("=", "-"):
        many = french_plural(male)
    only = "p" in gender
    if only:
        many = male
    woman = None
    if gender == "mf":
        she = female or male
        woman = (she, many_female if many_female not in ("", "=") else french_plural(she))
        woman = woman if female or many_female else (male, many)
    sex: Gender = "f" if gender.startswith("f") else "m"
    kinds = frozenset(kind.strip() for kind in classes.split(","))
    return Noun(english, several, male, many, sex, kinds, woman, only)


@cache
def adjectives() -> tuple[Adjective, ...]:
    return tuple(_adjective(*row[:6]) for row in rows("adjectives.txt"))


def _adjective(
    english: str, masculine: str, woman: str, plural: str, place: str, classes: str
) -> Adjective:
    first = masculine.split("/")[0]
    return Adjective(
        english,
        masculine,
        feminine(first) if woman == "=" else woman,
        french_plural(first) if plural == "=" else plural,
        place == "b",
        frozenset(kind.strip() for kind in classes.split(",")),
    )


@cache
def verbs() -> tuple[Verb, ...]:
    return tuple(_verb(*row[:8]) for row in rows("verbs.txt"))


def _verb(  # the columns of the list
    base: str,
    third: str,
    past: str,
    participle: str,
    ing: str,
    french: str,
    auxiliary: str,
    frames: str,
) -> Verb:
    reflexive = french.startswith(("se ", "s'"))
    plain = french.removeprefix("se ").removeprefix("s'") if reflexive else french
    third = english_plural(base) if third == "=" else third
    past = base + "ed" if past == "=" else past
    participle = past if participle == "=" else participle
    ing = base + "ing" if ing == "=" else ing
    kinds = tuple(frames.split())
    return Verb(base, third, past, participle, ing, plain, reflexive, auxiliary, kinds)


@cache
def adverbs() -> tuple[Adverb, ...]:
    return tuple(Adverb(*row[:5]) for row in rows("adverbs.txt"))


@cache
def names() -> tuple[Name, ...]:
    return tuple(
        Name(row[0], "f" if row[1] == "f" else "m")
        for row in rows("names.txt")
        if row[0] not in ("April", "May", "June", "August", "Will")
    )


@cache
def formulae() -> tuple[tuple[str, str], ...]:
    return tuple((row[0], row[1]) for row in rows("phrases.txt"))
