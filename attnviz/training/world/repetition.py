"""Random words that come again in the same order: what follows is what followed before.

Olsson et al. 2022, "In-context Learning and Induction Heads": a head that looks at the
token behind the earlier copy of this one, and one that looks at the token before it.
"""

from attnviz.training.world.lexicon import World, common
from attnviz.training.world.text import Text, Writer

MARKS = (",", ".", ":", "?", "(", ")")


def write(world: World) -> Text:
    """One text: three to forty random words, two or three times; made-up ones and capitals too."""
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
