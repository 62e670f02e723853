"""The words of the world: names, nouns by class, verbs by frame, and what each of them does.

Every person, animal and thing has a habit, which decides the words after it: "the nurse sang",
"we heard her singing", "her song". A noun's own habit is a fixed function of the word. An adjective
before the noun has a habit as well, which then takes precedence: "the hungry nurse ate". This is
what makes a model look from a noun to its adjectives, and from a pronoun to what it stands for.
"""

import random
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WORDS = Path(__file__).parents[1] / "words"
VOWELS = "aeiou"
RESERVED_SHARE = 10
TEMPERAMENTS = 16
"""How many kinds of words there are as to their habits: enough that no habit can be guessed, few
enough that each word's is soon learned."""
ONSETS = "b bl br d dr f fl g gl gr k kl kr l m n p pl r s sk sl sn t tr v w z".split()
RIMES = """
a e i o u ab ack ag am an ap ark ax ay el em en er ick id ig im in ip isk ob ock og om on oop or
ox ub uck ug um un up ust uz
""".split()
ADJECTIVES = """
fluffy blue verdant red green yellow white black brown grey purple orange pink golden silver tiny
small big large huge enormous giant little tall short long wide narrow thick thin round square
flat deep shallow high low steep old young new ancient modern fresh rotten ripe raw soft hard
smooth rough sharp dull bright dark pale shiny dusty dirty clean muddy wet dry damp icy frozen
warm cool hot sticky slippery hairy furry woolly spotted striped curly straight crooked bent
broken cracked hollow solid heavy light strong weak quick fast slow lazy sleepy brave shy proud
gentle fierce wild tame friendly noisy quiet silent loud happy sad angry hungry thirsty clever
wise silly funny strange odd rare common famous secret hidden lost empty full rich poor cheap
expensive beautiful pretty ugly elegant plump skinny lonely lovely cute nice kind cruel mean evil
magical mysterious wooden metal plastic paper leather rusty dusky misty foggy sunny rainy windy
stormy snowy cloudy sweet sour bitter salty spicy tasty juicy crispy rocky sandy leafy grassy
mossy thorny creamy delicious stale crumpled torn faded polished scratched locked abandoned
crowded haunted stubborn nervous anxious curious cheerful gloomy jealous honest polite rude greedy
generous patient tired bored excited worried scared grumpy clumsy elderly retired local foreign
royal national annual daily final recent current previous early late distant nearby remote central
northern southern eastern western urban rural wonderful terrible horrible awful amazing brilliant
perfect ordinary typical simple complex complicated difficult easy important useful useless
dangerous safe careful careless free private public popular successful serious gentle calm violent
sudden rapid gradual massive delicate fragile sturdy velvet crimson scarlet turquoise beige ginger
blond bald bearded muscular chubby slender graceful handsome charming adorable barking sleeping
smiling crying laughing running burning broken-down homemade handmade second-hand well-known old-
fashioned grilled roasted fried boiled baked smoked chopped sliced melted leftover organic fresh
ripe unripe overgrown deserted
""".split()
NATURAL = dict(
    pair.split(":")
    for pair in """
    hungry:ate thirsty:drank sleepy:slept sad:wept happy:smiled cold:shivered scared:hid
    sick:coughed bored:sighed tired:rested proud:boasted busy:worked curious:listened late:hurried
    guilty:confessed rich:paid strong:lifted clumsy:stumbled funny:laughed brave:fought
    shy:blushed nervous:trembled wounded:bled angry:shouted baker:baked sailor:sailed singer:sang
    painter:painted dancer:danced teacher:taught hunter:hunted farmer:ploughed thief:stole
    swimmer:swam driver:drove pilot:flew cook:cooked chef:cooked runner:ran reader:read
    priest:prayed builder:built rider:rode barber:shaved drummer:drummed climber:climbed
    gardener:dug fisherman:fished tailor:sewed cleaner:swept speaker:spoke student:studied
    writer:wrote author:wrote dog:barked hound:barked puppy:barked terrier:barked spaniel:barked
    cat:purred kitten:purred wolf:howled horse:galloped pony:trotted cow:grazed sheep:grazed
    goat:chewed rabbit:hopped frog:croaked toad:croaked snake:hissed hen:pecked chicken:pecked
    bird:flapped eagle:swooped mole:burrowed bell:rang phone:rang telephone:rang wheel:spun
    ball:bounced boat:floated ship:sank glass:broke cup:broke vase:broke candle:burned lamp:glowed
    rocket:exploded bomb:exploded pipe:leaked shirt:tore engine:stopped
    """.split()
)
IRREGULAR = {
    base: (past, participle)
    for base, past, participle in (
        entry.split(":")
        for entry in """
        meet:met:met see:saw:seen know:knew:known teach:taught:taught hear:heard:heard
        forget:forgot:forgotten find:found:found beat:beat:beaten catch:caught:caught lead:led:led
        drive:drove:driven feed:fed:fed wake:woke:woken forgive:forgave:forgiven draw:drew:drawn
        lose:lost:lost leave:left:left buy:bought:bought sell:sold:sold break:broke:broken
        steal:stole:stolen throw:threw:thrown hide:hid:hidden build:built:built choose:chose:chosen
        keep:kept:kept bring:brought:brought hold:held:held cut:cut:cut tear:tore:torn
        bend:bent:bent
        take:took:taken eat:ate:eaten make:made:made sweep:swept:swept
        """.split()
    )
}
PLURALS = {
    "man": "men", "woman": "women", "child": "children", "mouse": "mice", "goose": "geese",
    "fish": "fish", "sheep": "sheep", "deer": "deer", "knife": "knives", "shelf": "shelves",
    "wolf": "wolves", "calf": "calves", "wife": "wives", "thief": "thieves", "leaf": "leaves",
    "scarf": "scarves", "policeman": "policemen", "fireman": "firemen", "ox": "oxen",
    "policewoman": "policewomen", "postman": "postmen", "fisherman": "fishermen",
}  # fmt: skip


