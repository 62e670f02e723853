"""Labelled links: which keys a query is to attend to, and how well each head does."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.console import Display
from attnviz.draw.effects import number_cells
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import draw_panes
from attnviz.draw.terminal.cells import Column, TextLines, titled_listing
from attnviz.draw.titles import amount
from attnviz.draw.view import Pane
from attnviz.errors import InputError, UsageError, option, readable, spelled
from attnviz.inputs.beside import IMAGES, check_fields, images_beside, json_of
from attnviz.inputs.text import Stdin, read_lines
from attnviz.kit.option import R
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.kit.result import Form
from attnviz.records.capture import Capture, ModelIdentity, PatternBlock
from attnviz.records.heads import Head, choose_heads
from attnviz.records.metrics import Estimate
from attnviz.records.places import RawImage
from attnviz.records.positions import find_positions
from attnviz.records.rows import Field, Fields, at, estimate_fields, head_fields, model_name
from attnviz.records.tokens import Token

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class LabelledText:
    """A text, and its links: names of queries, and names of the keys that are true for them.

    `images`: those beside it.
    """

    text: str
    links: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    images: tuple[RawImage, ...] = ()


@dataclass(frozen=True, eq=False)
class LabelRun:
    """A labelled text that was run: its capture without patterns, and how many rows have labels.

    `means`: for each head the mean mass, and the share of rows whose strongest key is true (2).
    """

    capture: Capture
    rows: int
    means: Mapping[Head, NDArray[np.float64]]


@dataclass(frozen=True)
class LabelScore:
    """The share of a head's attention on the true keys; means and errors over texts.

    `mass`: the weight on all true keys of a row. `strongest`: the share of rows whose strongest
    key is a true one.
    """

    head: Head
    mass: Estimate
    strongest: Estimate


@dataclass(frozen=True, eq=False)
class LabelReport:
    """The heads' scores over labelled texts."""

    model: ModelIdentity
    runs: Sequence[LabelRun]

    @property
    def rows(self) -> int:
        """The number of labelled rows."""
        return sum(run.rows for run in self.runs)

    @cached_property
    def scores(self) -> Sequence[LabelScore]:
        """The heads' means over texts, with their standard errors; the best first."""
        scores = []
        for head in self.runs[0].means:
            means = np.stack([run.means[head] for run in self.runs])  # (texts, 2)
            mass, strongest = (Estimate.of(column.tolist()) for column in means.T)
            scores.append(LabelScore(head, mass, strongest))
        return sorted(scores, key=lambda each: (-each.mass.mean, each.head))


# Labelled links from a file of JSON lines: `{"text": …, "links": [[query, [keys…]], …]}`.


HINT = 'give {"text": "…", "links": [["query", ["key", "key"]]]} on each line'


def labelled(content: object, folder: Path = Path()) -> LabelledText:
    """The labelled text of an object, or of a line of JSON; `folder`: that of its images.

    Raises:
        InputError: it is none.
    """
    if isinstance(content, str):
        content = json_of(content, HINT)
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError("there is no text", HINT)
    check_fields(content, ("text", "links", *IMAGES))
    links = content.get("links")
    if not isinstance(links, list) or not links:
        raise InputError("there are no links", HINT)
    if not all(isinstance(link, list) and len(link) == 2 for link in links):
        raise InputError("a link is not [query, [keys]]", HINT)
    named = tuple((_names(a), _names(b)) for a, b in links)
    return LabelledText(content["text"], named, images_beside(content, folder))


def _names(value: object) -> tuple[str, ...]:
    """One name of tokens or several; a whole number is a position."""
    names = value if isinstance(value, list) else [value]
    kinds = {type(name) for name in names}  # a bool is a number to isinstance
    if not names or not kinds <= {str, int}:
        raise InputError("a link names no token", HINT)
    return tuple(map(str, names))


# Which heads attend to the keys that a file says are true.
#
# labelled texts ─► tokens ─► rows of the labelled queries ─► mass on true keys ─► means over texts


def score_labels(
    model: "LoadedModel",
    labels: str | PathLike[str] | Iterable[Mapping[str, Any]],
    options: TextOptions,
    heads: HeadOptions,
) -> LabelReport:
    """Score the heads over the labelled texts of a file, or of objects.

    Raises:
        UsageError: it is neither.
        InputError: a text or its links are wrong.
    """
    hint = "give a file, or objects with a text and its links"
    folder = Path(labels).parent if isinstance(labels, str | PathLike) else Path()
    run = partial(run_labelled, model, options=options, heads=heads, folder=folder)
    return LabelReport(model.identity, run_each("labels", labels, hint, run))


def run_each(name: str, given: object, hint: str, run: Callable[[object], R]) -> list[R]:
    """Run each line of a file, or each object; `name`: the parameter.

    Raises:
        UsageError: it is neither.
        InputError: a line is wrong, which is named by its number; or there is none.
    """
    lines: Iterable[tuple[int, object]]
    if isinstance(given, str | PathLike):
        lines = read_lines(None, Path(given), Stdin(None, False))
    elif isinstance(given, Iterable):
        lines = enumerate(given, start=1)
    else:
        raise UsageError(f"{option(name)} is of type {type(given).__name__}", hint)
    made = list[R]()
    for number, line in lines:
        if isinstance(line, InputError):
            raise line
        try:
            made.append(run(line))
        except InputError as error:
            raise InputError(f"line {number}: {error.wrong}", error.hint) from None
    if not made:
        raise InputError(f"{option(name)} has nothing to run", hint)
    return made


