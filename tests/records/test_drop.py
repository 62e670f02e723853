"""Keys left out: no weight on them, rows that sum to 1 again, and the share that was there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.records.apply import NOTHING, without_keys
from attnviz.records.exhibit import HeadMap
from tests.factories import random_patterns


@given(n=st.integers(2, 12), seed=st.integers(0, 100), data=st.data())
def test_what_is_left_keeps_its_proportions(n: int, seed: int, data: st.DataObject) -> None:
    keys = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n - 1)))
    weights = random_patterns(2, n, seed=seed, causal=False)
    maps = [HeadMap(0, head, weights=weights[head]) for head in (0, 1)]
    found = without_keys(maps, keys, range(n))
    assert not found.empty
    removed = weights[:, :, keys].sum(axis=2, dtype=np.float64)
    assert found.share == pytest.approx(removed.mean(), abs=1e-5)
    for old, new in zip(weights, found.maps, strict=True):
        assert not new.weights[:, keys].any()
        left = np.delete(old, keys, axis=1)
        sums = left.sum(axis=1, keepdims=True)
        some = sums > NOTHING
        expected = np.divide(left, sums, out=np.zeros_like(left), where=some)
        np.testing.assert_allclose(new.weights.sum(axis=1), some[:, 0], atol=1e-5)
        np.testing.assert_allclose(np.delete(new.weights, keys, axis=1), expected, atol=1e-4)


def test_a_query_that_looked_at_nothing_else_is_named_and_counts() -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]], np.float32)
    found = without_keys([HeadMap(0, 0, weights=weights)], [0], [0, 1])
    assert found.empty == (0,)
    assert found.share == pytest.approx(0.625)
    assert found.maps[0].weights.tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_the_share_is_that_of_the_queries_shown() -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]], np.float32)
    maps = [HeadMap(0, 0, weights=weights)]
    assert without_keys(maps, [1], [1]).share == pytest.approx(0.75)
    assert without_keys(maps, [1], [0, 1]).share == pytest.approx(0.375)


def test_the_maps_that_were_given_stay_as_they_are() -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]], np.float32)
    without_keys([HeadMap(0, 0, weights=weights)], [0], [0, 1])
    assert weights.tolist() == [[1.0, 0.0], [0.25, 0.75]]
