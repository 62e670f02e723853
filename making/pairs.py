"""Pairs of held-out texts that differ in one colour, and ask for it: `sample_texts/colors.jsonl`.

python -m making.pairs > sample_texts/colors.jsonl

Nouns and adjectives come from the world that the built-in model learns, in combinations that it was
never trained on.
"""

import itertools
import json
import random
from collections.abc import Iterator

from making.world.text import Text
from making.world.texts import texts

COLORS = "black blue brown golden green grey orange pink purple red silver white yellow".split()
PAIRS, LONGEST = 200, 24


def pairs() -> Iterator[dict[str, str]]:
    """A text with its colour as the answer, and the same text with another one, without end."""
    draw = random.Random(0)
    for text in texts("pairs", "adjectives", held_out=True):
        asked = _asked(text)
        if asked is not None:
            words, color = asked
            other = draw.choice([each for each in COLORS if each != color])
            source = [other if word == color else word for word in words]
            yield {
                "text": " ".join(words),
                "answer": color,
                "versus": other,
                "source": " ".join(source),
            }


def _asked(text: Text) -> tuple[list[str], str] | None:
    """The words up to a noun's only adjective, where that is a colour; None where none is."""
    for answer in text.answers:
        words = list(text.words[: answer.word])
        (color, *others) = answer.accepted
        if answer.measure != "first adjective" or others or color not in COLORS:
            continue
        if [word for word in words if word in COLORS] == [color] and len(words) <= LONGEST:
            return words, color
    return None


def main() -> None:
    """Print the pairs."""
    for pair in itertools.islice(pairs(), PAIRS):
        print(json.dumps(pair))


if __name__ == "__main__":
    main()
