"""Differences of rows and of vectors, against formulas written out, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.commands.compare.record import divergence, mean_cosine, shares_of, similarities
from tests.factories import random_patterns


def kullback(p: np.ndarray, q: np.ndarray) -> float:
    """Σ p ln(p / q), the plain way."""
    return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0))


@given(seed=st.integers(0, 1000), k=st.integers(2, 4), n=st.integers(1, 9))
def test_the_divergence_is_the_mean_distance_to_the_mixture(seed: int, k: int, n: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(n), k)
    mixture = rows.mean(axis=0)
    expected = np.mean([kullback(row, mixture) for row in rows]) / np.log(k)
    assert float(divergence(list(rows))) == pytest.approx(expected, abs=1e-9)
    assert 0 <= float(divergence(list(rows))) <= 1
    swapped = float(divergence(list(rows[::-1])))
    assert swapped == pytest.approx(expected, abs=1e-9)


def test_the_same_rows_differ_by_0_and_disjoint_ones_by_1() -> None:
    a, b = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    assert float(divergence([a, a])) == 0
    assert float(divergence([a, b])) == pytest.approx(1)
    assert float(divergence([a, 3 * a])) == pytest.approx(0)  # rows are brought to 1
    assert float(divergence([a, b, np.array([0, 0, 0, 0.0])])) <= 1


@given(seed=st.integers(0, 100), n=st.integers(1, 8), data=st.data())
def test_shares_are_all_of_the_row_each_key_once(seed: int, n: int, data: st.DataObject) -> None:
    query = data.draw(st.integers(0, n - 1))
    row = random_patterns(1, n, seed=seed)[0, query]
    on_itself, first, previous, others = shares_of(row, query)
    assert on_itself + first + previous + others == pytest.approx(1, abs=1e-5)
    assert on_itself == pytest.approx(row[query])
    assert first == pytest.approx(row[0] if query else 0)
    assert previous == pytest.approx(row[query - 1] if query > 1 else 0)


def test_the_mean_cosine_is_over_all_pairs_of_each_layer() -> None:
    vectors = np.random.default_rng(0).normal(size=(3, 2, 5)).astype(np.float32)
    found = mean_cosine(list(vectors))
    for layer in range(2):
        a, b, c = vectors[:, layer].astype(float)
        pairs = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in ((a, b), (a, c), (b, c))]
        assert found[layer] == pytest.approx(np.mean(pairs))


def test_a_vector_of_zeros_has_no_cosine() -> None:
    one = np.array([[1, 2], [0, 0]], np.float32)
    assert np.isnan(mean_cosine([one, np.ones((2, 2), np.float32)])).tolist() == [False, True]


def test_rows_that_are_empty_in_either_pattern_say_nothing_of_heads() -> None:
    """A dropped sink leaves rows without weight: they are neither alike nor different."""
    ours = np.array([[[1, 0, 0], [0, 1, 0], [0.5, 0.25, 0.25]]], np.float32)
    theirs = ours.copy()
    theirs[0, 1] = 0
    assert similarities(ours, theirs)[0, 0] == similarities(theirs, ours)[0, 0] == 1
    assert np.isnan(similarities(ours, np.zeros_like(ours))[0, 0])


def test_a_head_is_most_like_itself() -> None:
    ours = random_patterns(3, 6, seed=1)
    alike = similarities(ours, ours[::-1].copy())
    assert alike.argmax(axis=1).tolist() == [2, 1, 0]
    np.testing.assert_allclose([alike[0, 2], alike[1, 1]], 1)
