"""The JSON object: documented names, exact numbers, any text."""

import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.commands.show.outputs import OutputRequest
from attnviz.commands.show.rows import json_chunks
from attnviz.records.capture import Capture, TextLoss
from attnviz.records.exhibit import Exhibit, HeadMap
from attnviz.records.heads import Finding, FoundLink, Head, NamedHead, Tendency
from tests.factories import make_capture, make_exhibit, make_tokens


def parsed(exhibit: Exhibit, line: int | None = None) -> dict[str, Any]:
    found = json.loads("".join(json_chunks(exhibit, OutputRequest(line=line))))
    assert isinstance(found, dict)
    return found


def test_the_object_has_the_documented_names_in_order() -> None:
    found = parsed(make_exhibit())
    assert " ".join(found) == (
        "schema command model versions made text bos left_out kind causal sinks transforms tokens "
        "about notes finding loss heads queries keys top min patterns"
    )
    assert found["schema"] == "attnviz/3"
    assert found["model"]["heads_per_layer"] == [2, 2]


def test_with_a_line_number_the_object_is_one_line_and_says_the_number() -> None:
    text = "".join(json_chunks(make_exhibit(), OutputRequest(line=12)))
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    assert json.loads(text)["line"] == 12
    assert "line" not in parsed(make_exhibit())
    assert {**parsed(make_exhibit()), "line": 12} == json.loads(text)


def test_tokens_carry_their_exact_text_and_the_slice_it_is() -> None:
    found = parsed(make_exhibit(make_capture("a  b\n[red]", bos=True)))
    slices = [found["text"][token["start"] : token["end"]] for token in found["tokens"]]
    assert slices == [token["text"] for token in found["tokens"]] == ["", "a", "  b", "\n[red]"]
    assert [token["label"] for token in found["tokens"]] == ["BOS", "a", "b", "\\n[red]"]
    assert [token["special"] for token in found["tokens"]] == [True, False, False, False]


def test_cross_attention_has_two_lists_of_tokens() -> None:
    source, keys = make_tokens("le chat")
    _, queries = make_tokens("the cat sat")
    model = make_capture().model
    weights = np.full((3, 2), 0.5, np.float32)
    capture = Capture(source, queries, keys, (), model, bos=False, kind="cross", causal=False)
    exhibit = Exhibit(capture, (HeadMap(0, 0, weights=weights),), queries=(0, 2), keys=(1,))
    found = parsed(exhibit)
    assert "tokens" not in found
    assert [token["text"] for token in found["query_tokens"]] == ["the", " cat", " sat"]
    assert [token["text"] for token in found["key_tokens"]] == ["le", " chat"]
    assert np.shape(found["patterns"]) == (1, 2, 1)


def test_a_head_says_for_which_behaviours_the_card_names_it() -> None:
    named = (
        NamedHead("adjectives", Head(0, 1), "nouns attend to their adjectives"),
        NamedHead("pronouns", Head(1, 0), "pronouns attend to their names"),
        NamedHead("previous", Head(0, 1), "the token before"),
    )
    exhibit = make_exhibit(make_capture(named_heads=named), heads=[Head(0, 1), Head(1, 1)])
    assert parsed(exhibit)["heads"] == [
        {
            "layer": 0,
            "head": 1,
            "name": "L0H1",
            "behaviours": ["adjectives", "previous"],
            "known_for": ["nouns attend to their adjectives", "the token before"],
        },
        {"layer": 1, "head": 1, "name": "L1H1", "behaviours": [], "known_for": []},
    ]


def test_a_finding_is_written_in_fields() -> None:
    links = (FoundLink(4, 3, 0.75),)
    found = parsed(replace(make_exhibit(), finding=Finding(links, "adjectives")))["finding"]
    link = {"query": 4, "key": 3, "weight": 0.75}
    assert found == {"behaviour": "adjectives", "links": [link], "tendency": None}
    most = Finding(tendency=Tendency("one key", 5, 7, 0))
    found = parsed(replace(make_exhibit(), finding=most))["finding"]
    assert found["tendency"] == {"kind": "one key", "rows": 5, "of": 7, "key": 0}
    assert found["links"] == []


def test_the_loss_says_whether_the_text_is_strange() -> None:
    capture = replace(make_capture("a b"), loss=TextLoss(26.0, 3, 1.5))
    assert parsed(make_exhibit(capture))["loss"] == {
        "nats": 26.0,
        "characters": 3,
        "limit": 1.5,
        "nats_per_character": 2.0,
        "strange": True,
    }
    assert parsed(make_exhibit())["loss"] is None


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


def test_a_number_that_json_does_not_have_is_null() -> None:
    pattern = np.array([[-np.inf]], np.float32)
    found = parsed(make_exhibit(make_capture("a", patterns={Head(0, 0): pattern})))
    assert found["patterns"] == [[[None]]]


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
