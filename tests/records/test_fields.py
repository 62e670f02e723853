"""Rows, columns, JSON and JSON Schema are made of one declaration of fields."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from attnviz.records.rows import ABSENT, Field, Fields, at, dict_of, fields_at, keyed, list_of


@dataclass(frozen=True)
class Leaf:
    name: str
    weight: float | None
    leaves: "tuple[Leaf, ...]" = ()


LEAF: Fields[Leaf] = Fields(
    "Leaf",
    "A leaf of a tree.",
    (
        Field("name", str, "What it is called."),
        Field("weight", float | None),
        Field("size", int, "", lambda leaf: len(leaf.name)),
        Field("leaves", list_of(lambda: LEAF)),
        Field("by_name", dict_of(list[int]), "", lambda leaf: {leaf.name: (1, 2)}),
        Field(
            "heavy",
            bool,
            "",
            lambda leaf: True if (leaf.weight or 0) > 1 else ABSENT,
            optional=True,
        ),
    ),
)
TREE = Leaf("oak", 2.0, (Leaf("ash", None),))


def schema() -> Draft202012Validator:
    definitions: dict[str, Any] = {}
    LEAF.schema(definitions)
    whole = {"$defs": {**definitions, "Leaf": LEAF.schema(definitions)}, "$ref": "#/$defs/Leaf"}
    return Draft202012Validator(whole)


def test_a_row_holds_nested_objects_and_leaves_out_what_is_absent() -> None:
    row = LEAF.row(TREE)
    assert list(row) == ["name", "weight", "size", "leaves", "by_name", "heavy"]
    assert row["by_name"] == {"oak": [1, 2]}
    assert row["leaves"] == [
        {"name": "ash", "weight": None, "size": 3, "leaves": [], "by_name": {"ash": [1, 2]}}
    ]


def test_a_row_is_as_its_schema_declares() -> None:
    row = LEAF.row(TREE)
    schema().validate(row)
    every: list[dict[str, Any]] = [{"size": "3"}, {"name": None}, {"more": 1}, {"leaves": [{}]}]
    for wrong in every:
        with pytest.raises(ValidationError):
            schema().validate({**row, **wrong})


def test_a_field_of_a_part_is_the_same_of_the_whole() -> None:
    whole = Fields[tuple[Leaf, int]]("Whole", "", LEAF.within(lambda pair: pair[0]))
    assert whole.row((TREE, 1)) == LEAF.row(TREE)


def test_a_path_reads_attributes_and_items_and_nothing_behind_a_none() -> None:
    assert at("leaves.0.name")(TREE) == "ash"
    assert at("leaves.0.weight.real")(TREE) is None
    assert [at("leaves", ABSENT)(leaf) for leaf in TREE.leaves] == [ABSENT]
    (name,) = fields_at("leaves.0", Field("name", str))
    assert Fields[Leaf]("First", "", (name,)).row(TREE) == {"name": "ash"}


def test_a_mapping_leaves_out_what_is_absent() -> None:
    found = Fields[dict[str, int]]("Row", "", keyed(Field("a", int), Field("b", int)))
    assert found.row({"a": 1}) == {"a": 1}


def test_columns_have_the_types_of_their_fields() -> None:
    columns = LEAF.columns([LEAF.row(Leaf("ash", None)), LEAF.row(Leaf("elm", 0.5))])
    assert columns["size"].dtype == np.int64
    assert np.isnan(columns["weight"][0])
    assert columns["name"].tolist() == ["ash", "elm"]
    assert LEAF.columns([])["weight"].dtype == np.float64


def test_a_whole_number_that_may_be_missing_is_a_column_of_floats() -> None:
    counted = Fields[int | None]("Counted", "", (Field("count", int | None, "", lambda n: n),))
    columns = counted.columns([counted.row(3), counted.row(None)])
    assert columns["count"][0] == 3
    assert np.isnan(columns["count"][1])
