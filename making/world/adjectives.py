"""Things with different adjectives, and later questions: adjectives must be bound to their noun.

"A fluffy blue creature crossed the verdant forest. ... The creature was blue and fluffy."

With a causal mask, the binding can happen only at the noun: an adjective cannot know the noun
that will follow it, and the question comes too late to tell which adjective stood before which
noun. An answer names the adjectives in any order, so that all of them matter equally; a word is
right if it is an adjective of the noun that was not named yet.
"""

from making.world.lexicon import World, plurals
from making.world.scene import MANY, Scene, frames
from making.world.text import Text, Writer

QUESTIONS = (
    "the {noun} {was}",
    "the {noun} {was}",
    "{name} said that the {noun} {was}",
    "what {was} the {noun} like ?",
    "remember the {noun} ? {it} {was}",
    "so the {noun} {was}",
)
NO_ADJECTIVE = "plain"


DESCRIBED = (
    "{A!v} .", "{A!v} .", "{P!v} .", "{P!v} .", "{T!v} .", "{T!v} .", "{F!v} .", "{N!v} .",
    "{L!v} .", "{G!v} .", "{Q!v} .", "{B!v} .", "{X!v} .", "{P} saw {A!g} .", "{P} heard {T!g} .",
    "{P} saw {P!g} .", "we saw {T!g} .", "I saw {A!g} .", "I heard {P!g} .", "{P} saw {N!g} .",
    "there was {T!g} .", "there was {A!g} in {L} .", "{A!v} and {T!v} .", "{P!v} and {A!v} .",
)  # fmt: skip
FEWER = (30, 40, 22, 8)


def write_described(world: World) -> Text:
    """The shortest form: somebody or something, and what it does."""
    scene = Scene(world, Writer.drawn("described", world), FEWER)
    scene.sentence(world.rng.choice(DESCRIBED))
    return scene.text()


def write(world: World) -> Text:
    """One text: one or two sentences, then perhaps questions about some of the things."""
    rng = world.rng
    scene = Scene(world, Writer.drawn("adjectives", world), MANY)
    for _ in range(rng.choice((1, 1, 1, 2))):
        scene.sentence(rng.choice(frames()))
    if world.chance(0.5):
        nouns = rng.sample(sorted(scene.things), k=min(len(scene.things), rng.choice((1, 2, 2, 3))))
        for noun in nouns:
            _ask(world, scene.writer, noun, scene.things[noun])
    return scene.text()


def _ask(world: World, writer: Writer, noun: str, adjectives: list[str]) -> None:
    (name, _), was = world.name(), "were" if noun in plurals() else "was"
    it = "they" if was == "were" else "it"
    writer.say(world.rng.choice(QUESTIONS).format(noun=noun, name=name, was=was, it=it))
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
