"""Links as rows and as columns; `writers/rows.py` streams the same to files."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from attnviz.records.capture import Kind
from attnviz.records.exhibit import Exhibit, links_of
from attnviz.records.rows import (
    Exact,
    HeadNumber,
    LayerNumber,
    LineNumber,
    LossObject,
    MadeObject,
    ModelObject,
    TokenObject,
    Unknown,
    Versions,
)


class LinkRow(TypedDict):
    """How much a query attends to a key in one head."""

    line: LineNumber
    layer: Annotated[int | str, "The layer, counted from 0; the name of a reduction over layers."]
    head: Annotated[int | str, "The head in its layer; the name of a reduction over heads."]
    query: Annotated[int, "The position of the query."]
    query_token: str
    key: Annotated[int, "The position of the key."]
    key_token: str
    weight: float
    query_exact: Exact
    key_exact: Exact


class ScoreRow(TypedDict):
    """With --scores: how well a key matches a query in one head."""

    line: LineNumber
    layer: LayerNumber
    head: HeadNumber
    query: Annotated[int, "The position of the query."]
    query_token: str
    key: Annotated[int, "The position of the key."]
    key_token: str
    score: Annotated[float, "Before mask and softmax."]
    query_exact: Exact
    key_exact: Exact


def link_columns(exhibit: Exhibit) -> dict[str, NDArray[Any]]:
    """The links of all maps by column (n_links,), as `LinkRow` names them but for the line."""
    links = [links_of(exhibit, head_map) for head_map in exhibit.maps]
    query, key, weight = (
        np.concatenate([getattr(each, name) for each in links])
        for name in ("query", "key", "weight")
    )
    layer, head = zip(*(head_map.place for head_map in exhibit.maps), strict=True)
    sizes = [len(each) for each in links]
    queries, keys = exhibit.capture.query_tokens, exhibit.capture.key_tokens
    labels = ([token.label for token in tokens] for tokens in (queries, keys))
    exact = ([token.exact for token in tokens] for tokens in (queries, keys))
    query_labels, key_labels = (np.array(each, object) for each in labels)
    query_exact, key_exact = (np.array(each, object) for each in exact)
    return {
        "layer": np.repeat(_places(layer), sizes),
        "head": np.repeat(_places(head), sizes),
        "query": query,
        "query_token": query_labels[query],
        "key": key,
        "key_token": key_labels[key],
        exhibit.value_name: weight,
        "query_exact": query_exact[query],
        "key_exact": key_exact[key],
    }


def _places(values: tuple[int | str, ...]) -> NDArray[Any]:
    """Numbers as numbers; where a reduction stands among them, objects."""
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, dtype=np.int64 if whole else object)


class FoundLink(TypedDict):
    """A link by which a head was picked."""

    query: int
    key: int
    weight: float


class TendencyObject(TypedDict):
    """What most rows of a head do."""

    kind: str
    rows: int
    of: int
    key: int | None


class FindingObject(TypedDict):
    """What the head that was picked does here."""

    behaviour: str | None
    links: list[FoundLink]
    tendency: TendencyObject | None


class PatternHead(TypedDict):
    """What a pattern is of."""

    layer: Annotated[int | str, "A number; the reduction's name where it is over layers."]
    head: Annotated[int | str, "A number; the reduction's name where it is over heads."]
    name: str
    behaviours: list[str]
    known_for: list[str]


class ShowObject(TypedDict):
    """`attnviz show -f json`."""

    schema: str
    command: Literal["show"]
    made: MadeObject
    line: NotRequired[Annotated[int, "With --lines: the number of the input line."]]
    model: ModelObject
    versions: Versions
    text: str
    bos: bool
    left_out: Annotated[list[int], "Tokens that were cut off before and after."]
    kind: Kind
    target: NotRequired[str]
    unknown_words: NotRequired[Unknown]
    causal: bool
    sinks: Annotated[bool, "Whether rows may sum to less than 1."]
    transforms: list[dict[str, Any]]
    tokens: NotRequired[list[TokenObject]]
    query_tokens: NotRequired[list[TokenObject]]
    key_tokens: NotRequired[list[TokenObject]]
    about: Annotated[str, "For a person."]
    notes: Annotated[list[str], "For a person."]
    finding: FindingObject | None
    loss: LossObject | None
    heads: list[PatternHead]
    queries: Annotated[list[int], "The positions of the rows."]
    keys: Annotated[list[int], "The positions of the columns."]
    top: int | None
    min: float | None
    skip_distances: NotRequired[list[int]]
    patterns: Annotated[
        list[list[list[float | None]]], "patterns[h][i][j]; null: left out by a filter."
    ]