def reserved(*words: str) -> bool:
    """Whether these words never occur together in training: one combination in ten.

    It is a fixed function of the words (CRC-32), so that every seed reserves the same ones.
    """
    return zlib.crc32(" ".join(words).lower().encode()) % RESERVED_SHARE == 0


def article(word: str) -> str:
    return "an" if word[0].lower() in VOWELS else "a"


@cache
def common(name: str) -> tuple[str, ...]:
    """A list of common English words from `words/`, the most frequent first."""
    return tuple(line for line in read(name) if line)


def read(name: str) -> list[str]:
    """The lines of a list in `words/`, without comments."""
    text = (WORDS / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


@cache
def groups(name: str) -> Mapping[str, tuple[str, ...]]:
    """The lists of a file whose lines are `name: words`; lines of the same name are joined."""
    found: dict[str, dict[str, None]] = {}
    for line in read(name):
        group, _, words = line.partition(":")
        found.setdefault(group, {}).update(dict.fromkeys(words.split()))
    return {group: tuple(words) for group, words in found.items()}


@cache
def entries(name: str) -> Mapping[str, tuple[str, ...]]:
    """The entries of a file whose lines are `name: one entry`."""
    found: dict[str, list[str]] = {}
    for line in read(name):
        group, _, entry = line.partition(":")
        found.setdefault(group, []).append(entry.strip())
    return {group: tuple(all_entries) for group, all_entries in found.items()}


@dataclass(frozen=True)
class Habit:
    """What someone or something does, in the forms that follow it or its pronoun."""

    past: str
    base: str
    ing: str
    part: str
    gift: str


HABIT_CLASS = {
    "man": "person",
    "woman": "person",
    "group": "person",
    "female": "person",
    "male": "person",
    "stuff": "thing",
}


@cache
def habits(kind: str) -> tuple[Habit, ...]:
    return tuple(Habit(*entry.split()) for entry in entries("habits")[HABIT_CLASS.get(kind, kind)])


@cache
def habit(word: str, kind: str) -> Habit:
    """The habit of a noun, name or adjective, among those of a class of nouns.

    It is the natural one for a few words ("the hungry dog ate"), else one by the word's
    temperament, which is the same for every class.
    """
    choices = habits(kind)
    natural = [h for h in choices if h.past == NATURAL.get(word)]
    temperament = zlib.crc32(word.lower().encode()) % TEMPERAMENTS
    return natural[0] if natural else choices[temperament % len(choices)]


def plural(noun: str) -> str:
    if noun in PLURALS:
        return PLURALS[noun]
    if re.search(r"(s|x|z|ch|sh)$", noun):
        return noun + "es"
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + "s"


@cache
def plurals() -> frozenset[str]:
    """The plurals of the nouns of all classes."""
    return frozenset(plural(noun) for nouns in groups("classes").values() for noun in nouns)


@cache
def verb_form(base: str, form: str) -> str:
    """A form of a verb: "b" base, "s" third person, "d" past, "n" participle, "g" -ing."""
    stem = base + base[-1] if _doubles(base) else base
    if form == "s":
        return plural(base)
    if form == "g":
        return (base[:-1] if re.search(r"[^eoy]e$", base) else stem) + "ing"
    if form in "dn":
        past = re.sub(r"([^aeiou])y$", r"\1i", stem)
        regular = past + ("d" if past.endswith("e") else "ed")
        return IRREGULAR.get(base, (regular, regular))["dn".index(form)]
    return base


def _doubles(base: str) -> bool:
    if base == "unwrap":
        return True
    one = len(re.findall(r"[aeiouy]+", base)) == 1
    return one and bool(re.search(r"(^|[^aeiou])[aeiou][bdgklmnprt]$", base)) and base[-2:] != "rk"


@dataclass(frozen=True)
class World:
    """Draws words; with `held_out`, only combinations that training never sees.

    `invents`: whether a translation may have words that no list has.
    """

    rng: random.Random
    held_out: bool = False
    invents: bool = True

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self) -> tuple[str, str]:
        """A first name, and its pronoun; the first names of a list come more often."""
        kind, pronoun = self.rng.choice((("female", "she"), ("male", "he")))
        if self.chance(0.05):
            return self.made_up().capitalize(), pronoun
        if self.chance(0.1):
            return self.rng.choice(groups("rare")["name"]), pronoun
        names = groups("names")[kind]
        return names[int(len(names) * self.rng.random() ** 1.5)], pronoun

    def noun_of(self, kind: str) -> str:
        draw = self.rng.random()
        for share, name in ((0.2, "rare"), (0.4, "more")):
            if draw < share and kind in groups(name):
                return self.rng.choice(groups(name)[kind])
        return self.rng.choice(groups("classes")[kind])

    def noun(self) -> str:
        """A noun of any kind, in part made up, so that no role needs a known word."""
        draw = self.rng.random()
        if draw < 0.6:
            return self.noun_of(self.rng.choice(("animal", "thing", "person", "place", "thing")))
        if draw < 0.9:
            return self.rng.choice(common("nouns"))
        return self.made_up()

    def adjective(self) -> str:
        draw = self.rng.random()
        if draw < 0.5:
            return self.rng.choice(ADJECTIVES)
        if draw < 0.75:
            return self.rng.choice(common("adjectives"))
        if draw < 0.85:
            return self.rng.choice(groups("rare")["adjective"])
        if draw < 0.95:  # "the rusting ship", "a painted door"
            frame = self.rng.choice(("pp", "pt", "pt", "pf"))
            return self.verb(frame, self.rng.choice("gn"))
        return self.made_up()

    def adjective_for(self, noun: str, taken: set[str]) -> str:
        """An adjective for this noun; the pair is reserved in held-out texts, and only there."""
        while True:
            adjective = self.adjective()
            if adjective not in taken and reserved(adjective, noun) == self.held_out:
                return adjective

    def verb(self, frame: str, form: str) -> str:
        return verb_form(self.rng.choice(groups("frames")[frame]), form)

    def made_up(self) -> str:
        """A made-up word of two or three syllables, such as "glimbor"."""
        rng = self.rng
        syllables = (rng.choice(ONSETS) + rng.choice(RIMES) for _ in range(rng.choice((2, 2, 3))))
        return "".join(syllables)
