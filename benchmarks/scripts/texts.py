"""Windows of random words, as the tokenizer of the checkpoints has them; or documents."""

import random
from itertools import chain, islice

from making.world import texts as of_world

WORLD, JOINED = "world", "joined"
"""In the place of a length: documents of the built-in model's world, or long ones made of them."""
JOINED_WORDS = 512
CONTEXT = 256
"""The most tokens of a window of such a document, with its beginning token."""


def is_of_world(length: str) -> bool:
    """Are these documents of the built-in model's world?"""
    return length in (WORLD, JOINED)


def documents(count: int, length: str) -> list[str]:
    """So many texts of so many words, or of the built-in model's world."""
    if not is_of_world(length):
        return texts(count, int(length))
    world = (text.words for text in of_world.texts("scan"))
    if length == JOINED:
        words = chain.from_iterable(world)
        return [" ".join(islice(words, JOINED_WORDS)) for _ in range(count)]
    return [" ".join(some) for some in islice(world, count)]


def texts(windows: int, length: int) -> list[str]:
    """So many texts of so many words."""
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(900)}" for _ in range(length)) for _ in range(windows)]
