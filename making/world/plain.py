"""Sentences of ordinary English, and common words in simple frames, so that none is unknown."""

from making.world.lexicon import World, common
from making.world.scene import Scene, frames
from making.world.text import Text, Writer

BARE = (
    "{word} {word} {word} .",
    "the word {word} and the word {word} .",
    "{Word} is a word .",
    "{Word} {Word} : {word} .",
    "a book about {word} and {word} .",
    "{Word} {Word} was here .",
    "{word} {word}",
)


def write(world: World) -> Text:
    """One text: one to five sentences."""
    scene = Scene(world, Writer.drawn("plain", world))
    for _ in range(world.rng.randint(1, 5)):
        if world.chance(0.15):
            for part in world.rng.choice(BARE).split():
                word = world.rng.choice(common("common"))
                scene.writer.say(part.format(word=word, Word=word.capitalize()))
        else:
            scene.sentence(world.rng.choice(frames()))
    return scene.text()
