"""Transforms of a record: norms, keys left out, chosen heads, the rollout of Abnar & Zuidema."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import UsageError
from attnviz.records.apply import NOTHING, exhibit_of, rollout, weighted, without_keys
from attnviz.records.capture import RESTS, VALUE_NORMS, Capture
from attnviz.records.exhibit import Choice, HeadMap, links_of
from attnviz.records.heads import Head
from attnviz.records.transforms import KeysDropped, NormBased, Transforms
from tests.factories import make_capture, random_patterns

DROP = Transforms(drop_sink=True)


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
    (old,) = random_patterns(1, n, seed=seed, causal=False)
    new = without_keys(HeadMap(0, 0, weights=old), keys)
    assert not new.weights[:, keys].any()
    left = np.delete(old, keys, axis=1)
    sums = left.sum(axis=1)
    np.testing.assert_allclose(new.left, sums, atol=1e-5)
    scale = np.where(sums < 0.2, 1, sums)[:, None]  # of little left nothing is made more
    expected = np.where(sums[:, None] > NOTHING, left / scale, 0)
    np.testing.assert_allclose(np.delete(new.weights, keys, axis=1), expected, atol=1e-4)


def test_a_row_of_which_little_is_left_stays_what_it_is() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.5, 0.2, 0.3]], np.float32)
    found = without_keys(HeadMap(0, 0, weights=weights), [0])
    np.testing.assert_allclose(found.weights, [[0, 0, 0], [0, 0.1, 0], [0, 0.4, 0.6]], atol=1e-6)
    np.testing.assert_allclose(found.left, [0, 0.1, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.shares, [[0, 0, 0], [0, 1, 0], [0, 0.4, 0.6]], atol=1e-6)
    assert weights[1, 0] == np.float32(0.9)  # what was given stays


def resting() -> Capture:
    """Two heads, of which the second rests on its third key."""
    first = np.tril(np.ones((9, 9), np.float32))
    second = np.eye(9, dtype=np.float32)
    second[3:] = np.array([0.05, 0.05, 0.9, 0, 0, 0, 0, 0, 0], np.float32)
    heads = {Head(0, 0): first / first.sum(axis=1, keepdims=True), Head(0, 1): second}
    return make_capture("a b c d e f g h i", heads_per_layer=(2,), patterns=heads)


def test_every_head_is_without_the_keys_that_it_rests_on() -> None:
    capture = resting()
    exhibit = exhibit_of(capture, Choice(capture.heads), DROP)
    assert [each.dropped for each in exhibit.maps] == [(0,), (0, 2)]
    assert exhibit.dropped == (0,)
    assert exhibit.keys == tuple(range(1, 9))
    keys = links_of(exhibit, exhibit.maps[1]).key
    assert 2 not in keys
    (dropped,) = exhibit.capture.transforms
    assert isinstance(dropped, KeysDropped)
    assert (dropped.keys, dropped.own, dropped.by_columns) == (("a",), 1, True)
    alone = exhibit_of(capture.only((Head(0, 1),)), Choice((Head(0, 1),)), DROP)
    assert alone.dropped == (0, 2)
    assert alone.keys == (1, *range(3, 9))


def test_a_mean_over_heads_is_that_of_rows_before_they_were_rescaled() -> None:
    capture = resting()
    reduced = exhibit_of(
        capture, Choice(capture.heads), Transforms(drop_sink=True, reduce="mean", over="heads")
    )
    (found,) = reduced.maps
    assert isinstance(found, HeadMap)
    first, second = (capture.weights(Head(0, head)).astype(np.float64) for head in (0, 1))
    first[:, 0], second[:, [0, 2]] = 0, 0
    mean = (first + second) / 2
    left = mean.sum(axis=1)
    expected = mean / np.where(left < 0.2, 1, left)[:, None]
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    np.testing.assert_allclose(found.left, left, atol=1e-6)


def test_rests_that_a_capture_holds_are_dropped_and_those_of_merged_tokens() -> None:
    capture = resting()
    held = np.zeros((1, 2, 9), np.float32)
    held[0, 0, 4] = 1
    capture = replace(capture, extras={RESTS: held, VALUE_NORMS: np.ones_like(held)})
    exhibit = exhibit_of(capture, Choice(capture.heads), DROP)
    assert [each.dropped for each in exhibit.maps] == [(0, 4), (0,)]
    (dropped,) = exhibit.capture.transforms
    assert isinstance(dropped, KeysDropped)
    assert not dropped.by_columns


def test_the_weights_before_rows_were_rescaled_are_those_of_the_model() -> None:
    capture = resting()
    exhibit = exhibit_of(capture, Choice(capture.heads), DROP)
    for head_map in exhibit.maps:
        links = links_of(exhibit, head_map)
        there = capture.weights(Head(0, head_map.head or 0))[links.query, links.key]
        np.testing.assert_allclose(head_map.before(links), there, atol=1e-6)


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
