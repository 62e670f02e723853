"""The default-head rule: activities of patterns written by hand, and the highest score wins."""

import numpy as np
import pytest

from attnviz.analyses.named_head import activity, choose
from attnviz.data.card import NamedHead
from attnviz.data.head import Head

RESTING = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0]], np.float32)  # all on BOS
ACTIVE = np.array([[1, 0, 0], [1, 0, 0], [0.1, 0.8, 0.1]], np.float32)  # the last looks before it
HEADS = (Head(0, 1), Head(2, 0))


def test_a_head_that_rests_on_bos_or_itself_is_not_active() -> None:
    assert activity(RESTING, bos=True) == pytest.approx([0, 0, 0, 0])
    assert activity(np.eye(3, dtype=np.float32), bos=False) == pytest.approx([0, 0, 0, 0])


def test_activity_is_the_mean_the_maximum_the_top_three_and_the_token_before() -> None:
    assert activity(ACTIVE, bos=True) == pytest.approx([0.4, 0.8, 0.4, 0.4])


def test_a_text_of_bos_alone_has_no_activity() -> None:
    assert activity(np.ones((1, 1), np.float32), bos=True) == pytest.approx([0, 0, 0, 0])


def test_the_behaviour_with_the_highest_score_is_chosen() -> None:
    # weights: four numbers of the first head, four of the second, a constant
    first = NamedHead("first", HEADS[0], "acts first", fit=(0, 1, 0, 0, 0, 0, 0, 0, 0))
    second = NamedHead("second", HEADS[1], "acts second", fit=(0, 0, 0, 0, 0, 1, 0, 0, 0))
    acts_first = {HEADS[0]: ACTIVE, HEADS[1]: RESTING}
    acts_second = {HEADS[0]: RESTING, HEADS[1]: ACTIVE}
    assert choose(acts_first, (first, second), bos=True) is first
    assert choose(acts_second, (first, second), bos=True) is second


def test_a_card_without_a_rule_chooses_nothing() -> None:
    assert choose({HEADS[0]: ACTIVE}, (NamedHead("x", HEADS[0], "x"),), bos=True) is None
