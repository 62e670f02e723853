"""Random words that are repeated in the same order, so that each word follows as it did before.

Olsson et al. 2022, "In-context Learning and Induction Heads": one head attends to the token
after the earlier copy of the query's, another to the token just before the query.
"""

from making.world.lexicon import World, common
from making.world.text import Text, Writer

MARKS = (",", ".", ":", "?", "(", ")")


def write(world: World) -> Text:
    """One text: three to forty random words, some made up or capitalised, two or three times."""
    rng = world.rng
    writer = Writer("repetition", capitals=False)
    block = [_word(world) for _ in range(rng.choice((3, 5, 8, 12, 18, 26, 40)))]
    writer.say(*block)
    for _ in range(rng.choice((1, 1, 2))):
        writer.say(block[0])
        for word in block[1:]:
            writer.answer("repetition", word)
    return writer.text()


def _word(world: World) -> str:
    draw = world.rng.random()
    if draw < 0.05:
        return world.rng.choice(MARKS)
    if draw < 0.12:
        return world.made_up()
    word = world.rng.choice(common("common"))
    return word.capitalize() if world.chance(0.2) else word
