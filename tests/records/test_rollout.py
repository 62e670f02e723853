"""Attention rollout, against the recursion of Abnar & Zuidema 2020 written out in float64."""

import numpy as np

from attnviz.records.apply import rollout
from attnviz.records.exhibit import HeadMap
from tests.factories import random_patterns


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
