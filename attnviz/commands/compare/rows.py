"""Comparisons as rows: heads by how differently they attend, or by the head most like them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from attnviz.commands.compare.record import (
    Basis,
    HeadDifference,
    HeadMatch,
    ModelComparison,
    Sight,
    StreamDifference,
    TextComparison,
)
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.kit.result import Form
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head, Pairing
from attnviz.records.rows import (
    HEAD,
    LAYER,
    MODEL,
    Field,
    Fields,
    JsonOutput,
    at,
    fields_at,
    head_fields,
    list_of,
    measured,
    model_name,
    object_fields,
)
from attnviz.records.tokens import Token
from attnviz.records.transforms import transform_to_dict


def transforms(name: str, of: Callable[[Any], Iterable[Capture]]) -> Field[Any]:
    """The transforms of captures, each once."""
    return Field(
        name,
        list[dict[str, Any]],
        "The transforms of the patterns, each with a kind.",
        lambda row: [
            transform_to_dict(each)
            for each in dict.fromkeys(each for run in of(row) for each in run.transforms)
        ],
    )


OVER: tuple[Field[ModelComparison], ...] = (
    Field(
        "over",
        Literal["tokens", "words", "patches"],
        "The things compared: patches on the finer grid of two.",
        lambda both: "words" if both.words else "patches" if both.grids else "tokens",
    ),
    Field("pair", Pairing, "How the second head was chosen."),
)


@dataclass(frozen=True)
class ComparedHead:
    """A head's difference over texts; where a word is compared, what it attends to in one."""

    comparison: TextComparison
    head: HeadDifference
    number: int = 1

    @property
    def run(self) -> Capture:
        return self.comparison.captures[self.number - 1]

    @property
    def query(self) -> Token:
        queries = self.comparison.queries or ()
        return self.run.query_tokens[queries[self.number - 1]]

    @property
    def key(self) -> Token:
        return self.run.key_tokens[self.sight.links[0][0]]

    @property
    def sight(self) -> Sight:
        return self.head.sights[self.number - 1]

    def moved(self, i: int) -> tuple[str, float] | None:
        """Of two images a key, the one with the largest gain or loss, and its change."""
        if not self.head.moved:
            return None
        key, change = self.head.moved[i]
        return self.run.key_tokens[key].label, change

    def cosine(self, after: int) -> float | None:
        """The cosine of the word's vectors before the head's layer, or (`after`: 1) after it."""
        cosines = self.comparison.cosines
        return measured(cosines[self.head.head.layer + after]) if cosines else None


def _moved(name: str, what: str, i: int) -> tuple[Field[ComparedHead], ...]:
    """The key whose weight changes most in one direction, and by how much."""
    about = f"The key with the {what} from the first of two images to the second."
    fields: tuple[Field[Any], ...] = (
        Field(f"{name}_token", str | None, about, at("0")),
        Field(name, float | None, "This, as a mean over all rows.", at("1")),
    )
    return tuple(field.within(lambda row: row.moved(i)) for field in fields)


DIFFERENCES: tuple[Field[ComparedHead], ...] = (
    model_name(at("run.model.name")),
    *head_fields(at("head.head")),
    Field(
        "difference",
        float,
        "From 0 (the head attends alike) to 1 (disjoint).",
        at("head.difference"),
    ),
    Field(
        "by",
        Basis,
        "Whole rows, or the shares of self, first, previous and other tokens.",
        at("comparison.by"),
    ),
)
DIFFERENCE = Fields[ComparedHead](
    "DifferenceRow",
    "How differently a head attends in several texts.",
    (*DIFFERENCES, transforms("transforms", at("comparison.captures"))),
)
IMAGE_DIFFERENCE = Fields[ComparedHead](
    "ImageDifferenceRow",
    "How differently a head attends in several images, and where between two.",
    (
        *DIFFERENCE.all,
        *_moved("gain", "largest gain of weight", 0),
        *_moved("loss", "largest loss of weight", 1),
    ),
)
SIGHT = Fields[ComparedHead](
    "SightRow",
    "The keys that a head's one query attends to in one of the texts.",
    (
        *DIFFERENCES,
        transforms("transforms", lambda row: [row.run]),
        Field(
            "cosine_before_layer",
            float | None,
            "Mean cosine of the word's vectors, before the head's layer.",
            lambda row: row.cosine(0),
        ),
        Field("cosine_after_layer", float | None, "The same, after it.", lambda row: row.cosine(1)),
        Field("text", int, "The number of the text, from 1.", at("number")),
        Field("source", str, "The text.", at("run.text")),
        Field("query", int, "The position of the word in it.", at("query.index")),
        Field("query_token", str, "", at("query.label")),
        # in the order of SHARES
        Field("self", float, "The weight on the word itself.", at("sight.shares.0")),
        Field("first", float, "The weight on the first token.", at("sight.shares.1")),
        Field("previous", float, "The weight on the token before.", at("sight.shares.2")),
        Field("others", float, "The weight on all others.", at("sight.shares.3")),
        Field("key", int, "The position of the strongest key.", at("key.index")),
        Field("key_token", str, "", at("key.label")),
        Field("weight", float, "The weight on it.", at("sight.links.0.1")),
        Field("query_exact", str, "", at("query.exact")),
        Field("key_exact", str, "", at("key.exact")),
    ),
)


