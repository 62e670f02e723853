"""The trigram baseline: probabilities that sum to 1, and text it must find easy or hard."""

import itertools
import math

import numpy as np
import pytest

from attnviz.commands.train.own import _components, trigram_bits

VOCABULARY = 5


def text(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, VOCABULARY, n)


def test_each_of_the_four_models_is_its_relative_frequency() -> None:
    counted = np.array([0, 1, 2, 0, 1, 3, 0, 1, 2])
    (row,) = _components(counted, np.array([0, 1, 2]), VOCABULARY)
    np.testing.assert_allclose(row, [2 / 3, 2 / 3, 2 / 9, 1 / 5])


def test_probabilities_of_all_tokens_sum_to_one() -> None:
    counted = text(0, 300)
    for a, b in itertools.product(range(VOCABULARY), repeat=2):
        rows = [_components(counted, np.array([a, b, c]), VOCABULARY)[0] for c in range(VOCABULARY)]
        np.testing.assert_allclose(np.sum(rows, axis=0), 1, atol=1e-12)


def test_a_text_that_repeats_is_easy_and_one_without_order_is_not() -> None:
    period = np.tile([0, 1, 2, 3, 4], 200)
    assert trigram_bits(period, period[:100], VOCABULARY) < 1
    bits = trigram_bits(text(1, 20_000), text(2, 1_000), VOCABULARY)
    assert bits == pytest.approx(998 * math.log2(VOCABULARY), rel=0.01)
