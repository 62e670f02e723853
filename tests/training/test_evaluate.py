"""Which heads a card names, and what their titles say."""

import numpy as np

from attnviz.data.head import Head
from attnviz.training.evaluate import TITLES, title

HEADS = dict(zip(TITLES, (Head(0, n) for n in range(len(TITLES))), strict=True))


def test_a_title_names_what_a_head_is_chosen_for_and_the_other_that_it_shows_most() -> None:
    scores = {kind: np.zeros((1, len(TITLES))) for kind in TITLES}
    at = HEADS["pronouns"]
    assert title("pronouns", HEADS, scores) == TITLES["pronouns"]
    scores["adjectives"][at], scores["mystery"][at] = 0.6, 0.7
    assert title("pronouns", HEADS, scores) == f"{TITLES['pronouns']}; also: {TITLES['mystery']}"


def test_the_titles_of_a_head_that_is_named_for_two_behaviours_say_no_more() -> None:
    heads = {**HEADS, "mystery": HEADS["pronouns"]}
    scores = {kind: np.full((1, len(TITLES)), 0.9) for kind in TITLES}
    assert title("pronouns", heads, scores) == TITLES["pronouns"]
    assert title("mystery", heads, scores) == TITLES["mystery"]
    assert title("senses", heads, scores) != TITLES["senses"]
