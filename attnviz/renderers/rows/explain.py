"""What `attnviz explain` writes as one JSON object."""

from typing import Annotated, Literal, NotRequired, TypedDict

from attnviz.records.capture import Kind
from attnviz.records.rows import (
    Arrays,
    Exact,
    HeadNumber,
    LayerNumber,
    MadeObject,
    ModelObject,
    TokenObject,
    Unknown,
    Versions,
)
from attnviz.records.trace import Similarity


class Nearest(TypedDict):
    """A token close to what the head adds."""

    token: str
    cosine: float
    exact: Exact


class Following(TypedDict):
    """A token that may come next."""

    token: str
    probability: float
    exact: Exact


class TraceObject(TypedDict):
    """`attnviz explain TEXT -f json`."""

    schema: str
    command: Literal["explain"]
    made: MadeObject
    subject: Literal["head"]
    model: ModelObject
    versions: Versions
    text: str
    kind: Kind
    target: NotRequired[str]
    tokens: NotRequired[list[TokenObject]]
    query_tokens: NotRequired[list[TokenObject]]
    key_tokens: NotRequired[list[TokenObject]]
    unknown_words: NotRequired[Unknown]
    layer: LayerNumber
    head: HeadNumber
    query: int
    norm: str
    positions: str
    query_heads_per_key_value_head: int
    scale: float
    nearest: list[Nearest]
    next_tokens: list[Following]
    other_similarity: NotRequired[Similarity]
    arrays: Arrays


class EmbeddingsObject(TypedDict):
    """`attnviz explain TEXT --model embeddings -f json`."""

    schema: str
    command: Literal["explain"]
    made: MadeObject
    subject: Literal["embeddings"]
    model: ModelObject
    versions: Versions
    text: str
    tokens: list[TokenObject]
    query: int
    causal: bool
    arrays: Arrays


class WorkedObject(TypedDict):
    """`attnviz explain --example` or `--matrices` `-f json`."""

    schema: str
    command: Literal["explain"]
    made: MadeObject
    subject: Literal["example"]
    labels: list[str]
    heads: Annotated[int, "How many heads there are."]
    similarity: Similarity
    causal: bool
    rounded: bool
    arrays: Arrays
