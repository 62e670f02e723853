"""Endless texts of the little world, a pure function of a seed."""

import random
from collections.abc import Iterator, Mapping

from attnviz.training.world import (
    adjectives,
    mystery,
    plain,
    pronouns,
    repetition,
    senses,
)
from attnviz.training.world.lexicon import World
from attnviz.training.world.text import Text, joined

KINDS = {
    "adjectives": adjectives.write,
    "pronouns": pronouns.write,
    "pairs": pronouns.write_pair,
    "mystery": mystery.write,
    "senses": senses.write,
    "repetition": repetition.write,
    "plain": plain.write,
}
SHARES: Mapping[str, int] = {
    # How often each kind is written, in texts. Short texts that depend on one thing alone
    # ("pairs") teach it much sooner than crowded ones.
    "adjectives": 36,
    "pronouns": 34,
    "pairs": 14,
    "mystery": 11,
    "senses": 22,
    "repetition": 8,
    "plain": 8,
}
JOINED_SHARE = 0.15


def texts(
    seed: int | str, kind: str | None = None, *, held_out: bool = False, repeats: bool = True
) -> Iterator[Text]:
    """Texts without end, of one kind, or of all kinds by their shares with some joined together.

    Held-out texts use only combinations of words that training texts never contain. Without
    `repeats`, no text is of the kind "repetition".
    """
    shares = {k: n for k, n in SHARES.items() if repeats or k != "repetition"}
    world = World(random.Random(f"{seed} {kind} {held_out}"), held_out)
    while True:
        if kind is not None:
            yield KINDS[kind](world)
        elif world.chance(JOINED_SHARE):
            yield joined([_any(world, shares) for _ in range(world.rng.choice((2, 3, 4)))])
        else:
            yield _any(world, shares)


def _any(world: World, shares: Mapping[str, int]) -> Text:
    kind = world.rng.choices(list(shares), weights=list(shares.values()))[0]
    return KINDS[kind](world)
