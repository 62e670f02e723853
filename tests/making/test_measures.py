"""The measures, on patterns written by hand, and which heads a card names."""

import numpy as np
import pytest

from attnviz.records.heads import Head, NamedHead
from making.evaluate import TITLES, named_heads
from making.measures import induction_score, is_right, measure_link, previous_token_score
from making.world.text import Answer, TrueLink

POSITIONS = [[1], [2], [3], [4, 5]]  # tokens of: a, big, red, fox (two); 0 is BOS
LINK = TrueLink("adjectives", query=3, keys=frozenset({1, 2}))


def pattern(*row: float) -> np.ndarray:
    whole = np.eye(6, dtype=np.float32)
    whole[5] = row
    return whole


@pytest.mark.parametrize(
    ("row", "mass", "top", "all_top"),
    [
        ((0.0, 0.0, 0.5, 0.5, 0.0, 0.0), 1.0, True, True),  # all of it, on both
        ((0.5, 0.1, 0.2, 0.2, 0.0, 0.0), 0.4, True, True),  # BOS does not compete
        ((0.0, 0.0, 0.3, 0.3, 0.2, 0.2), 0.6, True, True),  # the query's own pieces neither
        ((0.0, 0.3, 0.2, 0.5, 0.0, 0.0), 0.7, True, False),  # one of the two is beaten
        ((0.0, 0.5, 0.3, 0.2, 0.0, 0.0), 0.5, False, False),  # a wrong word comes first
    ],
)
def test_a_link_is_scored_by_mass_strongest_key_and_whole_set(
    row: tuple[float, ...], mass: float, top: bool, all_top: bool
) -> None:
    score = measure_link(pattern(*row), LINK, POSITIONS)
    assert score.mass == pytest.approx(mass)
    assert (score.top, score.all_top) == (top, all_top)


@pytest.mark.parametrize(
    ("predicted", "right"),
    [
        ([0, 0, 0, 40, 41, 0], True),  # both pieces of the word
        ([0, 0, 0, 40, 99, 0], False),  # its second piece is wrong
        ([0, 0, 0, 77, 99, 0], True),  # another accepted word
        ([0, 0, 0, 88, 41, 0], False),  # a word that is not accepted
    ],
)
def test_an_answer_is_right_when_all_its_pieces_are_or_another_accepted_word_begins(
    predicted: list[int], right: bool
) -> None:
    answer = Answer("first adjective", 3, frozenset({"fox", "hen"}))
    pieces = [[1], [2], [3], [40, 41]]
    assert is_right(predicted, answer, POSITIONS, pieces, {40, 77}) is right


def test_the_induction_score_of_a_perfect_head_is_one() -> None:
    period = 3  # BOS a b c a b c: each token of the second copy looks behind the first
    perfect = np.zeros((7, 7), np.float32)
    for query in (4, 5, 6):
        perfect[query, query - period + 1] = 1
    assert induction_score(perfect, period) == 1
    assert induction_score(np.eye(7, dtype=np.float32), period) == 0


def test_the_previous_token_score_of_a_perfect_head_is_one() -> None:
    assert previous_token_score(np.eye(7, k=-1, dtype=np.float32)) == 1
    assert previous_token_score(np.eye(7, dtype=np.float32)) == 0


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
