"""Which head is shown when nobody chose one."""

import numpy as np
import pytest

from attnviz.analyses.default_head import default_head
from attnviz.analyses.generic_head import how_telling, most_telling_head
from attnviz.data.card import NamedHead
from attnviz.data.head import Head
from tests.factories import make_capture, random_patterns


def _looking_at(size: int, key: int) -> np.ndarray:
    """Every query after the key looks at it; the others at the first token."""
    pattern = np.zeros((size, size), np.float32)
    pattern[:, 0] = 1
    pattern[key + 1 :] = np.eye(size, dtype=np.float32)[key]
    return pattern


def test_a_head_that_looks_far_away_tells_more_than_one_that_rests() -> None:
    size = 8
    rests, stays, before = (np.eye(size, k=k, dtype=np.float32) for k in (0, 0, -1))
    rests = _looking_at(size, 0)
    before[0, 0] = 1
    assert how_telling(rests) == how_telling(stays) == how_telling(before) == 0
    assert how_telling(_looking_at(size, 2)) > 0.6


def test_how_telling_a_head_is_follows_its_formula() -> None:
    (pattern,) = random_patterns(1, 9, seed=3)
    best = [max(pattern[i, 1 : i - 1], default=0.0) for i in range(3, 9)]
    assert how_telling(pattern) == pytest.approx(np.mean(best), abs=1e-6)


def test_without_a_card_the_most_telling_head_is_shown() -> None:
    capture = make_capture(patterns={Head(1, 0): _looking_at(8, 2)})
    assert most_telling_head(capture) == Head(1, 0)
    assert default_head(capture).heads == (Head(1, 0),)


def test_a_text_too_short_to_tell_shows_the_first_head() -> None:
    assert default_head(make_capture("a b")).heads == (Head(0, 0),)


def test_a_card_whose_rule_fits_decides() -> None:
    """Two named heads: each is picked where it is the active one."""
    heads = (
        NamedHead("one", Head(0, 0), "one looks", (1.0, 0, 0, 0, 0, 0, 0, 0, 0.0)),
        NamedHead("two", Head(1, 1), "two looks", (0, 0, 0, 0, 1.0, 0, 0, 0, 0.0)),
    )
    still, active = _looking_at(8, 0), _looking_at(8, 2)
    for first, second, expected in ((active, still, Head(0, 0)), (still, active, Head(1, 1))):
        patterns = {Head(0, 0): first, Head(1, 1): second}
        capture = make_capture(patterns=patterns, named_heads=heads, bos=True, text="a b c d e f g")
        choice = default_head(capture)
        assert choice.heads == (expected,)
        assert choice.named in heads


def test_a_capture_that_lacks_a_named_head_falls_back_to_the_most_telling_head() -> None:
    heads = (NamedHead("one", Head(0, 0), "one looks", (1.0, 0, 0, 0, 0.0)),)
    capture = make_capture(named_heads=heads, patterns={Head(1, 0): _looking_at(8, 2)})
    choice = default_head(capture.only((Head(1, 0), Head(1, 1))))
    assert (choice.heads, choice.why) == ((Head(1, 0),), "generic")
