"""What a scan found as rows, and all that it found of one head as a JSON object."""

from collections.abc import Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeAlias

from attnviz.commands.atlas.development import Development
from attnviz.commands.atlas.headlines import HeadPoint
from attnviz.commands.atlas.record import SCORES, Bin, HeadAtlas, HeadExample, TokenMass
from attnviz.records.rows import (
    ERROR,
    HEAD,
    LAYER,
    MADE,
    SCHEMA,
    Field,
    Fields,
    JsonOutput,
    Row,
    dict_of,
    head_fields,
    list_of,
    measured,
    to_json,
)


def _item(name: str, type: Any, about: str = "") -> Field[Row]:
    """A value of a row that has it under the same name."""
    return Field(name, type, about, itemgetter(name))


def _scores() -> Iterator[Field[Row]]:
    mean = "The mean over documents; null where none could be measured."
    for name in SCORES:
        yield _item(name, float | None, mean)
        yield _item(f"{name}_error", float | None, ERROR)
        yield _item(f"{name}_documents", int, "In how many documents it was measured.")


COUNTED = tuple(_item(name, int) for name in ("documents", "windows", "tokens"))
ATLAS_ROW = Fields[Row](
    "AtlasRow",
    "The scores of a head over a corpus.",
    (_item("layer", int, LAYER), _item("head", int, HEAD), *_scores(), *COUNTED),
)


# All that a scan found of one head as rows, without the links of examples but for the strongest.


HeadPart: TypeAlias = tuple[HeadAtlas, Row]
"""A row of a head: what it has; the rest is null."""


def _value(name: str, type: Any, about: str = "") -> Field[HeadPart]:
    return Field(name, type, about, lambda part: part[1].get(name))


PART_ROW = Fields[HeadPart](
    "HeadPartRow",
    "A score, a bin, a token or an example of one head; what has no meaning there is null.",
    (
        *head_fields(lambda part: part[0].head),
        _value("part", Literal["score", "histogram", "token", "example"]),
        _value("name", str, "Of the score, the histogram, the side; the kind of example."),
        _value("query", str | None),
        _value("key", str | None),
        _value("path", str | None),
        _value("start", float | None, "Of a bin; of an example's document."),
        _value("end", float | None),
        _value("value", float | None),
        _value("error", float | None),
        _value("n", int | None, "How many documents or windows; of an example its window."),
    ),
)


def parts_of(head: HeadAtlas, top: int | None = None) -> Iterator[HeadPart]:
    """Scores, bins, and the first `top` tokens of each side and examples.

    `value`: of a score its mean, of a token its mass, of an example its largest weight, first row
    and column left out; `n`: the documents of a score, the windows sampled for a token.
    """
    row = head.row
    for name in SCORES:
        error, n = row[f"{name}_error"], row[f"{name}_documents"]
        yield head, {"part": "score", "name": name, "value": row[name], "error": error, "n": n}
    for histogram, bins in head.histograms.items():
        for each in bins:
            yield head, {"part": "histogram", "name": histogram, **vars(each)}
    for side, tokens in head.tokens.items():
        for token in tokens[:top]:
            mass = {"value": token.mass, "n": head.sampled}
            yield head, {"part": "token", "name": side, **vars(token), **mass}
    for example in head.examples[:top]:
        place = {"path": example.path, "start": example.start, "n": example.window}
        found = {"part": "example", "name": example.kind, "value": example.largest, **place}
        if example.strongest is not None:
            query, key = (example.tokens[at] for at in example.strongest)
            found |= {"query": query, "key": key}
        yield head, found


# Two scores of every head, and scores over several scans.


def scatter_row(*scores: str) -> Fields[HeadPoint]:
    """A row with these two scores, or without any, as they are declared."""
    values = (
        Field(f"{score}{end}", float | None, "", attrgetter(axis + end))
        for axis, score in zip("xy", scores, strict=False)
        for end in ("", "_error")
    )
    return Fields(
        "ScatterRow",
        "Two scores of a head, each under its own name and with its error (`NAME_error`).",
        (
            *head_fields(lambda point: point.head),
            *values,
            Field(
                "distance_from_median",
                float,
                "In robust standard deviations.",
                lambda point: point.distance,
            ),
            Field("outlier", bool, "", lambda point: point.far),
        ),
        more=True,
    )


