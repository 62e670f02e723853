"""The record of each result: a public type, which its function names, and the documents list."""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnviz

TEXT, OTHER = "a red bird slept . the bird was", "a blue bird slept . the bird was"
LABELS = [{"text": "a fluffy blue creature", "links": [["creature", ["fluffy", "blue"]]]}]
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "AblationReport": (attnviz.ablate, (TEXT,), {"heads": "L3H2"}),
    "BeforeAfter": (attnviz.ablate, (TEXT,), {"heads": "L3H2", "together": True}),
    "CircuitReport": (attnviz.circuit, (TEXT, OTHER), {"heads": "L4H0"}),
    "CircuitSearch": (attnviz.circuit, (TEXT, OTHER), {"find": 1}),
    "Circuits": (attnviz.heads, (), {"circuits": True}),
    "HeadReport": (attnviz.heads, (TEXT,), {}),
    "LabelReport": (attnviz.heads, (), {"labels": LABELS}),
    "LossCurve": (attnviz.ablate, (TEXT,), {"heads": "L3H2", "together": True, "curve": True}),
    "ModelComparison": (attnviz.compare, (TEXT,), {"against": "builtin"}),
    "PatchReport": (attnviz.patch, (TEXT, OTHER), {}),
    "PatchedTogether": (attnviz.patch, (TEXT, OTHER), {"mlps": 1, "together": True}),
    "Prediction": (attnviz.predict, (TEXT,), {}),
    "PredictionMean": (attnviz.predict, ([TEXT, OTHER],), {"answer": "red"}),
    "Receivers": (attnviz.heads, ("the dog slept . " * 9,), {"receiver": True}),
    "StreamDifference": (
        attnviz.compare,
        (),
        {"files": ([TEXT], [OTHER]), "difference": True, "layers": 2},
    ),
    "TextComparison": (attnviz.compare, (TEXT, OTHER), {}),
    "TokenEffects": (attnviz.ablate, (TEXT,), {"heads": "L3H2", "rows": "token"}),
    "Why": (attnviz.why, (TEXT,), {"query": "was"}),
    "WhyMean": (attnviz.why, ([TEXT, OTHER],), {"query": "-1", "head": "L4H0"}),
    "Write": (attnviz.writes, (TEXT,), {"head": "L3H2", "query": "was"}),
}
RECORDS = {
    *(
        "Alignment",
        "AlignmentScores",
        "Atlas",
        "BoxReport",
        "Check",
        "Development",
        "HeadAtlas",
        "ResultsReport",
        "Retrieval",
        "Scatter",
    ),
    *("Square", *CALLS),
}


def records_of(function: Callable[..., Any]) -> set[str]:
    """The types of records that a function's annotation names."""
    returned = inspect.signature(function).return_annotation
    every = typing.get_args(returned) if typing.get_origin(returned) is not attnviz.Result else ()
    return {typing.get_args(each)[0].__name__ for each in (every or (returned,))}


@pytest.mark.parametrize("name", CALLS)
def test_a_record_has_the_public_type_that_its_function_names(name: str) -> None:
    function, given, options = CALLS[name]
    record = function(*given, **options).record
    assert type(record) is getattr(attnviz, name)
    assert name in records_of(function)
    assert records_of(function) <= RECORDS


def test_records_are_frozen_and_documented() -> None:
    listed = set(re.findall(r"`(\w+)`", Path("docs/python.md").read_text()))
    for name in RECORDS:
        record = getattr(attnviz, name)
        assert record.__dataclass_params__.frozen
        assert record.__doc__
        assert not record.__doc__.startswith(f"{name}(")  # as dataclasses write it
        assert dataclasses.fields(record)
    assert listed >= RECORDS
