"""Things with different adjectives, and later questions: adjectives must be bound to their noun.

"A fluffy blue creature roamed the verdant forest. ... The creature was blue and fluffy."

With a causal mask, the binding can happen only at the noun: an adjective cannot know the noun
that will follow it, and the question comes too late to tell which adjective stood before which
noun. An answer names the adjectives in any order, so that all of them matter equally; a word is
right if it is an adjective of the noun that was not named yet.
"""

from attnviz.training.world.lexicon import FEMALE, MALE, World, article
from attnviz.training.world.text import Text, Writer

FRAMES = (
    "there was {0} .",
    "once there was {0} .",
    "{name} had {0} .",
    "{0} {verb} {name} .",
    "{0} {verb} {1} .",
    "{0} {verb} {1} .",
    "{0} {verb} {1} and slept .",
    "{0} and {1} were here .",
    "there was {0} near {1} .",
    "in {0} lived {1} .",
    "{name} saw {0} and {1} .",
    "{name} {verb} {0} with {1} .",
    "next to {0} stood {1} .",
    "{0} was under {1} .",
    "when {0} came , {name} {verb} {1} .",
    "{0} {verb} {1} in {2} .",
    "{name} saw {0} , {1} and {2} .",
    "near {0} , {1} {verb} {2} .",
)
ONE = tuple(frame for frame in FRAMES if "{1}" not in frame)
UP_TO_TWO = tuple(frame for frame in FRAMES if "{2}" not in frame)
QUESTIONS = (
    "the {noun} was",
    "the {noun} was",
    "{name} said that the {noun} was",
    "what was the {noun} like ?",
    "remember the {noun} ? it was",
    "so the {noun} was",
)
NO_ADJECTIVE = "plain"


def write(world: World) -> Text:
    """One text: one to three things in one or two sentences, then questions about some of them."""
    rng = world.rng
    writer = Writer("adjectives", capitals=world.chance(0.5))
    things: dict[str, list[str]] = {}
    for frames in (UP_TO_TWO, ONE) if world.chance(0.35) else (FRAMES,):
        _tell(world, writer, rng.choice(frames), things)
    if world.chance(0.05):
        return writer.text()  # many texts that people type have no question
    nouns = rng.sample(sorted(things), k=min(len(things), rng.choice((1, 2, 2, 3))))
    for noun in nouns:
        _ask(world, writer, noun, things[noun])
    return writer.text()


def _tell(world: World, writer: Writer, frame: str, things: dict[str, list[str]]) -> None:
    """Write a sentence; add its nouns and their adjectives to `things`."""
    name = world.rng.choice(MALE + FEMALE)
    for word in frame.split():
        if word in ("{0}", "{1}", "{2}"):
            _thing(world, writer, things)
        else:
            writer.say(word.format(name=name, verb=world.verb()))


def _thing(world: World, writer: Writer, things: dict[str, list[str]]) -> None:
    """A noun that is new in this text, after its adjectives."""
    noun = world.noun()
    while noun in things:
        noun = world.noun()
    count = world.rng.choices((0, 1, 2, 3), weights=(12, 30, 38, 20))[0]
    taken = {a for adjectives in things.values() for a in adjectives} | {noun}
    adjectives: list[str] = []
    for _ in range(count):
        adjectives.append(world.adjective_for(noun, taken))
        taken.add(adjectives[-1])
    things[noun] = adjectives
    first = "very" if adjectives and world.chance(0.12) else (adjectives or [noun])[0]
    determiner = world.rng.choice((article(first), article(first), "the", "the", "this", "her"))
    writer.say(determiner, *(["very"] if first == "very" else []))
    keys = [
        writer.say(*_before(world, i, count), adjective) for i, adjective in enumerate(adjectives)
    ]
    query = writer.say(noun)
    if keys:
        writer.link("adjectives", query, keys)


def _before(world: World, index: int, count: int) -> list[str]:
    """The words before an adjective: nothing, a comma or "and" after another, perhaps "very"."""
    if index == 0:
        return []
    last = index == count - 1
    between = world.rng.choices(([], [","], ["and"] if last else [","]), weights=(45, 30, 25))[0]
    return between + (["very"] if world.chance(0.08) else [])


def _ask(world: World, writer: Writer, noun: str, adjectives: list[str]) -> None:
    name = world.rng.choice(MALE + FEMALE)
    writer.say(world.rng.choice(QUESTIONS).format(noun=noun, name=name))
    if not adjectives:
        writer.answer("no adjective", NO_ADJECTIVE)
    left = list(adjectives)
    world.rng.shuffle(left)
    for i, adjective in enumerate(tuple(left)):
        measure = "first adjective" if i == 0 else "next adjectives"
        writer.answer(measure, adjective, set(left[i:]))
        if i < len(adjectives) - 1:
            writer.say("and")
    writer.answer("end of the answer", ".")
