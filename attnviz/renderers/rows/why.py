"""A score taken apart, and what a head writes, as rows."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from attnviz.data.why import Pair, PartKind, Why, Write
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.parts import part_name
from attnviz.renderers.rows.common import HeadNumber, LayerNumber, ModelName


class PairRow(TypedDict):
    """A part at the query, a part at the key, and what their product adds to the contrast."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    query: Annotated[int, "The position of the query."]
    query_token: str
    key: Annotated[int, "The position of the key."]
    key_token: str
    versus: Annotated[int | None, "The position of the key that it is contrasted with."]
    query_part: Annotated[str, "The part at the query, for a person."]
    query_kind: PartKind | None
    query_layer: int | None
    query_head: int | None
    query_source: Annotated[int | None, "The position of the token that it is from."]
    key_part: Annotated[str, "The part at the key, for a person."]
    key_kind: PartKind | None
    key_layer: int | None
    key_head: int | None
    key_source: Annotated[int | None, "The position of the token that it is from."]
    value: Annotated[float, "What the two add to the contrast."]


def pair_rows(why: Why) -> list[PairRow]:
    """A row for each term of the table."""
    labels = distinct_labels(why.tokens)
    return [_pair(why, pair, labels) for pair in why.pairs]


def _pair(why: Why, pair: Pair, labels: Sequence[str]) -> PairRow:
    query, key = pair.query, pair.key
    return {
        "model": why.model.name,
        "layer": why.head.layer,
        "head": why.head.head,
        "query": why.query,
        "query_token": labels[why.query],
        "key": why.key,
        "key_token": labels[why.key],
        "versus": why.versus,
        "query_part": part_name(query, labels),
        "query_kind": query.kind if query else None,
        "query_layer": query.layer if query else None,
        "query_head": query.head if query else None,
        "query_source": query.source if query else None,
        "key_part": part_name(key, labels),
        "key_kind": key.kind if key else None,
        "key_layer": key.layer if key else None,
        "key_head": key.head if key else None,
        "key_source": key.source if key else None,
        "value": pair.value,
    }


class ReaderRow(TypedDict):
    """A way in which a later head reads what a head wrote."""

    model: ModelName
    layer: LayerNumber
    head: HeadNumber
    position: Annotated[int, "The position at which the head writes."]
    position_token: str
    reader_layer: LayerNumber
    reader_head: HeadNumber
    through: Annotated[str, "The reader's query, key or value."]
    query: Annotated[int, "The position of the reader's query."]
    query_token: str
    key: Annotated[int, "The position of its key."]
    key_token: str
    value: Annotated[float, "What the addition changes there."]
    total: Annotated[float, "The whole that it is a part of."]


def reader_rows(write: Write) -> list[ReaderRow]:
    """A row for each way in which a later head reads what was written."""
    labels = distinct_labels(write.tokens)
    return [
        {
            "model": write.model.name,
            "layer": write.head.layer,
            "head": write.head.head,
            "position": write.query,
            "position_token": labels[write.query],
            "reader_layer": reader.head.layer,
            "reader_head": reader.head.head,
            "through": reader.through,
            "query": reader.query,
            "query_token": labels[reader.query],
            "key": reader.key,
            "key_token": labels[reader.key],
            "value": reader.value,
            "total": reader.total,
        }
        for reader in write.readers
    ]
