"""A score taken apart, and what a head writes, as rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

from attnviz.draw.effects import part_name
from attnviz.draw.labels import distinct_labels
from attnviz.kit.result import Form
from attnviz.records.parts import (
    Group,
    Moved,
    Node,
    Pair,
    Part,
    PartKind,
    Reader,
    Removal,
    Shares,
    Side,
    Why,
    Write,
)
from attnviz.records.rows import (
    ABSENT,
    HEAD,
    LAYER,
    RUN_FIELDS,
    TOKEN,
    Field,
    Fields,
    JsonOutput,
    dict_of,
    head_fields,
    list_of,
    model_name,
    object_fields,
)


def part_fields(of: Callable[[Any], Part | None], prefix: str = "") -> tuple[Field[Any], ...]:
    """The kind of a part; null where it stands for all others."""
    source = "The position of the token that it is from."
    null = PartKind | None if prefix else PartKind
    return (
        Field(f"{prefix}kind", null, "", lambda row: getattr(of(row), "kind", None)),
        Field(f"{prefix}layer", int | None, "", lambda row: getattr(of(row), "layer", None)),
        Field(f"{prefix}head", int | None, "", lambda row: getattr(of(row), "head", None)),
        Field(f"{prefix}source", int | None, source, lambda row: getattr(of(row), "source", None)),
    )


@dataclass(frozen=True)
class Term:
    """A pair of parts of a contrast; `labels`: of the tokens of the text."""

    why: Why
    pair: Pair
    labels: Sequence[str]


PAIR = Fields[Term](
    "PairRow",
    "A part at the query, a part at the key, and what their product adds to the contrast.",
    (
        model_name(lambda row: row.why.model.name),
        *head_fields(lambda row: row.why.head),
        Field("query", int, "The position of the query.", lambda row: row.why.query),
        Field("query_token", str, "", lambda row: row.labels[row.why.query]),
        Field("key", int, "The position of the key.", lambda row: row.why.key),
        Field("key_token", str, "", lambda row: row.labels[row.why.key]),
        Field(
            "versus",
            int | None,
            "The position of the key that it is contrasted with.",
            lambda row: row.why.versus,
        ),
        Field(
            "query_part",
            str,
            "The part at the query, for a person.",
            lambda row: part_name(row.pair.query, row.labels),
        ),
        *part_fields(lambda row: row.pair.query, "query_"),
        Field(
            "key_part",
            str,
            "The part at the key, for a person.",
            lambda row: part_name(row.pair.key, row.labels),
        ),
        *part_fields(lambda row: row.pair.key, "key_"),
        Field("value", float, "What the two add to the contrast.", lambda row: row.pair.value),
    ),
)


@dataclass(frozen=True)
class ReaderRow:
    """A way in which a later head reads what was written; `labels`: of the tokens of the text."""

    write: Write
    reader: Reader
    labels: Sequence[str]


READER = Fields[ReaderRow](
    "ReaderRow",
    "A way in which a later head reads what a head wrote.",
    (
        model_name(lambda row: row.write.model.name),
        *head_fields(lambda row: row.write.head),
        Field(
            "position", int, "The position at which the head writes.", lambda row: row.write.query
        ),
        Field("position_token", str, "", lambda row: row.labels[row.write.query]),
        *head_fields(lambda row: row.reader.head, "reader_"),
        Field("through", str, "The reader's query, key or value.", lambda row: row.reader.through),
        Field("query", int, "The position of the reader's query.", lambda row: row.reader.query),
        Field("query_token", str, "", lambda row: row.labels[row.reader.query]),
        Field("key", int, "The position of its key.", lambda row: row.reader.key),
        Field("key_token", str, "", lambda row: row.labels[row.reader.key]),
        Field("value", float, "What the addition changes there.", lambda row: row.reader.value),
        Field("total", float, "The whole that it is a part of.", lambda row: row.reader.total),
    ),
)
PART = Fields[Part]("PartObject", "A part of the model.", part_fields(lambda part: part))
SHARE = Fields[tuple[Part, float]](
    "PartShare",
    "A part, and what it adds.",
    (*part_fields(lambda share: share[0]), Field("value", float, "", lambda share: share[1])),
)
PAIR_OBJECT = Fields[Pair](
    "PairObject",
    "A part at the query and a part at the key; null stands for all others.",
    (Field("query", (PART, NoneType)), Field("key", (PART, NoneType)), Field("value", float)),
)
NODE: Fields[Node] = Fields(
    "NodeObject",
    "A part, and what it is made of.",
    (
        Field("part", (PART, NoneType)),
        Field("value", float),
        Field("query", int | None),
        Field("key", int | None),
        Field("parts", list_of(lambda: NODE), "", lambda node: node.children),
    ),
)
REMOVAL = Fields[Removal](
    "RemovalObject",
    "A part taken away, and the score computed anew.",
    (
        Field("side", Side),
        Field("part", PART),
        Field("predicted", float),
        Field("fixed", float),
        Field("free", float | None),
        Field("weight", float | None),
    ),
)


def strongest(shares: Shares) -> Iterator[tuple[Part, float]]:
    """The parts with what they add, the strongest first."""
    order = shares.strongest(len(shares.parts))
    return ((shares.parts[i], float(shares.values[0, i])) for i in order)


WHY = Fields[Why](
    "WhyObject",
    "`attnviz why -f json`.",
    (
        *object_fields("why"),
        *RUN_FIELDS,
        Field("tokens", list_of(TOKEN)),
        *head_fields(lambda why: why.head),
        Field("query", int),
        Field("key", int),
        Field("versus", int | None),
        Field("group", Group),
        Field("raw", list[float], "", lambda why: why.row.raw),
        Field("scores", list[float], "", lambda why: why.row.scores),
        Field("weights", list[float], "", lambda why: why.row.weights),
        Field("sink_score", float | None, "", lambda why: why.row.sink),
        Field("entropy", float, "", lambda why: why.row.entropy),
        Field("contrast", float),
        Field("added", float),
        Field("error", float),
        Field("query_parts", list_of(SHARE), "", lambda why: strongest(why.query_shares)),
        Field("key_parts", list_of(SHARE), "", lambda why: strongest(why.key_shares)),
        Field("pairs", list_of(PAIR_OBJECT)),
        Field(
            "trees",
            dict_of(list_of(NODE)),
            "",
            lambda why: dict(why.trees) if why.trees else ABSENT,
            optional=True,
        ),
        Field("without", list_of(REMOVAL), "", lambda why: why.removals or ABSENT, optional=True),
    ),
)
MOVED = Fields[tuple[str, Moved]](
    "MovedObject",
    "A token whose logit a head changes.",
    (
        Field("token", str, "", lambda moved: moved[0]),
        Field("id", int, "", lambda moved: moved[1].id),
        Field("effect", float, "", lambda moved: moved[1].effect),
        Field("by_source", list[float], "", lambda moved: moved[1].by_source),
    ),
)
READER_OBJECT = Fields[Reader](
    "ReaderObject",
    "A later head that reads what was written.",
    (
        Field("layer", int, LAYER, lambda reader: ABSENT),  # the schema names it first
        Field("head", int, HEAD, lambda reader: reader.head.head),
        Field("through", Literal["query", "key", "value"]),
        Field("query", int),
        Field("key", int),
        Field("value", float),
        Field("total", float),
        Field("layer", int, LAYER, lambda reader: reader.head.layer, optional=True),
    ),
)
WRITE = Fields[Write](
    "WriteObject",
    "`attnviz why --writes -f json`.",
    (
        *object_fields("why"),
        *RUN_FIELDS,
        Field("tokens", list_of(TOKEN)),
        *head_fields(lambda write: write.head),
        Field("query", int),
        Field("weights", list[float]),
        Field("lengths", list[float]),
        Field("logits", list_of(MOVED), "", lambda write: write.moved),
        Field("readers", list_of(READER_OBJECT)),
    ),
)
JSON = JsonOutput((PAIR, READER), (WHY, WRITE))


# A score taken apart, and what a head writes, as results.


def terms(why: Why, top: int | None, line: int | None) -> Iterator[Term]:
    """Every term of the table."""
    labels = distinct_labels(why.tokens)
    return (Term(why, pair, labels) for pair in why.pairs)


def readings(write: Write, top: int | None, line: int | None) -> Iterator[ReaderRow]:
    """Every way in which a later head reads what was written."""
    labels = distinct_labels(write.tokens)
    return (ReaderRow(write, reader, labels) for reader in write.readers)


CONTRAST = Form[Why](
    "why",
    PAIR,
    terms,
    lambda why: why.about,
    terminal="attnviz.commands.why.shown:render",
    picture="attnviz.commands.why.shown:draw",
    whole=WHY,
    top=8,
)
WRITTEN = Form[Write](
    "why",
    READER,
    readings,
    lambda write: write.about,
    terminal="attnviz.commands.why.shown:render_write",
    whole=WRITE,
)
