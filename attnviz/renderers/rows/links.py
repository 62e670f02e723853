"""Links as rows and as columns; `writers/rows.py` streams the same to files."""

from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from attnviz.data.exhibit import Exhibit, links_of
from attnviz.renderers.rows.common import Exact, HeadNumber, LayerNumber, LineNumber


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
