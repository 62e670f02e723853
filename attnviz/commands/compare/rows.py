"""Comparisons as rows: heads by how differently they attend, or by the head most like them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from attnviz.commands.compare.record import (
    Basis,
    HeadDifference,
    HeadMatch,
    ModelComparison,
    Sight,
    TextComparison,
)
from attnviz.draw.titles import amount
from attnviz.kit.result import Form
from attnviz.records.capture import Capture
from attnviz.records.heads import Head, Pairing
from attnviz.records.rows import (
    HEAD,
    LAYER,
    MODEL,
    Field,
    Fields,
    JsonOutput,
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


def over(of: Callable[[Any], ModelComparison]) -> tuple[Field[Any], Field[Any]]:
    """The texts over which two models were compared, and how heads were paired."""
    return (
        Field(
            "over",
            Literal["tokens", "words", "patches"],
            "The things compared: patches on the finer grid of two.",
            lambda row: "words" if of(row).words else "patches" if of(row).grids else "tokens",
        ),
        Field("pair", Pairing, "How the second head was chosen.", lambda row: of(row).pair),
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

    def cosine(self, after: int) -> float | None:
        """The cosine of the word's vectors before the head's layer, or (`after`: 1) after it."""
        cosines = self.comparison.cosines
        return measured(cosines[self.head.head.layer + after]) if cosines else None


def _moved(name: str, what: str, at: int) -> tuple[Field[ComparedHead], ...]:
    """The key whose weight changes most in one direction, and by how much."""

    def of(row: ComparedHead) -> tuple[int, float] | None:
        return row.head.moved[at] if row.head.moved else None

    def label(row: ComparedHead) -> str | None:
        moved = of(row)
        return row.run.key_tokens[moved[0]].label if moved else None

    def change(row: ComparedHead) -> float | None:
        moved = of(row)
        return moved[1] if moved else None

    about = f"The key with the {what} from the first of two images to the second."
    return (
        Field(f"{name}_token", str | None, about, label),
        Field(name, float | None, "This, as a mean over all rows.", change),
    )


DIFFERENCES: tuple[Field[ComparedHead], ...] = (
    model_name(lambda row: row.run.model.name),
    *head_fields(lambda row: row.head.head),
    Field(
        "difference",
        float,
        "From 0 (the head attends alike) to 1 (disjoint).",
        lambda row: row.head.difference,
    ),
    Field(
        "by",
        Basis,
        "Whole rows, or the shares of self, first, previous and other tokens.",
        lambda row: row.comparison.by,
    ),
)
DIFFERENCE = Fields[ComparedHead](
    "DifferenceRow",
    "How differently a head attends in several texts.",
    (*DIFFERENCES, transforms("transforms", lambda row: row.comparison.captures)),
)
IMAGE_DIFFERENCE = Fields[ComparedHead](
    "ImageDifferenceRow",
    "How differently a head attends in several images, and where between two.",
    (
        *DIFFERENCES,
        transforms("transforms", lambda row: row.comparison.captures),
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
        Field("text", int, "The number of the text, from 1.", lambda row: row.number),
        Field("source", str, "The text.", lambda row: row.run.text),
        Field("query", int, "The position of the word in it.", lambda row: row.query.index),
        Field("query_token", str, "", lambda row: row.query.label),
        # in the order of SHARES
        Field("self", float, "The weight on the word itself.", lambda row: row.sight.shares[0]),
        Field("first", float, "The weight on the first token.", lambda row: row.sight.shares[1]),
        Field(
            "previous", float, "The weight on the token before.", lambda row: row.sight.shares[2]
        ),
        Field("others", float, "The weight on all others.", lambda row: row.sight.shares[3]),
        Field("key", int, "The position of the strongest key.", lambda row: row.key.index),
        Field("key_token", str, "", lambda row: row.key.label),
        Field("weight", float, "The weight on it.", lambda row: row.sight.links[0][1]),
        Field("query_exact", str, "", lambda row: row.query.exact),
        Field("key_exact", str, "", lambda row: row.key.exact),
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
        model_name(lambda row: row.comparison.captures[0].model.name),
        *head_fields(lambda row: row.match.head),
        Field(
            "against", str, "The other model.", lambda row: row.comparison.captures[1].model.name
        ),
        Field("against_layer", int, LAYER, lambda row: row.match.other.layer),
        Field("against_head", int, HEAD, lambda row: row.match.other.head),
        Field(
            "similarity",
            float,
            "1: the same rows; 0: disjoint ones.",
            lambda row: row.match.similarity,
        ),
        *over(lambda row: row.comparison),
        transforms("transforms", lambda row: row.comparison.captures[:1]),
        transforms("against_transforms", lambda row: row.comparison.captures[1:]),
    ),
)
JSON = JsonOutput((DIFFERENCE, IMAGE_DIFFERENCE, SIGHT, MATCH))
HEADS = Fields[Head]("", "", head_fields(lambda head: head))
MATRIX = Fields[ModelComparison](
    "",
    "The facts of the matrix of similarities (heads, others), as an archive carries them.",
    (
        *object_fields("compare"),
        Field("model", MODEL, "", lambda both: both.captures[0].model),
        Field("against", MODEL, "", lambda both: both.captures[1].model),
        Field("text", str, "", lambda both: both.captures[0].text),
        *over(lambda both: both),
        Field("heads", list_of(HEADS)),
        Field("against_heads", list_of(HEADS), "", lambda both: both.others),
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
