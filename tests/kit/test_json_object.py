"""The JSON object: documented names, exact numbers, any text."""

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.commands.show.outputs import OutputRequest
from attnviz.commands.show.rows import json_chunks
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Head
from tests.factories import make_capture, make_exhibit


def parsed(exhibit: Exhibit, line: int | None = None) -> dict[str, Any]:
    found = json.loads("".join(json_chunks(exhibit, OutputRequest(line=line))))
    assert isinstance(found, dict)
    return found


def test_with_a_line_number_the_object_is_one_line_and_says_the_number() -> None:
    text = "".join(json_chunks(make_exhibit(), OutputRequest(line=12)))
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    assert json.loads(text)["line"] == 12
    assert "line" not in parsed(make_exhibit())
    assert {**parsed(make_exhibit()), "line": 12} == json.loads(text)


def test_a_reduced_map_is_named_by_its_reduction() -> None:
    exhibit = make_exhibit(heads=[Head(0, 0), Head(0, 1)], reduced="max")
    assert parsed(exhibit)["heads"] == [
        {"layer": "max", "head": "max", "name": "max", "behaviours": [], "known_for": []}
    ]


def test_patterns_are_the_rows_and_columns_asked_for() -> None:
    exhibit = make_exhibit(heads=[Head(0, 0), Head(1, 1)], queries=[5, 3], keys=[0, 2, 3])
    found = parsed(exhibit)
    assert (found["queries"], found["keys"]) == ([5, 3], [0, 2, 3])
    expected = [m.weights[np.ix_([5, 3], [0, 2, 3])] for m in exhibit.maps]
    assert np.array_equal(np.array(found["patterns"], np.float32), np.stack(expected))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [0.1, 0.2, 0.7, 0.0]),
        ({"top": 1}, [None, None, 0.7, 0.0]),  # left out: null; masked: 0.0
        ({"least": 0.2}, [None, 0.2, 0.7, 0.0]),
        ({"top": 1, "least": 0.9}, [None, None, None, 0.0]),
    ],
)
def test_what_a_filter_leaves_out_is_null(
    filters: dict[str, Any], expected: list[float | None]
) -> None:
    pattern = np.zeros((4, 4), np.float32)
    pattern[2] = [0.1, 0.2, 0.7, 0.0]
    capture = make_capture("a b c d", patterns={Head(0, 0): pattern})
    found = parsed(make_exhibit(capture, queries=[2], **filters))
    assert found["patterns"] == [[expected]]
    assert (found["top"], found["min"]) == (filters.get("top"), filters.get("least", 0.0))


def test_nothing_is_written_that_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        parsed(make_exhibit(least=float("nan")))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float32_comes_back_the_same(weight: float) -> None:
    capture = make_capture("a", patterns={Head(0, 0): np.full((1, 1), weight, np.float32)})
    back = np.float32(parsed(make_exhibit(capture))["patterns"][0][0][0])
    assert struct.pack("<f", back) == struct.pack("<f", weight)


@given(
    st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5), st.sampled_from([None, 4])
)
def test_any_text_comes_back_and_nothing_of_it_reaches_the_terminal_raw(
    pieces: list[str], line: int | None
) -> None:
    exhibit = make_exhibit(make_capture(pieces))
    text = "".join(json_chunks(exhibit, OutputRequest(line=line)))
    assert text.replace("\n", "").isprintable()
    found = json.loads(text)
    assert found["text"] == "".join(pieces)
    assert [token["text"] for token in found["tokens"]] == pieces
