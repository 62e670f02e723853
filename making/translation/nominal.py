"""Words that stand for nouns: names, pronouns, numbers; what a noun phrase is."""

import re
import string
from dataclasses import dataclass
from functools import cache

from attnviz.builtin import words
from making.translation.lexicon import FOLDER, Gender, Noun, names, table
from making.translation.parts import Part, part
from making.world.lexicon import World

PEOPLE = "person|relative|job"
THINGS = "thing|small|clothes|furniture|device|read|tool|drinkware|vehicle|plant"
PLACES = "place|building|room"
NUMBERS = table("number")
SUBJECTS = (
    ("I", "je", 0), ("you", "tu", 1), ("he", "il", 2), ("she", "elle", 2),
    ("we", "nous", 3), ("they", "ils", 5), ("it", "il", 2),
)  # fmt: skip
SUBJECT_WEIGHTS = (30, 22, 20, 20, 18, 16, 5)
OBJECTS = {
    "me": ("me", "me", "moi"), "you": ("te", "te", "toi"), "him": ("le", "lui", "lui"),
    "her": ("la", "lui", "elle"), "it": ("le", "lui", "lui"), "us": ("nous", "nous", "nous"),
    "them": ("les", "leur", "eux"),
}  # fmt: skip
"""Pronouns as direct object, as indirect object and after a preposition."""
PERSONS = ("me", "me", "you", "you", "him", "her", "us", "them")


@dataclass
class Np:
    """A noun phrase with what other words agree with; person: 0 to 5, je to ils."""

    part: Part
    gender: Gender = "m"
    person: int = 2
    noun: Noun | None = None
    kind: str = "noun"
    impersonal: bool = False  # personne, rien: with ne and without pas
    said: int = -1  # the person of the English verb, where it is another (my hair is)

    @property
    def english_person(self) -> int:
        return self.person if self.said < 0 else self.said

    @property
    def many(self) -> bool:
        return self.english_person > 2

    @property
    def plural(self) -> bool:
        return self.person > 2

    @property
    def person_like(self) -> bool:
        """Whether it is a noun of people."""
        return self.noun is not None and bool(self.noun.classes & set(PEOPLE.split("|")))

    @property
    def agreement(self) -> str:
        """The ending of a participle that agrees with it."""
        return ("e" if self.gender == "f" else "") + ("s" if self.plural else "")

    @property
    def possessive(self) -> str:
        own = {0: "my", 1: "your", 2: "her" if self.gender == "f" else "his", 3: "our"}
        return own.get(self.person, "their")

    @property
    def first(self) -> str:
        return self.part.english[0].word


def of_people(classes: str) -> bool:
    """Whether any of the classes (`person|animal`) is one of people."""
    return bool(set(classes.split("|")) & set(PEOPLE.split("|")))


def from_table(world: World, name: str, *, content: bool = False) -> Part:
    """The words of a row of a table."""
    return part(*world.rng.choice(table(name))[:2], content=content)


def pronoun_subject(world: World, *, but: tuple[str, ...] = ()) -> Np:
    """I, you, she; none of those in `but`."""
    while True:
        said, heard, person = world.rng.choices(SUBJECTS, SUBJECT_WEIGHTS)[0]
        if said not in but:
            return Np(part(said, heard), "f" if said == "she" else "m", person, kind="pron")


def indefinite(world: World) -> Np:
    said, heard, *negative = world.rng.choice(table("indefinite"))
    return Np(part(said, heard), kind="indefinite", impersonal=bool(negative))


@cache
def strangers() -> tuple[str, ...]:
    """English nouns that no list of the translator has; it can only copy them."""
    lists = (path.read_text("utf-8") for path in FOLDER.iterdir())
    known = set(re.findall(r"[^\W\d_]+", " ".join(lists).lower()))
    english = words.listed("animals") | words.listed("nouns")
    unknown = (w for w in english if not known & {w[:-3] + "y", *_beginnings(w)})
    return tuple(sorted(w for w in unknown if w.isalpha() and w.islower() and len(w) > 3))


def _beginnings(word: str) -> list[str]:
    """The word and what is left without an ending of up to four letters."""
    return [word[: len(word) - n] for n in range(5)]


def strange_word(world: World) -> str:
    """A word that no list has: made up, English, or letters at random."""
    kind = world.rng.random()
    if kind < 0.45:
        return world.rng.choice(strangers())
    if kind < 0.8:
        return world.made_up()
    length = world.rng.randint(2, 8)
    return "".join(world.rng.choice(string.ascii_lowercase) for _ in range(length))


def name(world: World) -> Np:
    if world.invents and world.chance(0.2):
        said = strange_word(world).capitalize()
        return Np(part(said, said, content=True), kind="name")
    who = world.rng.choice(names())
    heard = "*" + who.name if who.name.startswith("H") else who.name
    return Np(part(who.name, heard, content=True), who.gender, kind="name")


def object_pronoun(world: World, who: Np | None = None, *, person: bool = True) -> str:
    """me, him, it; not the one that the subject is."""
    same = {0: ("me", "us"), 1: ("you",), 3: ("us", "me")}.get(who.person if who else 2, ())
    choices = PERSONS if person else ("it", "it", "them")
    return world.rng.choice([word for word in choices if word not in same])