@dataclass(frozen=True)
class Matched:
    """A pair of heads of a comparison."""

    comparison: ModelComparison
    match: HeadMatch


MATCH = Fields[Matched](
    "MatchRow",
    "A head, and the head of another model that it is compared with.",
    (
        model_name(at("comparison.captures.0.model.name")),
        *head_fields(at("match.head")),
        Field("against", str, "The other model.", at("comparison.captures.1.model.name")),
        Field("against_layer", int, LAYER, at("match.other.layer")),
        Field("against_head", int, HEAD, at("match.other.head")),
        Field("similarity", float, "1: the same rows; 0: disjoint ones.", at("match.similarity")),
        *fields_at("comparison", *OVER),
        transforms("transforms", lambda row: row.comparison.captures[:1]),
        transforms("against_transforms", lambda row: row.comparison.captures[1:]),
    ),
)
STREAM = Fields[tuple[StreamDifference, int]](
    "StreamRow",
    "The difference of the stream at the last tokens of two sets of texts, at a layer's input.",
    (
        model_name(at("0.model")),
        Field("layer", int, LAYER, lambda row: row[0].layers[row[1]]),
        Field("texts", int, "The number of texts of the first set.", at("0.texts.0")),
        Field("against_texts", int, "That of the second.", at("0.texts.1")),
        Field(
            "length",
            float,
            "The length of the difference of both means.",
            lambda row: float(np.linalg.norm(row[0].vectors[row[1]])),
        ),
        Field(
            "stream",
            float,
            "The mean length of a text's vector.",
            lambda row: float(row[0].lengths[row[1]]),
        ),
    ),
)
JSON = JsonOutput((DIFFERENCE, IMAGE_DIFFERENCE, SIGHT, MATCH, STREAM))
HEADS = Fields[Head](all=head_fields(lambda head: head))
MATRIX = Fields[ModelComparison](
    "",
    "The facts of the matrix of similarities (heads, others), as an archive carries them.",
    (
        *object_fields("compare"),
        Field("model", MODEL, "", at("captures.0.model")),
        Field("against", MODEL, "", at("captures.1.model")),
        Field("text", str, "", at("captures.0.text")),
        *OVER,
        Field("heads", list_of(HEADS)),
        Field("against_heads", list_of(HEADS), "", at("others")),
        transforms("transforms", lambda both: both.captures[:1]),
        transforms("against_transforms", lambda both: both.captures[1:]),
    ),
)


# Comparisons as results.


def sights(comparison: TextComparison, top: int | None, line: int | None) -> Iterator[ComparedHead]:
    """Each head in each text."""
    numbers = range(1, len(comparison.captures) + 1)
    return (ComparedHead(comparison, each, n) for each in comparison.heads[:top] for n in numbers)


def what(comparison: TextComparison) -> str:
    """The noun for the items that are compared."""
    return "image" if comparison.of_images else "text"


SHOWN = 8
"""Heads that the terminal shows."""
OF_ROWS = Form[TextComparison](
    "compare",
    DIFFERENCE,
    lambda texts, top, line: (ComparedHead(texts, each) for each in texts.heads[:top]),
    lambda texts: f"{texts.captures[0].model.name}, {amount(len(texts.captures), what(texts))}",
    terminal="attnviz.commands.compare.shown:render_texts",
    picture="attnviz.commands.compare.shown:draw_texts",
    top=SHOWN,
)
OF_IMAGES = replace(OF_ROWS, fields=IMAGE_DIFFERENCE)
OF_A_WORD = replace(OF_ROWS, fields=SIGHT, each=sights)
OF_MODELS = Form[ModelComparison](
    "compare",
    MATCH,
    lambda both, top, line: (Matched(both, match) for match in both.matches[:top]),
    lambda both: " and ".join(run.model.name for run in both.captures),
    terminal="attnviz.commands.compare.shown:render_models",
    picture="attnviz.commands.compare.shown:draw_models",
    archive=lambda both: (MATRIX.row(both), {"similarity": both.similarity}),
    top=SHOWN,
)


def one_vector(difference: StreamDifference) -> FloatArray:
    """The vector (d) of the one layer that was chosen."""
    if len(difference.layers) > 1:
        wrong = f"a vector is of one layer, and these are {len(difference.layers)}"
        raise UsageError(
            wrong,
            f"choose one with {option('layers', difference.layers[len(difference.layers) // 2])}",
        )
    vector: FloatArray = difference.vectors[0]
    return vector


OF_STREAM = Form[StreamDifference](
    "compare",
    STREAM,
    lambda both, top, line: ((both, i) for i in range(len(both.layers))),
    lambda both: f"{both.model}, {both.texts[0]} and {amount(both.texts[1], 'text')}",
    terminal="attnviz.commands.compare.shown:render_stream",
    vector=one_vector,
)
