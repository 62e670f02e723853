"""Labelled links: which keys a query is to attend to, and how well each head does."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import SEQUENTIAL
from attnviz.draw.matrix import by_head
from attnviz.draw.picture.canvas import Drawn
from attnviz.draw.picture.panes import Pane, draw_panes
from attnviz.draw.terminal.colors import folded
from attnviz.draw.terminal.listing import Column, listing
from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, readable, spelled
from attnviz.inputs.text import Stdin, read_lines
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.capture import Capture, ModelIdentity, PatternBlock
from attnviz.records.heads import Head, choose_heads
from attnviz.records.metrics import Estimate
from attnviz.records.positions import find_positions

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class LabelledText:
    """A text, and its links: names of queries, and names of the keys that are true for them.

    `number`: of its line in the file.
    """

    number: int
    text: str
    links: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True)
class LabelScore:
    """How much of a head's attention goes to the true keys; means and errors over texts.

    `mass`: the weight on all true keys of a row. `strongest`: the share of rows whose strongest
    key is a true one.
    """

    head: Head
    mass: Estimate
    strongest: Estimate


@dataclass(frozen=True)
class LabelReport:
    """The scores of the heads, the best first, over `texts` texts with `rows` labelled rows.

    `runs`: of each text, without patterns.
    """

    model: ModelIdentity
    texts: int
    rows: int
    scores: Sequence[LabelScore]
    runs: Sequence[Capture] = ()


# Labelled links from a file of JSON lines: `{"text": …, "links": [[query, [keys…]], …]}`.


HINT = 'give {"text": "…", "links": [["query", ["key", "key"]]]} on each line'


def read_labels(path: Path, stdin: Stdin) -> Iterator[LabelledText | InputError]:
    """The labelled texts of a file, one for each line; for a bad line, its error."""
    for number, line in read_lines(None, path, stdin):
        try:
            yield line if isinstance(line, InputError) else labelled(number, _json(number, line))
        except InputError as error:
            yield error


def _json(number: int, line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number} is not JSON ({error})", HINT) from None


def labelled(number: int, content: object) -> LabelledText:
    """The labelled text of an object with a `text` and its `links`; `number`: of its line.

    Raises:
        InputError: it is none.
    """
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError(f"line {number} has no text", HINT)
    links = content.get("links")
    if not isinstance(links, list) or not links:
        raise InputError(f"line {number} has no links", HINT)
    pairs = []
    for link in links:
        if not isinstance(link, list) or len(link) != 2:
            raise InputError(f"line {number} has a link that is not [query, [keys]]", HINT)
        pairs.append((_names(link[0], number), _names(link[1], number)))
    return LabelledText(number, content["text"], tuple(pairs))


def _names(given: object, number: int) -> tuple[str, ...]:
    """One name of tokens or several; a whole number is a position."""
    names = given if isinstance(given, list) else [given]
    kinds = {type(name) for name in names}  # a bool is a number to isinstance
    if not names or not kinds <= {str, int}:
        raise InputError(f"line {number} has a link that names no token", HINT)
    return tuple(map(str, names))


# Which heads attend to the keys that a file says are true.
#
# labelled texts ─► tokens ─► rows of the labelled queries ─► mass on true keys ─► means over texts


class LabelRun:
    """Labelled texts run through a model, one after the other."""

    def __init__(self, model: "LoadedModel", options: TextOptions, heads: HeadOptions) -> None:
        self._model, self._options = model, options
        self._heads = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
        self._texts: list[Mapping[Head, NDArray[np.float64]]] = []
        self._runs: list[Capture] = []
        self._rows = 0

    def add(self, labelled: LabelledText) -> None:
        """Run one text."""
        prepared = prepare(self._model, labelled.text, self._options)
        measure = MeasureLabels(_true_keys(prepared, labelled))
        queries = tuple(sorted(measure.keys))
        prepared.budget.check_patterns(self._heads, 0)
        prepared.run(self._heads, measure, queries)
        self._texts.append(measure.means())
        self._runs.append(prepared.empty)
        self._rows += len(queries)

    def report(self) -> LabelReport:
        """The scores over all texts.

        Raises:
            InputError: there was none.
        """
        if not self._texts:
            raise InputError("no labelled text could be run", "see the errors above")
        scores = label_scores(self._texts)
        texts, rows = len(self._texts), self._rows
        return LabelReport(self._model.identity, texts, rows, scores, self._runs)


def _in_a_link(name: str, value: str | None) -> str:
    """A parameter of `find_positions` as one who wrote the file calls it."""
    side = {"queries": "the query", "keys": "the key"}[name]
    return side if value is None else f"{side} {value}"


def _true_keys(prepared: Prepared, labelled: LabelledText) -> dict[int, set[int]]:
    empty, true = prepared.empty, dict[int, set[int]]()
    try:
        for names, of_keys in labelled.links:
            keys = find_positions(empty.key_tokens, of_keys, "keys")
            for query in find_positions(empty.query_tokens, names, "queries"):
                true.setdefault(query, set()).update(keys)
    except UsageError as error:
        wrong, hint = (spelled(said, _in_a_link) for said in (error.wrong, error.hint))
        raise InputError(f"line {labelled.number}: {wrong}", hint) from None
    seen = empty.allowed_count()
    for query, keys_of_query in true.items():
        unseen = [key for key in keys_of_query if key >= seen[query]]
        if unseen:
            raise InputError(
                f"line {labelled.number}: token {query} cannot attend to token {unseen[0]}, which "
                "stands after it",
                "name keys before their query",
            )
    return true


# How much of each head's attention goes to the true keys of labelled rows.
#
# With the tokens of a question as queries and those of a document as keys, the mass is the score by
# which query-focused retrieval heads are found: Zhang et al. 2025, "Query-Focused Retrieval Heads
# Improve Long-Context Reasoning and Re-ranking", arXiv 2506.09944, equation 1.


@dataclass
class MeasureLabels:
    """Consumes the rows of one text.

    `keys`: the true keys of each labelled query. `sums` holds, for each head, the sum over rows of
    the mass on true keys, and the number of rows whose strongest key is true.
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


