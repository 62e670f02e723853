"""Types of values that rows of several commands have."""

from math import isnan
from typing import Annotated, TypeAlias, TypedDict

from attnviz.data.head import Head

LayerNumber: TypeAlias = Annotated[int, "The layer, counted from 0."]
HeadNumber: TypeAlias = Annotated[int, "The head's number in its layer, counted from 0."]
LineNumber: TypeAlias = Annotated[int, "The number of the input line; 1 for a single text."]
LineOrMean: TypeAlias = Annotated[
    int | None, "The number of the input line; 1 for a single text; null: the mean over all lines."
]
ModelName: TypeAlias = Annotated[str, "The name that the model was loaded by."]
Error: TypeAlias = Annotated[float | None, "Standard error; null where there is none."]
Exact: TypeAlias = Annotated[str, "The token's own text with its leading space; empty: none."]


class HeadName(TypedDict):
    """A head among others."""

    layer: LayerNumber
    head: HeadNumber


def head_name(head: Head) -> HeadName:
    """A head as rows name it."""
    return {"layer": head.layer, "head": head.head}


def measured(value: float | None) -> float | None:
    """A number, or None where nothing could be measured."""
    return None if value is None or isnan(value) else value