Developed: TypeAlias = tuple[Development, int, str, int]
"""The number of a head, a score, the number of a checkpoint."""


def _at(values: Mapping[str, Any], row: Developed) -> float | None:
    _, head, score, checkpoint = row
    return measured(float(values[score][head, checkpoint]))


DEVELOPMENT_ROW = Fields[Developed](
    "DevelopmentRow",
    "A score of a head at a checkpoint.",
    (
        *head_fields(lambda row: row[0].heads[row[1]]),
        Field("score", str, "", itemgetter(2)),
        Field("checkpoint", str, "", lambda row: row[0].names[row[3]]),
        Field("step", int | None, "", lambda row: row[0].steps and row[0].steps[row[3]]),
        Field("mean", float | None, "", lambda row: _at(row[0].means, row)),
        Field("error", float | None, "", lambda row: _at(row[0].errors, row)),
    ),
)


def developed(development: Development) -> Iterator[Developed]:
    """Each score of each head at each checkpoint."""
    for head in range(len(development.heads)):
        for score in development.means:
            for checkpoint in range(len(development.names)):
                yield development, head, score, checkpoint


# All that a scan found of one head as one JSON object.


Whole: TypeAlias = tuple[HeadAtlas, int | None]
"""A head, and how many tokens of each side and examples are written."""
SCANNED = Fields[Row]("Scanned", "How much was scanned.", COUNTED)
SCORE = Fields[tuple[Row, str]](
    "ScoreObject",
    "A score over documents.",
    (
        Field("mean", float | None, "", lambda score: score[0][score[1]]),
        Field("error", float | None, "", lambda score: score[0][f"{score[1]}_error"]),
        Field("documents", int, "", lambda score: score[0][f"{score[1]}_documents"]),
    ),
)
BIN = Fields[Bin](
    "BinObject",
    "A bin of a histogram; it ends before `end`, and is open where that is null.",
    (Field("start", float), Field("end", float | None), Field("value", float)),
)
MASS = Fields[TokenMass](
    "MassObject",
    "A token or a pair, and its mass.",
    (Field("query", str | None), Field("key", str | None), Field("mass", float)),
)
EXAMPLE = Fields[HeadExample](
    "ExampleObject",
    "A window with the strongest links of a head.",
    (
        Field("kind", Literal["top", "bin"]),
        Field("bin", int),
        Field("largest", float),
        Field("apart", float),
        Field("path", str),
        Field("start", int),
        Field("window", int),
        Field("tokens", list[str]),
        Field("queries", list[int]),
        Field("keys", list[int]),
        Field("weights", list[float]),
    ),
)
HEAD_ATLAS = Fields[
    Whole
](
    "HeadAtlasObject",
    "`attnviz atlas FOLDER --head HEAD -f json`.",
    (
        Field("schema", str, "", lambda whole: SCHEMA),
        Field("command", Literal["atlas"], "", lambda whole: "atlas"),
        Field("made", MADE, "", lambda whole: None),  # the result knows it
        *head_fields(lambda whole: whole[0].head),
        Field("scanned", SCANNED, "", lambda whole: whole[0].row),
        Field("sampled_windows", int, "", lambda whole: whole[0].sampled),
        Field(
            "scores",
            dict_of(SCORE),
            "",
            lambda whole: {name: (whole[0].row, name) for name in SCORES},
        ),
        Field("histograms", dict_of(list_of(BIN)), "", lambda whole: whole[0].histograms),
        Field(
            "tokens",
            dict_of(list_of(MASS)),
            "",
            lambda whole: {side: found[: whole[1]] for side, found in whole[0].tokens.items()},
        ),
        Field("examples", list_of(EXAMPLE), "", lambda whole: whole[0].examples[: whole[1]]),
    ),
)
JSON = JsonOutput((ATLAS_ROW, PART_ROW, scatter_row(), DEVELOPMENT_ROW), (HEAD_ATLAS,))


def head_chunks(head: HeadAtlas, made: Mapping[str, Any], top: int | None = None) -> Iterator[str]:
    """The head as one JSON object, a line for each of its parts; `made`: how it was made."""
    whole = {**HEAD_ATLAS.row((head, top)), "made": made}
    parts = (f"{to_json(name)}: {to_json(value)}" for name, value in whole.items())
    yield "{\n" + ",\n".join(parts) + "\n}\n"
