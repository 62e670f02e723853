"""Logits to candidates, probabilities and ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.records.predict import KeepNextTokens, LogitRows, log_softmax


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30))
def test_probabilities_sum_to_1_whatever_the_logits(logits: list[float]) -> None:
    values = np.array(logits, np.float32)
    found = np.exp(log_softmax(values))
    assert found.sum() == pytest.approx(1)
    exact = np.exp(values.astype(float)) / np.exp(values.astype(float)).sum()
    np.testing.assert_allclose(found, exact, atol=1e-9)


def test_candidates_come_likeliest_first_and_the_true_token_has_its_rank() -> None:
    keep = KeepNextTokens(ids=[7, 2], top=3, label=str)
    logits = np.array([[0.0, 5.0, 2.0, 5.0, 1.0]], np.float32)
    keep(LogitRows(None, np.array([0]), logits))
    keep(LogitRows(4, np.array([1]), logits))
    first, last = keep.next_tokens
    assert [candidate.id for candidate in first.candidates] == [1, 3, 2]
    assert first.followed is not None
    assert (first.followed.id, first.rank) == (2, 3)
    assert first.followed.probability == first.candidates[2].probability
    assert (last.layer, last.followed, last.rank) == (4, None, None)


def test_more_candidates_than_tokens_are_all_tokens() -> None:
    keep = KeepNextTokens(ids=[0], top=10, label=str)
    keep(LogitRows(None, np.array([0]), np.zeros((1, 3), np.float32)))
    assert [candidate.id for candidate in keep.next_tokens[0].candidates] == [0, 1, 2]
