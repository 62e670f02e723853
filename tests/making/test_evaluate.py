"""Which heads a card names, and for what."""

import numpy as np

from attnviz.records.heads import Head, NamedHead
from making.evaluate import TITLES, named_heads

HEADS = dict(zip(TITLES, (Head(0, n) for n in range(len(TITLES))), strict=True))


def test_a_head_is_named_for_what_it_is_chosen_for_then_for_the_other_that_it_shows_most() -> None:
    scores = {kind: np.zeros((1, len(TITLES))) for kind in TITLES}
    at = HEADS["pronouns"]
    chosen = tuple(NamedHead(kind, HEADS[kind], TITLES[kind]) for kind in TITLES)
    assert named_heads(HEADS, scores) == chosen
    scores["adjectives"][at], scores["mystery"][at] = 0.6, 0.7
    assert named_heads(HEADS, scores) == (*chosen, NamedHead("mystery", at, TITLES["mystery"]))


def test_a_head_that_is_chosen_for_two_behaviours_is_named_for_no_third() -> None:
    heads = {**HEADS, "mystery": HEADS["pronouns"]}
    scores = {kind: np.full((1, len(TITLES)), 0.9) for kind in TITLES}
    times = [named.head for named in named_heads(heads, scores)]
    assert times.count(HEADS["pronouns"]) == 2
    assert times.count(HEADS["senses"]) == 2