def label_scores(texts: Sequence[Mapping[Head, NDArray[np.float64]]]) -> list[LabelScore]:
    """The heads' means over texts, with their standard errors; the best first."""
    scores = [
        LabelScore(head, *(Estimate.of([float(text[head][i]) for text in texts]) for i in (0, 1)))
        for head in texts[0]
    ]
    return sorted(scores, key=lambda each: (-each.mass.mean, each.head))


# How much of each head's attention goes to the keys that are labelled as true.


def render(report: LabelReport, display: Display, top: int) -> Iterator[Text]:
    """The best heads as a table, and what its columns are."""
    yield from folded(Text(labels_title(report), "dim"), display.width)
    yield Text()
    errors = report.texts > 1
    error = ["± s.e."] if errors else []
    names = ["mass", *error, "strongest", *error]
    columns = [Column("head"), *(Column(name, right=True) for name in names)]
    rows = [
        [str(score.head), *_cells(score.mass), *_cells(score.strongest)]
        for score in report.scores[:top]
    ]
    yield from listing(columns, rows, display.width)
    yield Text()
    said = "mass: weight on the true keys; strongest: share of rows whose strongest key is true"
    if errors:
        said += "; s.e.: standard error over texts"
    yield from folded(Text(said, "dim"), display.width)


def _cells(estimate: Estimate) -> list[str]:
    error = [] if estimate.error is None else [f"{estimate.error:.3f}"]
    return [f"{estimate.mean:.3f}", *error]


def labels_title(report: LabelReport) -> str:
    """What labelled links were scored on how much."""
    size = f"{amount(report.texts, 'text')}, {amount(report.rows, 'row')}"
    return f"{readable(report.model.name)}, labelled links: {size}"


# A picture of how well each head does on labelled links: layers down, heads across.


def draw(report: LabelReport, *, dpi: int = 150, cmap: str = SEQUENTIAL) -> Drawn:
    """The two scores of all heads, from 0 to 1."""
    mass = by_head((each.head, each.mass.mean) for each in report.scores)
    strongest = by_head((each.head, each.strongest.mean) for each in report.scores)
    panes = [
        Pane("mass on true keys, 0 to 1", mass, 0.0, 1.0, 2),
        Pane("strongest key is true, 0 to 1", strongest, 0.0, 1.0, 2),
    ]
    return draw_panes(labels_title(report), panes, dpi=dpi, cmap=cmap)
