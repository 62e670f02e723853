"""All that a scan found of one head, as one JSON object or as rows."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypedDict

from attnviz.commands.atlas.record import SCORES, Example, HeadAtlas, Histogram, Side
from attnviz.records.rows import (
    SCHEMA,
    Error,
    HeadNumber,
    JsonOutput,
    LayerNumber,
    MadeObject,
    declared,
    to_json,
)

COLUMNS = (
    "layer",
    "head",
    "part",
    "name",
    "query",
    "key",
    "path",
    "start",
    "end",
    "value",
    "error",
    "n",
)


def head_to_dict(
    head: HeadAtlas, made: Mapping[str, Any], top: int | None = None
) -> dict[str, Any]:
    """The head as written to JSON; of tokens and examples only the first `top`.

    `made`: how it was made.
    """
    row = head.row
    return {
        "schema": SCHEMA,
        "command": "atlas",
        "made": made,
        **{name: row[name] for name in ("layer", "head")},
        "scanned": {name: row[name] for name in ("documents", "windows", "tokens")},
        "sampled_windows": head.sampled,
        "scores": {
            name: {
                "mean": row[name],
                "error": row[f"{name}_error"],
                "documents": row[f"{name}_documents"],
            }
            for name in SCORES
        },
        "histograms": {
            name: [{"start": each.start, "end": each.end, "value": each.value} for each in bins]
            for name, bins in head.histograms.items()
        },
        "tokens": {
            side: [vars(each) for each in tokens[:top]] for side, tokens in head.tokens.items()
        },
        "examples": [_example(each) for each in head.examples[:top]],
    }


def head_chunks(head: HeadAtlas, made: Mapping[str, Any], top: int | None = None) -> Iterator[str]:
    """The head as one JSON object, a line for each of its parts."""
    whole = head_to_dict(head, made, top)
    parts = (f"{to_json(name)}: {to_json(value)}" for name, value in whole.items())
    yield "{\n" + ",\n".join(parts) + "\n}\n"


def head_rows(head: HeadAtlas, top: int | None = None) -> list[Mapping[str, Any]]:
    """The same as rows, without the links of examples but for each one's strongest.

    `part` says what a row is: a score (`value` its mean, `error` its standard error, `n` its
    documents), a bin of the histogram `name`, a token of a side (`value` its mass, `n` the windows
    sampled), or an example (`value` its largest weight, first row and column left out; `query` and
    `key` its tokens; `path` and `start` its document, `n` its window).
    """
    row = head.row
    rows = [
        {
            **{"part": "score", "name": name, "value": row[name]},
            **{"error": row[f"{name}_error"], "n": row[f"{name}_documents"]},
        }
        for name in SCORES
    ]
    rows += [
        {"part": "histogram", "name": name, **vars(each)}
        for name, bins in head.histograms.items()
        for each in bins
    ]
    rows += [
        {
            **{"part": "token", "name": side, "query": each.query, "key": each.key},
            **{"value": each.mass, "n": head.sampled},
        }
        for side, tokens in head.tokens.items()
        for each in tokens[:top]
    ]
    rows += [_strongest(each) for each in head.examples[:top]]
    empty = dict.fromkeys(COLUMNS)
    place = {"layer": head.head.layer, "head": head.head.head}
    return [{**empty, **place, **each} for each in rows]


def _example(example: Example) -> dict[str, Any]:
    """Every part of an example, its arrays as lists."""
    return {
        **vars(example),
        "tokens": list(example.tokens),
        "queries": example.queries.tolist(),
        "keys": example.keys.tolist(),
        "weights": example.weights.tolist(),
    }


def _strongest(example: Example) -> dict[str, Any]:
    query, key = example.strongest or (None, None)
    return {
        **{"part": "example", "name": example.kind, "path": example.path, "start": example.start},
        "query": None if query is None else example.tokens[query],
        "key": None if key is None else example.tokens[key],
        **{"value": example.largest, "n": example.window},
    }


# What a scan found, as rows: declarations; the tables of the scan and `writers/` make them.


Mean = Annotated[float | None, "The mean over documents; null where none could be measured."]
Documents = Annotated[int, "In how many documents it was measured."]


class AtlasRow(TypedDict):
    """The scores of a head over a corpus."""

    layer: LayerNumber
    head: HeadNumber
    entropy: Mean
    entropy_error: Error
    entropy_documents: Documents
    normalised: Mean
    normalised_error: Error
    normalised_documents: Documents
    distance: Mean
    distance_error: Error
    distance_documents: Documents
    previous: Mean
    previous_error: Error
    previous_documents: Documents
    first: Mean
    first_error: Error
    first_documents: Documents
    self: Mean
    self_error: Error
    self_documents: Documents
    duplicate: Mean
    duplicate_error: Error
    duplicate_documents: Documents
    induction: Mean
    induction_error: Error
    induction_documents: Documents
    distance_variance: Mean
    distance_variance_error: Error
    distance_variance_documents: Documents
    documents: int
    windows: int
    tokens: int


class HeadPartRow(TypedDict):
    """A score, a bin, a token or an example of one head; what has no meaning there is null."""

    layer: LayerNumber
    head: HeadNumber
    part: Literal["score", "histogram", "token", "example"]
    name: Annotated[str, "Of the score, the histogram, the side; the kind of example."]
    query: str | None
    key: str | None
    path: str | None
    start: Annotated[float | None, "Of a bin; of an example's document."]
    end: float | None
    value: float | None
    error: float | None
    n: Annotated[int | None, "How many documents or windows; of an example its window."]


class ScatterRow(TypedDict):
    """Two scores of a head, each under its own name and with its error (`NAME_error`)."""

    layer: LayerNumber
    head: HeadNumber
    distance_from_median: Annotated[float, "In robust standard deviations."]
    outlier: bool


class DevelopmentRow(TypedDict):
    """A score of a head at a checkpoint."""

    layer: LayerNumber
    head: HeadNumber
    score: str
    checkpoint: str
    step: int | None
    mean: float | None
    error: float | None


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
    tokens: dict[Side, list[MassObject]]
    examples: list[ExampleObject]


JSON = JsonOutput(
    (
        declared(AtlasRow),
        declared(HeadPartRow),
        declared(ScatterRow, more=True),
        declared(DevelopmentRow),
    ),
    (declared(HeadAtlasObject),),
)
