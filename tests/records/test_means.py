"""The mean pattern of several texts, position by position, with its standard errors."""

from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import InputError, UsageError

TEXTS = ["a blue bird slept .", "a red fox slept .", "a green bird sang ."]


def test_a_mean_pattern_and_its_errors_are_those_of_the_single_patterns() -> None:
    found = attnviz.capture(TEXTS)
    each = np.stack([attnviz.capture(text).pattern(3, 2) for text in TEXTS]).astype(np.float64)
    assert found.pattern(3, 2) == pytest.approx(each.mean(axis=0), abs=1e-6)
    assert found.errors is not None
    errors = each.std(axis=0, ddof=1) / 3**0.5
    assert found.errors.pattern(3, 2) == pytest.approx(errors, abs=1e-6)
    assert found.pattern(3, 2).sum(axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    assert attnviz.capture(TEXTS[0]).errors is None


def test_a_position_is_named_by_the_tokens_there() -> None:
    labels = [token.label for token in attnviz.capture(TEXTS).tokens]
    assert labels == ["BOS", "a", "blue|red|…", "bird|fox", "slept|sang", "."]


def test_every_form_says_that_it_is_a_mean(tmp_path: Path) -> None:
    found = attnviz.capture(TEXTS)
    assert found.errors is not None
    assert "mean over 3 texts" in str(found.show(heads="L3H2"))
    assert "standard errors of the mean over 3 texts" in str(found.errors.show(heads="L3H2"))
    assert found.errors.show(heads="L3H2", top=1).to_columns().keys() >= {"error"}
    found.figure(heads="L3H2")
    found.errors.save(tmp_path / "errors.npz")
    again = attnviz.load(tmp_path / "errors.npz")
    assert (again.pattern(3, 2) == found.errors.pattern(3, 2)).all()
    assert "standard errors" in str(again.show(heads="L3H2"))
    with pytest.raises(UsageError, match="a page shows weights, but this capture holds errors"):
        again.page()


def test_texts_that_do_not_correspond_have_no_mean() -> None:
    with pytest.raises(InputError, match="4 and 5 tokens"):
        attnviz.capture(["a blue bird slept", "a bird slept"])
    with pytest.raises(InputError, match="several texts"):
        attnviz.capture(["a blue bird"])
    with pytest.raises(UsageError, match="weighted"):
        attnviz.capture(TEXTS, weighted=True)
