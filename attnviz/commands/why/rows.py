"""A score taken apart, and what a head writes, as rows."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from attnviz.console import Display
from attnviz.draw.labels import distinct_labels
from attnviz.draw.parts import part_name
from attnviz.kit.result import Result, result_of
from attnviz.records.parts import Group, Pair, PartKind, Side, Why, Write
from attnviz.records.rows import (
    HeadNumber,
    JsonOutput,
    LayerNumber,
    MadeObject,
    ModelName,
    ModelObject,
    TokenObject,
    Versions,
    declared,
    why_to_dict,
    write_to_dict,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnviz.draw.picture.canvas import Drawn


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


class PartObject(TypedDict):
    """A part of the model."""

    kind: PartKind
    layer: int | None
    head: int | None
    source: Annotated[int | None, "The position of the token that it is from."]


class PartShare(PartObject):
    """A part, and what it adds."""

    value: float


class PairObject(TypedDict):
    """A part at the query and a part at the key; null stands for all others."""

    query: PartObject | None
    key: PartObject | None
    value: float


class NodeObject(TypedDict):
    """A part, and what it is made of."""

    part: PartObject | None
    value: float
    query: int | None
    key: int | None
    parts: "list[NodeObject]"


class RemovalObject(TypedDict):
    """A part taken away, and the score computed anew."""

    side: Side
    part: PartObject
    predicted: float
    fixed: float
    free: float | None
    weight: float | None


class WhyObject(TypedDict):
    """`attnviz why -f json`."""

    schema: str
    command: Literal["why"]
    made: MadeObject
    model: ModelObject
    versions: Versions
    text: str
    tokens: list[TokenObject]
    layer: LayerNumber
    head: HeadNumber
    query: int
    key: int
    versus: int | None
    group: Group
    raw: list[float]
    scores: list[float]
    weights: list[float]
    sink_score: float | None
    entropy: float
    contrast: float
    added: float
    error: float
    query_parts: list[PartShare]
    key_parts: list[PartShare]
    pairs: list[PairObject]
    trees: NotRequired[dict[str, list[NodeObject]]]
    without: NotRequired[list[RemovalObject]]


class MovedObject(TypedDict):
    """A token whose logit a head changes."""

    token: str
    id: int
    effect: float
    by_source: list[float]


class ReaderObject(TypedDict):
    """A later head that reads what was written."""

    layer: LayerNumber
    head: HeadNumber
    through: Literal["query", "key", "value"]
    query: int
    key: int
    value: float
    total: float


class WriteObject(TypedDict):
    """`attnviz why --writes -f json`."""

    schema: str
    command: Literal["why"]
    made: MadeObject
    model: ModelObject
    versions: Versions
    text: str
    tokens: list[TokenObject]
    layer: LayerNumber
    head: HeadNumber
    query: int
    weights: list[float]
    lengths: list[float]
    logits: list[MovedObject]
    readers: list[ReaderObject]


# A score taken apart, and what a head writes, as results.


def of_why(why: Why, top: int) -> Result[Why]:
    """A contrast of a head's scores, in its `top` strongest parts."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.why import terminal as table

        return table.render(why, top, display)

    def draw(**look: Any) -> "Drawn":
        from attnviz.commands.why import picture

        return picture.draw(why, **look)

    return result_of(
        "why",
        why,
        why.about,
        (PairRow,),
        lambda: pair_rows(why),
        shown,
        draw,
        lambda: why_to_dict(why),
        captures=(why.capture,),
    )


def of_write(write: Write) -> Result[Write]:
    """What a head writes."""

    def shown(display: Display) -> "Iterable[RenderableType]":
        from attnviz.commands.why import terminal as table

        return table.render_write(write, display)

    return result_of(
        "why",
        write,
        write.about,
        (ReaderRow,),
        lambda: reader_rows(write),
        shown,
        None,
        lambda: write_to_dict(write),
        captures=(write.capture,),
    )


JSON = JsonOutput(
    (
        declared(PairRow),
        declared(ReaderRow),
    ),
    (
        declared(WhyObject),
        declared(WriteObject),
    ),
)
