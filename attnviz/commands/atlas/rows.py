"""The findings of a scan as rows, and all that it found of one head as a JSON object."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeAlias

from attnviz.commands.atlas.views import Development, HeadPoint, Scatter
from attnviz.corpus.record import SCORES
from attnviz.corpus.tables import (
    ATLAS_ROW,
    BIN,
    COUNTED,
    EXAMPLE,
    MASS,
    OVER,
    HeadAtlas,
    MeanOver,
    partial_field,
)
from attnviz.draw.titles import amount
from attnviz.kit.result import Form, Result
from attnviz.records.rows import (
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
        _value("name", str, "That of the score, the histogram, the side; the kind of example."),
        _value("mean_over", MeanOver | None, "The items of the mean of a score or a weight."),
        _value("query", str | None),
        _value("key", str | None),
        _value("path", str | None),
        _value("start", float | None, "The start of a bin, or of an example's document."),
        _value("end", float | None),
        _value("value", float | None),
        _value("error", float | None),
        _value("n", int | None, "How many documents or windows; of an example its window."),
        partial_field(lambda part: part[0].row),
    ),
)


def parts_of(head: HeadAtlas) -> Iterator[HeadPart]:
    """Scores, bins, tokens and examples.

    `value`: of a score its mean, of a token its mass, of an example its largest weight, first row
    and column left out; `n`: the documents of a score, the windows sampled for a token.
    """
    row = head.row
    for name in SCORES:
        found = {"value": row[name], "error": row[f"{name}_error"], "n": row[f"{name}_documents"]}
        yield head, {"part": "score", "name": name, **found, "mean_over": row["mean_over"]}
    for histogram, bins in head.histograms.items():
        over = None if histogram == "largest" else "documents"
        for each in bins:
            yield head, {"part": "histogram", "name": histogram, **vars(each), "mean_over": over}
    for side, tokens in head.tokens.items():
        for token in tokens:
            mass = {"value": token.mass, "n": head.sampled}
            yield head, {"part": "token", "name": side, **vars(token), **mass}
    for example in head.examples:
        place = {"path": example.path, "start": example.start, "n": example.window}
        part = {"part": "example", "name": example.kind, "value": example.largest, **place}
        if example.strongest is not None:
            query, key = (example.tokens[at] for at in example.strongest)
            part |= {"query": query, "key": key}
        yield head, part


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
            Field("mean_over", MeanOver, OVER),
            *values,
            Field("distance_from_median", float, "In robust standard deviations."),
            Field("outlier", bool),
            partial_field(vars),
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
        Field("mean_over", MeanOver, OVER, lambda row: row[0].mean_over),
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


SCANNED = Fields[Row]("Scanned", "How much was scanned.", COUNTED)
SCORE = Fields[tuple[Row, str]](
    "ScoreObject",
    "A score; the error is null of a mean over tokens.",
    (
        Field("mean", float | None, "", lambda score: score[0][score[1]]),
        Field("error", float | None, "", lambda score: score[0][f"{score[1]}_error"]),
        Field("documents", int, "", lambda score: score[0][f"{score[1]}_documents"]),
    ),
)


HEAD_ATLAS = Fields[HeadAtlas](
    "HeadAtlasObject",
    "`attnviz atlas FOLDER --head HEAD -f json`.",
    (
        Field("schema", str, "", lambda head: SCHEMA),
        Field("command", Literal["atlas"], "", lambda head: "atlas"),
        Field("made", MADE, "", lambda head: None),  # the result knows it
        *head_fields(lambda head: head.head),
        Field("scanned", SCANNED, "", lambda head: head.row),
        partial_field(lambda head: head.row),
        Field("sampled_windows", int, "", lambda head: head.sampled),
        Field("mean_over", MeanOver, OVER, lambda head: head.row["mean_over"]),
        Field(
            "scores", dict_of(SCORE), "", lambda head: {name: (head.row, name) for name in SCORES}
        ),
        Field("histograms", dict_of(list_of(BIN))),
        Field("tokens", dict_of(list_of(MASS))),
        Field("examples", list_of(EXAMPLE)),
    ),
)
JSON = JsonOutput((ATLAS_ROW, PART_ROW, scatter_row(), DEVELOPMENT_ROW), (HEAD_ATLAS,))
# What goes out.


ONE_HEAD = Form[HeadAtlas](
    "atlas",
    PART_ROW,
    lambda head, top, line: parts_of(head),
    lambda head: str(head.head),
    terminal="attnviz.commands.atlas.terminal:render_head",
    whole=HEAD_ATLAS,
    top=0,
)
SCATTER = Form[Scatter](
    "atlas",
    scatter_row(),
    lambda scatter, top, line: scatter.points,
    lambda scatter: f"{scatter.x} and {scatter.y}",
    terminal="attnviz.commands.atlas.terminal:render_scatter",
    picture="attnviz.commands.atlas.picture:draw_scatter",
    top=12,
    named=True,
)
DEVELOPMENT = Form[Development](
    "atlas",
    DEVELOPMENT_ROW,
    lambda development, top, line: developed(development),
    lambda development: amount(len(development.names), "scan"),
    terminal="attnviz.commands.atlas.terminal:render_development",
    picture="attnviz.commands.atlas.picture:draw_development",
    top=3,
    named=True,
)


def of_scatter(scatter: Scatter, top: int | None = None) -> Result[Scatter]:
    """Two scores of every head, of which at most `top` outliers are named."""
    form = replace(SCATTER, fields=scatter_row(scatter.x, scatter.y))
    return Result(form, scatter, _top=top)
