"""What commands write as one JSON object: declarations, which `attnviz schema` prints.

Functions in `data/` and `writers/` make these objects; tests hold them to the declarations.
"""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from attnviz.data.atlas import Histogram
from attnviz.data.atlas import Side as AtlasSide
from attnviz.data.capture import Kind, MadeBy
from attnviz.data.why import Group, PartKind, Side
from attnviz.data.worked import Similarity
from attnviz.renderers.rows.common import Exact, HeadNumber, LayerNumber

Versions: TypeAlias = Annotated[dict[str, str], "The libraries that computed it, by name."]
Arrays: TypeAlias = Annotated[
    dict[str, Any], "Every array as nested lists, by name; null stands for −∞."
]
Unknown: TypeAlias = Annotated[list[str], "Words that the built-in translator was not trained on."]


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


class LossObject(TypedDict):
    """How well the built-in model predicts the text."""

    nats: float
    characters: int
    limit: float
    nats_per_character: float
    strange: Annotated[bool, "Whether the text is not of the model's world."]


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


class Scanned(TypedDict):
    """How much was scanned."""

    documents: int
    windows: int
    tokens: int


class ScoreObject(TypedDict):
    """A score over documents."""

    mean: float | None
    error: float | None
    documents: int


class BinObject(TypedDict):
    """A bin of a histogram; it ends before `end`, and is open where that is null."""

    start: float
    end: float | None
    value: float


class MassObject(TypedDict):
    """A token or a pair, and its mass."""

    query: str | None
    key: str | None
    mass: float


class ExampleObject(TypedDict):
    """A window with the strongest links of a head."""

    kind: Literal["top", "bin"]
    bin: int
    largest: float
    apart: float
    path: str
    start: int
    window: int
    tokens: list[str]
    queries: list[int]
    keys: list[int]
    weights: list[float]


class HeadAtlasObject(TypedDict):
    """`attnviz atlas FOLDER --head HEAD -f json`."""

    schema: str
    command: Literal["atlas"]
    made: MadeObject
    layer: LayerNumber
    head: HeadNumber
    scanned: Scanned
    sampled_windows: int
    scores: dict[str, ScoreObject]
    histograms: dict[Histogram, list[BinObject]]
    tokens: dict[AtlasSide, list[MassObject]]
    examples: list[ExampleObject]