def run_labelled(
    model: "LoadedModel", line: object, options: TextOptions, heads: HeadOptions, folder: Path
) -> LabelRun:
    """Run one labelled text, and see how much of each head's attention goes to the true keys.

    `folder`: that of the images that it names.
    """
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    text = labelled(line, folder)
    options = replace(options, given=text.images) if text.images else options
    prepared = prepare(model, text.text, options)
    measure = MeasureLabels(_true_keys(prepared, text))
    prepared.budget.check_patterns(chosen, 0)
    prepared.run(chosen, measure, tuple(sorted(measure.keys)))
    return LabelRun(prepared.empty, len(measure.keys), measure.means())


def _true_keys(prepared: Prepared, labelled: LabelledText) -> dict[int, set[int]]:
    """The true keys of each query that has labels."""
    empty, true = prepared.empty, dict[int, set[int]]()
    for names, of_keys in labelled.links:
        keys = named_in_line(empty.key_tokens, of_keys, "keys")
        for query in named_in_line(empty.query_tokens, names, "queries"):
            true.setdefault(query, set()).update(keys)
    seen = empty.allowed_count()
    for query, keys_of_query in true.items():
        unseen = [key for key in keys_of_query if key >= seen[query]]
        if unseen:
            raise InputError(
                f"token {query} cannot attend to token {unseen[0]}, which comes after it",
                "name keys before their query",
            )
    return true


def named_in_line(tokens: Sequence[Token], names: Sequence[str], side: str) -> tuple[int, ...]:
    """The positions of the queries or keys of a line, called in errors as its writer does."""

    def called(name: str, value: str | None) -> str:
        own = "the key" if name == "keys" else "the query"
        return own if value is None else f"{own} {value}"

    try:
        return find_positions(tokens, names, side)
    except UsageError as error:
        wrong, hint = (spelled(each, called) for each in (error.wrong, error.hint))
        raise InputError(wrong, hint) from None


@dataclass
class MeasureLabels:
    """Consumes the rows of one text, and measures the attention to the true keys.

    `keys`: the true keys of each labelled query. `sums` holds, for each head, the sum over rows of
    the mass on true keys, and the number of rows whose strongest key is true.

    With the tokens of a question as queries and those of a document as keys, the mass is the score
    by which query-focused retrieval heads are found: Zhang et al. 2025, "Query-Focused Retrieval
    Heads Improve Long-Context Reasoning and Re-ranking", arXiv 2506.09944, equation 1.
    """

    keys: Mapping[int, Set[int]]
    sums: dict[Head, NDArray[np.float64]] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        true = np.zeros((len(block.queries), block.weights.shape[2]), np.bool_)
        for row, query in enumerate(block.queries.tolist()):
            true[row, list(self.keys[query])] = True
        mass = np.einsum("hrk,rk->h", block.weights, true, dtype=np.float64)
        strongest = block.weights.argmax(axis=2)  # (heads, rows)
        hits = true[np.arange(len(true)), strongest].sum(axis=1)
        for i, head in enumerate(block.heads):
            own = self.sums.setdefault(Head(block.layer, head), np.zeros(2))
            own += (mass[i], hits[i])

    def means(self) -> dict[Head, NDArray[np.float64]]:
        """For each head the mean mass, and the share of rows whose strongest key is true (2)."""
        return {head: own / len(self.keys) for head, own in self.sums.items()}


# The scores as rows, as a table of the best heads, and as a picture: layers down, heads across.


LABEL_ROW = Fields[tuple[LabelReport, LabelScore]](
    "LabelRow",
    "How much of a head's attention goes to the true keys; means over texts.",
    (
        model_name(at("0.model.name")),
        *head_fields(at("1.head")),
        *estimate_fields("mass", "Mean weight on all true keys of a row.", at("1.mass")),
        *estimate_fields(
            "strongest", "The share of rows whose strongest key is a true one.", at("1.strongest")
        ),
        Field("texts", int, "How many texts.", lambda row: len(row[0].runs)),
        Field("rows", int, "How many labelled rows.", at("0.rows")),
    ),
)


def _render(report: LabelReport, display: Display, top: int) -> TextLines:
    """The best heads as a table, and what its columns are."""
    error = ["± s.e."] if len(report.runs) > 1 else []
    names = ["mass", *error, "strongest", *error]
    columns = [Column("head"), *(Column(name, right=True) for name in names)]
    rows = [
        [str(score.head), *number_cells(score.mass, ".3f"), *number_cells(score.strongest, ".3f")]
        for score in report.scores[:top]
    ]
    about = "mass: weight on the true keys; strongest: share of rows whose strongest key is true"
    about += "; s.e.: standard error over texts" if error else ""
    return titled_listing(_title(report), columns, rows, display.width, about)


def _title(report: LabelReport) -> str:
    """The subject: the labelled links, and the number of rows."""
    size = f"{amount(len(report.runs), 'text')}, {amount(report.rows, 'row')}"
    return f"{readable(report.model.name)}, labelled links: {size}"


def _draw(report: LabelReport, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """Draw the two scores of all heads, from 0 to 1."""
    mass = by_head((each.head, each.mass.mean) for each in report.scores)
    strongest = by_head((each.head, each.strongest.mean) for each in report.scores)
    panes = [
        Pane("mass on true keys, 0 to 1", mass),
        Pane("strongest key is true, 0 to 1", strongest),
    ]
    return draw_panes(_title(report), panes, dpi=dpi, cmap=cmap)


OF_LABELS = Form[LabelReport](
    "heads",
    LABEL_ROW,
    lambda report, top, line: ((report, score) for score in report.scores[:top]),
    lambda report: f"{report.model.name}, {amount(len(report.runs), 'labelled text')}",
    terminal=_render,
    picture=_draw,
    top=sys.maxsize,
)
