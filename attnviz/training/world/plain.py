"""Common English words in simple sentences, also capitalised, so that none is unknown."""

from attnviz.training.world.lexicon import FEMALE, MALE, World, common
from attnviz.training.world.text import Text, Writer

FRAMES = (
    "the {noun} {verb} the {noun} .",
    "the {noun} of the {noun} {verb} .",
    "{name} {verb} the {noun} .",
    "{word} {word} {word} .",
    "the word {word} and the word {word} .",
    "{Word} is a word .",
    "{Word} {Word} : {word} .",
    "if the {noun} {verb} , the {noun} {verb} .",
    "a book about {word} and {word} .",
    "{Word} {Word} was here .",
)


def write(world: World) -> Text:
    """One text: one to four sentences, in which no word can be predicted."""
    writer = Writer("plain", capitals=world.chance(0.6))
    for _ in range(world.rng.randint(1, 4)):
        for part in world.rng.choice(FRAMES).split():
            writer.say(_filled(world, part))
    return writer.text()


def _filled(world: World, part: str) -> str:
    word = world.rng.choice(common("common"))
    return part.format(
        noun=world.noun(),
        verb=world.verb(),
        name=world.rng.choice(MALE + FEMALE),
        word=word,
        Word=word.capitalize(),
    )
