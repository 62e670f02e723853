"""The record of a run."""

import numpy as np

from attnviz.records.heads import Head
from tests.factories import make_capture


def test_the_heads_asked_for_stay_and_a_layer_with_all_of_them_is_not_copied() -> None:
    capture = make_capture(heads_per_layer=(2, 2, 2))
    some = capture.only((Head(0, 0), Head(0, 1), Head(2, 1)))
    assert some.heads == (Head(0, 0), Head(0, 1), Head(2, 1))
    assert some.layers[0].weights is capture.layers[0].weights
    np.testing.assert_array_equal(some.weights(Head(2, 1)), capture.weights(Head(2, 1)))
