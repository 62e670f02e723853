"""Numbers as a person reads them."""

import pytest

from attnviz.draw.titles import probability


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.364, "0.364"),
        (1.0, "1.000"),
        (0.0005, "0.001"),  # which has a digit
        (0.00049, "4.9e-4"),
        (0.000031, "3.1e-5"),
        (1.3e-8, "1.3e-8"),
        (2e-100, "2.0e-100"),
        (0.0, "0.000"),
    ],
)
def test_a_small_probability_is_not_written_as_nothing(value: float, written: str) -> None:
    assert probability(value) == written
