"""A score taken apart, and what a head writes, as rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

from attnviz.draw.effects import part_name
from attnviz.draw.labels import distinct_labels
from attnviz.kit.result import Form
from attnviz.records.heads import Head
from attnviz.records.metrics import Estimate
from attnviz.records.parts import FEATURE, Explained, Group, Part, PartKind, Shares
from attnviz.records.rows import (
    ABSENT,
    HEAD,
    LAYER,
    LINE_OR_MEAN,
    RUN_FIELDS,
    TOKEN,
    Field,
    Fields,
    JsonOutput,
    at,
    dict_of,
    head_fields,
    if_any,
    list_of,
    mean_error,
    measured,
    model_name,
    object_fields,
)
from attnviz.records.why import (
    Moved,
    Node,
    Pair,
    Reader,
    Removal,
    Side,
    Why,
    WhyMean,
    Write,
    mean_of,
)


def part_fields(of: Callable[[Any], Part | None], prefix: str = "") -> tuple[Field[Any], ...]:
    """The kind of a part; null where it is all others."""
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
    """A part at the query, a part at the keys, and what their product adds to a contrast.

    `line` is None for a mean over lines, which has parts of one side; `query`, `key`, `versus` are
    then None, and the sources of the parts number the `labels`, which are roles. `roles`: of the
    tokens that these sources number, or nothing.
    """

    line: int | None
    model: str
    head: Head
    labels: Sequence[str]
    roles: Sequence[str]
    query_part: Part | None
    key_part: Part | None
    value: Estimate
    query: int | None = None
    key: int | None = None
    versus: int | None = None

    def token(self, position: int | None) -> str | None:
        return None if position is None else self.labels[position]

    def name(self, part: Part | None) -> str:
        whole = self.line is None and part is None
        return "all parts" if whole else part_name(part, self.labels)

    def placed(self, part: Part | None) -> Part | None:
        """The part with the position that it is from; a mean over lines has none."""
        return part and part._replace(source=None if self.line is None else part.source)

    def role(self, part: Part | None) -> str | None:
        return self.roles[part.source] if part and part.source is not None and self.roles else None


def _side(side: Side) -> tuple[Field[Any], ...]:
    """The part at the query, or at the key."""
    part, about = at(f"{side}_part"), f"The part at the {side}, for a person."
    return (
        Field(f"{side}_part", str, about, lambda row: row.name(part(row))),
        *part_fields(lambda row: row.placed(part(row)), f"{side}_"),
    )


PAIR = Fields[Term](
    "PairRow",
    "A part at the query, a part at the key, and the addition of both to the contrast.",
    (
        LINE_OR_MEAN,
        model_name(at("model")),
        *head_fields(at("head")),
        Field("query", int | None, "The position of the query; null in a mean over lines."),
        Field("query_token", str | None, "", lambda row: row.token(row.query)),
        Field("key", int | None, "The position of the key; null in a mean over lines."),
        Field("key_token", str | None, "", lambda row: row.token(row.key)),
        Field("versus", int | None, "The position of the key that it is contrasted with."),
        *_side("query"),
        *_side("key"),
        Field("value", float, "The addition of the two to the contrast.", at("value.mean")),
        Field(
            "query_role",
            str | None,
            "The role of the tokens that the part at the query is from, where wanted.",
            lambda row: row.role(row.query_part),
        ),
        Field(
            "key_role",
            str | None,
            "The role of those that the part at the key is from.",
            lambda row: row.role(row.key_part),
        ),
        mean_error(at("value.error")),
        *(
            Field(f"{side}_feature", int | None, FEATURE, at(f"{side}_part.feature"))
            for side in ("query", "key")
        ),
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
    "A way in which a later head reads a head's addition.",
    (
        model_name(at("write.model.name")),
        *head_fields(at("write.head")),
        Field("position", int, "The position at which the head writes.", at("write.query")),
        Field("position_token", str, "", lambda row: row.labels[row.write.query]),
        *head_fields(at("reader.head"), "reader_"),
        Field("through", str, "The reader's query, key or value.", at("reader.through")),
        Field("query", int, "The position of the reader's query.", at("reader.query")),
        Field("query_token", str, "", lambda row: row.labels[row.reader.query]),
        Field("key", int, "The position of its key.", at("reader.key")),
        Field("key_token", str, "", lambda row: row.labels[row.reader.key]),
        Field("value", float, "The change there by the addition.", at("reader.value")),
        Field("total", float, "The whole that it is a part of.", at("reader.total")),
    ),
)
_FEATURE = Field[Part](
    "feature",
    int,
    FEATURE,
    lambda part: ABSENT if part.feature is None else part.feature,
    optional=True,
)
PART = Fields[Part](
    "PartObject", "A part of the model.", (*part_fields(lambda part: part), _FEATURE)
)
SHARE = Fields[tuple[Part, float]](
    "PartShare",
    "A part, and its addition.",
    (*part_fields(at("0")), Field("value", float, "", at("1")), _FEATURE.within(at("0"))),
)
PAIR_OBJECT = Fields[Pair](
    "PairObject",
    "A part at the query and a part at the key; null means all others.",
    (Field("query", (PART, NoneType)), Field("key", (PART, NoneType)), Field("value", float)),
)
NODE: Fields[Node] = Fields(
    "NodeObject",
    "A part, and the parts that it is made of.",
    (
        Field("part", (PART, NoneType)),
        Field("value", float),
        Field("query", int | None),
        Field("key", int | None),
        Field("parts", list_of(lambda: NODE), "", at("children")),
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


EXPLAINED = Fields[Explained](
    "ExplainedObject",
    "A dictionary of features, and what it is of.",
    (
        Field("dictionary", str),
        Field("layer", int),
        Field("mlp", bool, "Of what this layer's MLP writes, not of the stream that arrives."),
        Field(
            "share",
            float | None,
            "The share of its variance over the text's tokens that they explain.",
            lambda explained: measured(explained.share),
        ),
    ),
)
WHY = Fields[Why](
    "WhyObject",
    "`attnviz why -f json`.",
    (
        *object_fields("why"),
        *RUN_FIELDS,
        Field("tokens", list_of(TOKEN)),
        *head_fields(at("head")),
        Field("query", int),
        Field("key", int),
        Field("versus", int | None),
        Field("group", Group),
        Field("raw", list[float], "", at("row.raw")),
        Field("scores", list[float], "", at("row.scores")),
        Field("weights", list[float], "", at("row.weights")),
        Field("sink_score", float | None, "", at("row.sink")),
        Field("entropy", float, "", at("row.entropy")),
        Field("contrast", float),
        Field("added", float),
        Field("error", float),
        Field("query_parts", list_of(SHARE), "", lambda why: strongest(why.query_shares)),
        Field("key_parts", list_of(SHARE), "", lambda why: strongest(why.key_shares)),
        Field("pairs", list_of(PAIR_OBJECT)),
        if_any("trees", dict_of(list_of(NODE)), "", lambda why: dict(why.trees)),
        if_any("without", list_of(REMOVAL), "", at("removals")),
        if_any("explained", EXPLAINED, "The dictionary of the features, where they are wanted."),
    ),
)
MOVED = Fields[tuple[str, Moved]](
    "MovedObject",
    "A token whose logit a head changes.",
    (
        Field("token", str, "", at("0")),
        Field("id", int, "", at("1.id")),
        Field("effect", float, "", at("1.effect")),
        Field("by_source", list[float], "", at("1.by_source")),
    ),
)
READER_OBJECT = Fields[Reader](
    "ReaderObject",
    "A later head that reads the head's addition.",
    (
        Field("layer", int, LAYER, lambda reader: ABSENT),  # the schema names it first
        Field("head", int, HEAD, at("head.head")),
        Field("through", Literal["query", "key", "value"]),
        Field("query", int),
        Field("key", int),
        Field("value", float),
        Field("total", float),
        Field("layer", int, LAYER, at("head.layer"), optional=True),
    ),
)
WRITE = Fields[Write](
    "WriteObject",
    "`attnviz why --writes -f json`.",
    (
        *object_fields("why"),
        *RUN_FIELDS,
        Field("tokens", list_of(TOKEN)),
        *head_fields(at("head")),
        Field("query", int),
        Field("weights", list[float]),
        Field("lengths", list[float]),
        Field("logits", list_of(MOVED), "", at("moved")),
        Field("readers", list_of(READER_OBJECT)),
    ),
)
JSON = JsonOutput((PAIR, READER), (WHY, WRITE))


# A score taken apart, and what a head writes, as results.


def terms(why: Why, top: int | None, line: int | None) -> Iterator[Term]:
    """Every term of the table."""
    labels = distinct_labels(why.tokens)
    for pair in why.pairs:
        yield Term(
            line=line,
            model=why.model.name,
            head=why.head,
            labels=labels,
            roles=why.roles,
            query_part=pair.query,
            key_part=pair.key,
            value=Estimate(pair.value),
            query=why.query,
            key=why.key,
            versus=why.versus,
        )


def mean_terms(mean: WhyMean, top: int | None, line: int | None) -> Iterator[Term]:
    """The parts at the queries, then those at the keys, the strongest of each first."""
    for side, shares in (("query", mean.query_shares), ("key", mean.key_shares)):
        for part, value in shares.means[:top]:
            yield Term(
                line=None,
                model=mean.capture.model.name,
                head=mean.head,
                labels=mean.roles,
                roles=mean.roles,
                query_part=part if side == "query" else None,
                key_part=part if side == "key" else None,
                value=value,
            )


def readings(write: Write, top: int | None, line: int | None) -> Iterator[ReaderRow]:
    """Every way in which a later head reads what was written."""
    labels = distinct_labels(write.tokens)
    return (ReaderRow(write, reader, labels) for reader in write.readers)


MEAN = Form[WhyMean](
    "why",
    PAIR,
    mean_terms,
    lambda mean: mean.about,
    terminal="attnviz.commands.why.shown:render_mean",
    top=8,
)
CONTRAST = Form[Why](
    "why",
    PAIR,
    terms,
    lambda why: why.about,
    terminal="attnviz.commands.why.shown:render",
    picture="attnviz.commands.why.shown:draw",
    whole=WHY,
    top=8,
    mean=mean_of,
    mean_form=MEAN,
)
WRITTEN = Form[Write](
    "why",
    READER,
    readings,
    lambda write: write.about,
    terminal="attnviz.commands.why.shown:render_write",
    whole=WRITE,
)
