"""Words that stand for nouns: names, pronouns, numbers, quantities; what a noun phrase is."""

import string
from dataclasses import dataclass

from making.translation.lexicon import Gender, Noun, names
from making.translation.parts import Part, Word, english, french, part
from making.world.lexicon import World

PEOPLE = "person|relative|job"
THINGS = "thing|small|clothes|furniture|device|read|tool|drinkware|vehicle|plant"
PLACES = "place|building|room"
ALIKE = {
    "person": {"person", "relative", "job"},
    "thing": set(THINGS.split("|")) | {"money", "instrument", "material"},
    "place": {"place", "building", "room", "city", "country", "nature"},
    "food": {"food", "drink", "meal"},
    "abstract": {"abstract", "event", "subject", "language"},
    "animal": {"animal"},
    "clothes": {"clothes"},
    "weather": {"weather"},
    "color": {"thing", "small", "clothes", "vehicle", "furniture", "animal", "plant", "device"},
    "size": {"thing", "small", "clothes", "vehicle", "furniture", "animal", "building", "room"},
}
POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "your": ("ton", "ta", "tes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "its": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
NUMBERS = {
    "two": "deux", "three": "trois", "four": "quatre", "five": "cinq", "six": "six",
    "seven": "sept", "eight": "huit", "nine": "neuf", "ten": "dix", "eleven": "onze",
    "twelve": "douze", "thirteen": "treize", "fourteen": "quatorze", "fifteen": "quinze",
    "sixteen": "seize", "seventeen": "dix-sept", "eighteen": "dix-huit", "nineteen": "dix-neuf",
    "twenty": "vingt", "thirty": "trente", "forty": "quarante", "fifty": "cinquante",
    "sixty": "soixante", "seventy": "soixante-dix", "eighty": "quatre-vingts",
    "ninety": "quatre-vingt-dix", "a hundred": "cent", "a thousand": "mille",
}  # fmt: skip
CASUAL = {
    "bare": 0, "a": 30, "the": 34, "my": 26, "this": 9, "number": 6, "quantity": 8, "of": 5,
    "made-up": 2,
}  # fmt: skip
MANY = (
    ("a lot of", "beaucoup de"), ("lots of", "beaucoup de"), ("many", "beaucoup de"),
    ("too many", "trop de"), ("a few", "quelques"), ("some", "DES"), ("several", "plusieurs"),
    ("enough", "assez de"), ("a kilo of", "un kilo de"), ("two kilos of", "deux kilos de"),
    ("three kilos of", "trois kilos de"), ("a box of", "une boîte de"),
    ("a pair of", "une paire de"),
    ("all the", "ALL"), ("all my", "ALLMY"), ("so many", "tant de"),
)  # fmt: skip
MUCH = (
    ("a lot of", "beaucoup de"), ("some", "SOME"), ("some", "SOME"), ("too much", "trop de"),
    ("enough", "assez de"), ("a little", "un peu de"), ("more", "plus de"),
    ("a glass of", "un verre de", "drink"), ("a cup of", "une tasse de", "drink"),
    ("a bottle of", "une bouteille de", "drink"), ("a kilo of", "un kilo de", "food"),
    ("a piece of", "un morceau de", "food"), ("a slice of", "une tranche de", "food"),
    ("half a kilo of", "un demi-kilo de", "food"), ("two cups of", "deux tasses de", "drink"),
    ("two glasses of", "deux verres de", "drink"), ("a litre of", "un litre de", "drink"),
    ("a liter of", "un litre de", "drink"), ("so much", "tant de"),
)  # fmt: skip


@dataclass
class Np:
    """A noun phrase with what other words agree with; person: 0 to 5, je to ils."""

    part: Part
    gender: Gender = "m"
    person: int = 2
    noun: Noun | None = None
    kind: str = "noun"
    impersonal: str = ""  # personne, rien: with ne and without pas
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


SUBJECTS = (
    ("I", "je", 0, "m", 30), ("you", "tu", 1, "m", 22), ("he", "il", 2, "m", 20),
    ("she", "elle", 2, "f", 20), ("we", "nous", 3, "m", 18),
    ("they", "ils", 5, "m", 16), ("it", "il", 2, "m", 5),
)  # fmt: skip
OBJECTS = {
    "me": ("me", "me", "moi"), "you": ("te", "te", "toi"), "him": ("le", "lui", "lui"),
    "her": ("la", "lui", "elle"), "it": ("le", "lui", "lui"), "us": ("nous", "nous", "nous"),
    "them": ("les", "leur", "eux"),
}  # fmt: skip


def pronoun_subject(world: World) -> Np:
    weights = [row[4] for row in SUBJECTS]
    said, heard, person, gender, _ = world.rng.choices(SUBJECTS, weights)[0]
    left = english(said)
    return Np(Part(left, french(heard, left)), "f" if gender == "f" else "m", person, None, "pron")


ACTING = "vehicle|device|event|building|watch|group|body|weather"
OBJECT_I = ("I", "moi")


def indefinite(world: World) -> Np:
    said, heard, how = world.rng.choice(
        (
            ("everyone", "tout le monde", ""), ("everybody", "tout le monde", ""),
            ("nobody", "personne", "neg"), ("no one", "personne", "neg"),
            ("someone", "quelqu'un", ""), ("somebody", "quelqu'un", ""),
        )
    )  # fmt: skip
    return Np(part(said, heard), "m", 2, None, "indefinite", how)


def strange_word(world: World) -> str:
    """A word that no list has: made up, or letters at random."""
    if world.chance(0.6):
        return world.made_up()
    length = world.rng.randint(2, 8)
    return "".join(world.rng.choice(string.ascii_lowercase) for _ in range(length))


def name(world: World) -> Np:
    if world.chance(0.2):
        said = strange_word(world).capitalize()
        return Np(part(said, said, content=True), "m", 2, None, "name")
    who = world.rng.choice(names())
    heard = "*" + who.name if who.name.startswith("H") else who.name
    words = english(who.name)
    right = [Word(heard, tuple(words), content=True)]
    return Np(Part(words, right), who.gender, 2, None, "name")


def object_pronoun(world: World, who: Np | None = None, *, person: bool) -> str:
    """me, him, it; not the one that the subject is."""
    choices = PERSONS if person else ("it", "it", "them")
    person_of = who.person if who else 2
    same = {0: ("me", "us"), 1: ("you",), 3: ("us", "me")}.get(person_of, ())
    return world.rng.choice([word for word in choices if word not in same])


PERSONS = ("me", "me", "you", "you", "him", "her", "us", "them")
