"""Windows of random words, as the tokenizer of the checkpoints has them; or documents."""

import random
from itertools import islice

from making.world import texts as of_world

WORLD = "world"
"""In the place of a length: documents of the built-in model's world."""
LONGEST = 255
"""The most tokens of a window of such a document."""


def documents(count: int, length: str) -> list[str]:
    """So many texts of so many words, or of the built-in model's world."""
    if length != WORLD:
        return texts(count, int(length))
    return [" ".join(text.words) for text in islice(of_world.texts("scan"), count)]


def texts(windows: int, length: int) -> list[str]:
    """So many texts of so many words."""
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(900)}" for _ in range(length)) for _ in range(windows)]
