"""Windows of random words, as the tokenizer of the checkpoints has them."""

import random


def texts(windows: int, length: int) -> list[str]:
    """So many texts of so many words."""
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(900)}" for _ in range(length)) for _ in range(windows)]
