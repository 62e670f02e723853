"""Endless texts of the little world, a pure function of a seed."""

import random
from collections.abc import Iterator, Mapping

from making.world import (
    adjectives,
    cases,
    mystery,
    plain,
    pronouns,
    reasons,
    repetition,
    senses,
    stories,
)
from making.world.lexicon import World
from making.world.text import Text, joined

KINDS = {
    "described": adjectives.write_described,
    "adjectives": adjectives.write,
    "pronouns": pronouns.write,
    "pairs": pronouns.write_pair,
    "reasons": reasons.write,
    "stories": stories.write,
    "mystery": mystery.write,
    "cases": cases.write,
    "senses": senses.write,
    "repetition": repetition.write,
    "plain": plain.write,
}
SHARES: Mapping[str, int] = {
    "described": 30,
    "adjectives": 50,
    "pronouns": 48,
    "pairs": 16,
    "reasons": 75,
    "stories": 40,
    "mystery": 45,
    "cases": 70,
    "senses": 30,
    "repetition": 8,
    "plain": 8,
}
"""How often each kind is written, in texts."""
FIRST_SHARES: Mapping[str, int] = {
    "described": 30,
    "adjectives": 8,
    "pronouns": 8,
    "pairs": 24,
    "stories": 16,
    "mystery": 14,
    "cases": 8,
    "senses": 26,
    "plain": 3,
}
"""The same at the beginning: short texts that depend on one thing alone teach it much sooner."""
FIRST_PART = 0.2
REPEATS_FROM = 0.45
"""Repetition teaches a head to attend to the previous token; if that is learned first, it gives
each noun its last adjective, and no other head learns to find all adjectives."""
JOINED_SHARE = 0.15


def texts(
    seed: int | str, kind: str | None = None, *, held_out: bool = False, done: float = 1.0
) -> Iterator[Text]:
    """Texts without end, of one kind, or of all kinds by their shares with some joined together.

    Held-out texts use only combinations of words that training texts never contain. `done` is the
    share of the training that is done, which decides the shares.
    """
    shares = shares_at(done)
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


def shares_at(done: float) -> Mapping[str, int]:
    """How often each kind is written when a share of the training is done."""
    if done < FIRST_PART:
        return FIRST_SHARES
    return {k: n for k, n in SHARES.items() if done >= REPEATS_FROM or k != "repetition"}
