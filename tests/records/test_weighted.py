"""Norm-based attention is the weight times the length of what its key adds."""

from dataclasses import replace

import numpy as np
import pytest

from attnviz.errors import UsageError
from attnviz.records.apply import weighted
from attnviz.records.capture import VALUE_NORMS
from attnviz.records.heads import Head
from attnviz.records.transforms import NormBased
from tests.factories import make_capture


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
