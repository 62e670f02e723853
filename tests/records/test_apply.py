"""Transforms of a record: norms, keys left out, chosen heads, the rollout of Abnar & Zuidema."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import UsageError
from attnviz.records.apply import NOTHING, rollout, weighted, without_keys
from attnviz.records.capture import VALUE_NORMS
from attnviz.records.exhibit import HeadMap
from attnviz.records.heads import Head
from attnviz.records.transforms import NormBased
from tests.factories import make_capture, random_patterns


def test_each_weight_is_multiplied_by_the_norm_of_its_key() -> None:
    capture = make_capture("one two three")
    norms = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    made = weighted(replace(capture, extras={VALUE_NORMS: norms}))
    for head in capture.heads:
        expected = capture.weights(head) * norms[head]
        np.testing.assert_allclose(made.weights(head), expected)
    assert made.transforms == (NormBased(),)
    assert weighted(replace(capture.only((Head(1, 1),)), extras={VALUE_NORMS: norms})).heads == (
        Head(1, 1),
    )


def test_a_capture_without_norms_says_how_to_record_them() -> None:
    with pytest.raises(UsageError, match="again with weighted"):
        weighted(make_capture("one two"))


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


def maps_of(layers: int, heads: int, n: int, *, causal: bool = True) -> list[HeadMap]:
    return [
        HeadMap(layer, head, weights=weights)
        for layer in range(layers)
        for head, weights in enumerate(random_patterns(heads, n, seed=layer, causal=causal))
    ]


def test_it_is_the_recursion_of_the_paper() -> None:
    maps, n = maps_of(3, 2, 5), 5
    expected = np.eye(n)
    for layer, found in enumerate(rollout(maps)):
        here = [m.weights.astype(np.float64) for m in maps if m.layer == layer]
        mixed = 0.5 * sum(here) / len(here) + 0.5 * np.eye(n)
        expected = np.array(
            [
                [sum(mixed[i, k] * expected[k, j] for k in range(n)) for j in range(n)]
                for i in range(n)
            ]
        )
        np.testing.assert_allclose(found.weights, expected, atol=1e-6)
        assert (found.layer, found.head, found.label) == (layer, None, f"L{layer} rollout")


def test_rows_sum_to_1_and_the_future_stays_unseen() -> None:
    for found in rollout(maps_of(4, 3, 8)):
        np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-5)
        assert not np.triu(found.weights, 1).any()


def test_tokens_that_look_only_at_themselves_stay_themselves() -> None:
    eye = np.eye(4, dtype=np.float32)
    for found in rollout([HeadMap(0, 0, weights=eye), HeadMap(1, 0, weights=eye)]):
        assert found.weights.tolist() == eye.tolist()


def test_the_heads_asked_for_stay_and_a_layer_with_all_of_them_is_not_copied() -> None:
    capture = make_capture(heads_per_layer=(2, 2, 2))
    some = capture.only((Head(0, 0), Head(0, 1), Head(2, 1)))
    assert some.heads == (Head(0, 0), Head(0, 1), Head(2, 1))
    assert some.layers[0].weights is capture.layers[0].weights
    np.testing.assert_array_equal(some.weights(Head(2, 1)), capture.weights(Head(2, 1)))
