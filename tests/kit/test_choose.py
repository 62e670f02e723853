"""Which head is shown when nobody chose one."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.kit.choose import default_head, most_telling_head
from attnviz.records.capture import VALUE_NORMS
from attnviz.records.heads import Head, NamedHead
from attnviz.records.rests import FindMovingHead, find_rests, rows_of
from tests.factories import make_capture, random_patterns


def _looking_at(size: int, key: int) -> np.ndarray:
    """Every query after the key looks at it; the others at the first token."""
    pattern = np.zeros((size, size), np.float32)
    pattern[:, 0] = 1
    pattern[key + 1 :] = np.eye(size, dtype=np.float32)[key]
    return pattern


def _moving(size: int) -> np.ndarray:
    """The last query looks at the third token, all others at the first one."""
    pattern = _looking_at(size, 0)
    pattern[-1] = np.eye(size, dtype=np.float32)[2]
    return pattern


TEXT_OF_8 = "a fluffy blue creature roamed the verdant forest"


def _how_moving(pattern: np.ndarray, lengths: np.ndarray | None = None) -> float:
    """The measure of the head of one pattern (n, n)."""
    capture = make_capture(TEXT_OF_8, patterns={Head(0, 0): pattern})
    if lengths is not None:
        norms = np.ones((2, 3, 8), np.float32)
        norms[0, 0] = lengths
        capture = replace(capture, extras={VALUE_NORMS: norms})
    find = FindMovingHead(capture, find_rests(capture))
    find(rows_of(capture, Head(0, 0)))
    return find.best[Head(0, 0)][0]


def test_a_head_that_moves_something_to_one_query_moves_more_than_one_that_rests() -> None:
    stays, before = (np.eye(8, k=k, dtype=np.float32) for k in (0, -1))
    before[0, 0] = 1
    second_sink = _looking_at(8, 2)
    once = _looking_at(8, 0)
    once[7] = np.eye(8, dtype=np.float32)[2]
    for resting in (_looking_at(8, 0), stays, before, second_sink):
        assert _how_moving(resting) <= 0
    assert _how_moving(once) == pytest.approx(1 - 1 / 5)  # less the mean of five later queries


def test_a_key_moves_as_much_as_its_values_are_long() -> None:
    (pattern,) = random_patterns(1, 8, seed=3)
    lengths = np.linspace(0.5, 2, 8).astype(np.float32)
    share = pattern * lengths / (pattern * lengths).sum(axis=1, keepdims=True)
    mean = np.array([share[k + 1 :, k].mean() if k < 7 else 0 for k in range(8)])
    weight = np.array([pattern[k + 1 :, k].mean() if k < 7 else 0 for k in range(8)])
    rest = (weight >= 0.1) & (mean < weight / 2)
    rest |= np.array([k < 5 and (pattern[k + 1 :, k] > 0.3).mean() > 0.5 for k in range(8)])
    best = max(
        share[q, k] - mean[k]
        for q in range(8)
        for k in range(1, q - 2)
        if not rest[k] and pattern[q, 1:][~rest[1:]].sum() >= 0.2
    )
    assert _how_moving(pattern, lengths) == pytest.approx(best, abs=1e-6)


def test_without_a_card_the_most_telling_head_is_shown() -> None:
    capture = make_capture(patterns={Head(1, 0): _moving(8)})
    picked = most_telling_head(capture)
    assert (picked.heads, picked.why) == ((Head(1, 0),), "moves")
    assert picked.start == capture.query_tokens[-1].start
    assert default_head(capture).heads == (Head(1, 0),)


def test_a_text_too_short_to_tell_shows_the_first_head() -> None:
    assert default_head(make_capture("a b")).heads == (Head(0, 0),)


ADJECTIVES = NamedHead("adjectives", Head(0, 0), "nouns attend to their adjectives")
PRONOUNS = NamedHead("pronouns", Head(0, 1), "pronouns attend to what they stand for")
TEXT = "a blue cat slept and it purred"


def _links(size: int, *links: tuple[int, int]) -> np.ndarray:
    """Rows that rest on the first token, but for those of these links."""
    pattern = _looking_at(size, size - 1)
    pattern[-1] = pattern[0]
    for query, key in links:
        pattern[query] = np.eye(size, dtype=np.float32)[key]
    return pattern


@pytest.mark.parametrize(
    ("adjectives", "pronouns", "expected"),
    [
        ((), (), "none"),
        (((2, 1),), (), "adjectives"),  # cat → blue
        ((), ((5, 2),), "pronouns"),  # it → cat
        (((2, 1),), ((5, 2),), "pronouns"),  # the more specific one
        (((3, 1),), (), "none"),  # a verb that attends to an adjective shows nothing
        (((2, 0),), ((5, 3),), "none"),  # a pronoun that attends to a verb neither
    ],
)
def test_a_named_head_is_shown_where_its_behaviour_is(
    adjectives: tuple[tuple[int, int], ...], pronouns: tuple[tuple[int, int], ...], expected: str
) -> None:
    patterns = {Head(0, 0): _links(7, *adjectives), Head(0, 1): _links(7, *pronouns)}
    capture = make_capture(TEXT, patterns=patterns, named_heads=(ADJECTIVES, PRONOUNS))
    choice = default_head(capture)
    assert (choice.named.behaviour if choice.named else "none") == expected
    assert (choice.why == "acts") == (expected != "none")


def test_a_head_acts_only_with_enough_of_the_row() -> None:
    pattern = _links(7)
    pattern[2] = (0.65, 0.35, 0, 0, 0, 0, 0)  # cat → a, blue
    capture = make_capture(TEXT, patterns={Head(0, 0): pattern}, named_heads=(ADJECTIVES,))
    assert default_head(capture).named is None
    pattern[2] = (0.45, 0.55, 0, 0, 0, 0, 0)
    capture = make_capture(TEXT, patterns={Head(0, 0): pattern}, named_heads=(ADJECTIVES,))
    assert default_head(capture).named == ADJECTIVES


def test_the_only_named_head_of_another_behaviour_is_shown_as_the_card_says() -> None:
    alignment = NamedHead("alignment", Head(1, 1), "each word attends to its translation")
    choice = default_head(make_capture(named_heads=(alignment,)))
    assert (choice.heads, choice.why, choice.named) == ((Head(1, 1),), "card", alignment)


def test_a_capture_that_lacks_a_named_head_falls_back_to_the_most_telling_head() -> None:
    capture = make_capture(named_heads=(ADJECTIVES,), patterns={Head(1, 0): _moving(8)})
    choice = default_head(capture.only((Head(1, 0), Head(1, 1))))
    assert (choice.heads, choice.why) == ((Head(1, 0),), "moves")
