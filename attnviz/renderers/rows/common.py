"""Types of values and objects that several commands write."""

from math import isnan
from typing import Annotated, Any, TypeAlias, TypedDict

from attnviz.data.capture import MadeBy
from attnviz.data.head import Head

Versions: TypeAlias = Annotated[dict[str, str], "The libraries that computed it, by name."]
Arrays: TypeAlias = Annotated[
    dict[str, Any], "Every array as nested lists, by name; null stands for −∞."
]
Unknown: TypeAlias = Annotated[list[str], "Words that the built-in translator was not trained on."]
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


class ModelObject(TypedDict):
    """A model, and how it was run."""

    name: str
    architecture: str
    revision: str | None
    engine: Annotated[MadeBy, "What ran it; none where it was not run."]
    dtype: str
    parameters: Annotated[int, "0 where nobody counted them."]
    heads_per_layer: list[int]
    fingerprint: Annotated[
        str | None, "Of samples of the weights; behind a - of all of them, if they were verified."
    ]


class RunObject(TypedDict):
    """A run of a model over a text."""

    text: str
    target: Annotated[str, "What an encoder-decoder wrote, or was to write."]
    bos: Annotated[bool, "Whether a beginning token was put in front."]
    model: Annotated[int, "Which of the models, from 0."]


class MadeObject(TypedDict):
    """How a result was made."""

    models: list[ModelObject]
    runs: Annotated[list[RunObject], "Of each text."]
    versions: Versions
    seed: Annotated[int | None, "The seed, where the command takes one."]
    options: Annotated[dict[str, Any], "The options that the user gave, as given."]


class TokenObject(TypedDict):
    """A token of a text."""

    index: Annotated[int, "Its position."]
    id: int
    text: Annotated[str, "The exact slice of the text."]
    exact: Exact
    label: Annotated[str, "As a person reads it."]
    start: Annotated[int, "Its first character in the text."]
    end: Annotated[int, "The character behind its last."]
    special: Annotated[bool, "Whether it is a special token, which has no slice."]
    part: Annotated[list[int] | None, "[1, 3]: the first of three that share a character."]


class LossObject(TypedDict):
    """How well the built-in model predicts the text."""

    nats: float
    characters: int
    limit: float
    nats_per_character: float
    strange: Annotated[bool, "Whether the text is not of the model's world."]
