"""Which head is shown when nobody chose one."""

import numpy as np
import pytest

from attnviz.kit.choose import default_head, most_telling_head
from attnviz.kit.telling import FindTellingHead
from attnviz.records.capture import PatternBlock
from attnviz.records.heads import Head, NamedHead
from tests.factories import make_capture, random_patterns


def _looking_at(size: int, key: int) -> np.ndarray:
    """Every query after the key looks at it; the others at the first token."""
    pattern = np.zeros((size, size), np.float32)
    pattern[:, 0] = 1
    pattern[key + 1 :] = np.eye(size, dtype=np.float32)[key]
    return pattern


def _how_telling(pattern: np.ndarray) -> float:
    """The measure of the head of one pattern (n, n)."""
    find = FindTellingHead(causal=True)
    find(PatternBlock(0, (0,), np.arange(len(pattern)), pattern[None]))
    return find.sums[Head(0, 0)]


def test_a_head_that_looks_far_away_tells_more_than_one_that_rests() -> None:
    size = 8
    rests, stays, before = (np.eye(size, k=k, dtype=np.float32) for k in (0, 0, -1))
    rests = _looking_at(size, 0)
    before[0, 0] = 1
    assert _how_telling(rests) == _how_telling(stays) == _how_telling(before) == 0
    assert _how_telling(_looking_at(size, 2)) > 3


def test_how_telling_a_head_is_follows_its_formula() -> None:
    (pattern,) = random_patterns(1, 9, seed=3)
    best = [max(pattern[i, 1 : i - 1], default=0.0) for i in range(3, 9)]
    assert _how_telling(pattern) == pytest.approx(np.sum(best), abs=1e-6)


def test_without_a_card_the_most_telling_head_is_shown() -> None:
    capture = make_capture(patterns={Head(1, 0): _looking_at(8, 2)})
    assert most_telling_head(capture) == Head(1, 0)
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
        ((), (), "generic"),
        (((2, 1),), (), "adjectives"),  # cat → blue
        ((), ((5, 2),), "pronouns"),  # it → cat
        (((2, 1),), ((5, 2),), "pronouns"),  # the more specific one
        (((3, 1),), (), "generic"),  # a verb that attends to an adjective shows nothing
        (((2, 0),), ((5, 3),), "generic"),  # a pronoun that attends to a verb neither
    ],
)
def test_a_named_head_is_shown_where_its_behaviour_is(
    adjectives: tuple[tuple[int, int], ...], pronouns: tuple[tuple[int, int], ...], expected: str
) -> None:
    patterns = {Head(0, 0): _links(7, *adjectives), Head(0, 1): _links(7, *pronouns)}
    capture = make_capture(TEXT, patterns=patterns, named_heads=(ADJECTIVES, PRONOUNS))
    choice = default_head(capture)
    assert (choice.named.behaviour if choice.named else choice.why) == expected
    assert (choice.why == "acts") == (expected != "generic")


def test_a_head_acts_only_with_enough_of_the_row() -> None:
    pattern = _links(7)
    pattern[2] = (0.65, 0.35, 0, 0, 0, 0, 0)  # cat → a, blue
    capture = make_capture(TEXT, patterns={Head(0, 0): pattern}, named_heads=(ADJECTIVES,))
    assert default_head(capture).why == "generic"
    pattern[2] = (0.45, 0.55, 0, 0, 0, 0, 0)
    capture = make_capture(TEXT, patterns={Head(0, 0): pattern}, named_heads=(ADJECTIVES,))
    assert default_head(capture).named == ADJECTIVES


def test_the_only_named_head_of_another_behaviour_is_shown_as_the_card_says() -> None:
    alignment = NamedHead("alignment", Head(1, 1), "each word attends to its translation")
    choice = default_head(make_capture(named_heads=(alignment,)))
    assert (choice.heads, choice.why, choice.named) == ((Head(1, 1),), "card", alignment)


def test_a_capture_that_lacks_a_named_head_falls_back_to_the_most_telling_head() -> None:
    capture = make_capture(named_heads=(ADJECTIVES,), patterns={Head(1, 0): _looking_at(8, 2)})
    choice = default_head(capture.only((Head(1, 0), Head(1, 1))))
    assert (choice.heads, choice.why) == ((Head(1, 0),), "generic")
