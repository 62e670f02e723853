"""Links as rows and as columns; `writers/rows.py` streams the same to files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from attnviz.kit.formats import SEPARATORS, cell, printable_cell
from attnviz.records.capture import Capture, Kind
from attnviz.records.exhibit import Exhibit, Finding, Links, Map, links_of, whole_map
from attnviz.records.rows import (
    MODEL,
    SCHEMA,
    TOKEN,
    Exact,
    HeadNumber,
    JsonOutput,
    LayerNumber,
    LineNumber,
    LossObject,
    MadeObject,
    ModelObject,
    TokenObject,
    Unknown,
    Versions,
    declared,
    loss_to_dict,
    made_to_dict,
    to_json,
    unknown_to_dict,
)
from attnviz.records.transforms import transform_to_dict

# Links as rows: JSON lines, CSV and TSV, streamed.
#
# Every row has the same columns, in the order of `COLUMNS` and `EXACT`. Where a map is a reduction,
# the column that was reduced holds the reduction's name (`"head": "mean"`). Scores have the column
# `score` instead of `weight`.


COLUMNS = ("line", "layer", "head", "query", "query_token", "key", "key_token", "weight")
EXACT = ("query_exact", "key_exact")  # behind the weight: the tokens' exact texts
CHUNK = 32_768  # links in one chunk: a few megabytes at most


def row_chunks(exhibit: Exhibit, form: str, *, line: int = 1, header: bool = True) -> Iterator[str]:
    """The links of every map of an exhibit as text, some thousand rows at a time.

    Args:
        exhibit: the exhibit to write; its filters decide which links there are.
        form: `jsonl`, `csv` or `tsv`.
        line: the number of the input line; 1 where the input is one text.
        header: whether csv and tsv begin with the names of the columns.

    Yields:
        complete rows, each ended by a newline.
    """
    if form in SEPARATORS and header:
        yield SEPARATORS[form].join((*COLUMNS[:-1], exhibit.value_name, *EXACT)) + "\n"
    for head_map in exhibit.maps:
        links = links_of(exhibit, head_map)
        for start in range(0, len(links), CHUNK):
            part = slice(start, start + CHUNK)
            chunk = Links(links.query[part], links.key[part], links.weight[part])
            write = _json_rows if form == "jsonl" else _cell_rows
            yield write(exhibit, head_map, chunk, line, form)


def _json_rows(exhibit: Exhibit, head_map: Map, links: Links, line: int, form: str) -> str:
    layer, head = (to_json(x) if isinstance(x, str) else str(x) for x in head_map.place)
    start = f'{{"line": {line}, "layer": {layer}, "head": {head}, "query": '
    return _joined(
        exhibit,
        links,
        lambda index, label: f'{start}{index}, "query_token": {to_json(label)}, "key": ',
        lambda index, label: f'{index}, "key_token": {to_json(label)}, "{exhibit.value_name}": ',
        lambda text: f', "query_exact": {to_json(text)}, "key_exact": ',
        lambda text: f"{to_json(text)}}}\n",
    )


def _cell_rows(exhibit: Exhibit, head_map: Map, links: Links, line: int, form: str) -> str:
    sep = SEPARATORS[form]
    layer, head = head_map.place
    start = f"{line}{sep}{layer}{sep}{head}{sep}"
    return _joined(
        exhibit,
        links,
        lambda index, label: f"{start}{index}{sep}{cell(label, sep)}{sep}",
        lambda index, label: f"{index}{sep}{cell(label, sep)}{sep}",
        lambda text: f"{sep}{printable_cell(text, sep)}{sep}",
        lambda text: f"{printable_cell(text, sep)}\n",
    )


def _joined(
    exhibit: Exhibit,
    links: Links,
    query_part: Callable[[int, str], str],
    key_part: Callable[[int, str], str],
    query_end: Callable[[str], str],
    key_end: Callable[[str], str],
) -> str:
    """One row per link: its query, its key, its weight, and the exact texts of both tokens.

    The texts are made once for each token and not for each link, so that a million rows take
    about a second.
    """
    query_tokens, key_tokens = exhibit.capture.query_tokens, exhibit.capture.key_tokens
    queries = {i: query_part(i, query_tokens[i].label) for i in np.unique(links.query).tolist()}
    keys = {i: key_part(i, key_tokens[i].label) for i in np.unique(links.key).tolist()}
    after_query = {i: query_end(query_tokens[i].exact) for i in queries}
    after_key = {i: key_end(key_tokens[i].exact) for i in keys}
    rows = zip(links.query.tolist(), links.key.tolist(), map(str, links.weight), strict=True)
    return "".join(
        [f"{queries[q]}{keys[k]}{weight}{after_query[q]}{after_key[k]}" for q, k, weight in rows]
    )


class LinkRow(TypedDict):
    """How much a query attends to a key in one head."""

    line: LineNumber
    layer: Annotated[int | str, "The layer, counted from 0; the name of a reduction over layers."]
    head: Annotated[int | str, "The head in its layer; the name of a reduction over heads."]
    query: Annotated[int, "The position of the query."]
    query_token: str
    key: Annotated[int, "The position of the key."]
    key_token: str
    weight: float
    query_exact: Exact
    key_exact: Exact


class ScoreRow(TypedDict):
    """With --scores: how well a key matches a query in one head."""

    line: LineNumber
    layer: LayerNumber
    head: HeadNumber
    query: Annotated[int, "The position of the query."]
    query_token: str
    key: Annotated[int, "The position of the key."]
    key_token: str
    score: Annotated[float, "Before mask and softmax."]
    query_exact: Exact
    key_exact: Exact


def link_columns(exhibit: Exhibit) -> dict[str, NDArray[Any]]:
    """The links of all maps by column (n_links,), as `LinkRow` names them but for the line."""
    links = [links_of(exhibit, head_map) for head_map in exhibit.maps]
    query, key, weight = (
        np.concatenate([getattr(each, name) for each in links])
        for name in ("query", "key", "weight")
    )
    layer, head = zip(*(head_map.place for head_map in exhibit.maps), strict=True)
    sizes = [len(each) for each in links]
    queries, keys = exhibit.capture.query_tokens, exhibit.capture.key_tokens
    labels = ([token.label for token in tokens] for tokens in (queries, keys))
    exact = ([token.exact for token in tokens] for tokens in (queries, keys))
    query_labels, key_labels = (np.array(each, object) for each in labels)
    query_exact, key_exact = (np.array(each, object) for each in exact)
    return {
        "layer": np.repeat(_places(layer), sizes),
        "head": np.repeat(_places(head), sizes),
        "query": query,
        "query_token": query_labels[query],
        "key": key,
        "key_token": key_labels[key],
        exhibit.value_name: weight,
        "query_exact": query_exact[query],
        "key_exact": key_exact[key],
    }


def _places(values: tuple[int | str, ...]) -> NDArray[Any]:
    """Numbers as numbers; where a reduction stands among them, objects."""
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, dtype=np.int64 if whole else object)


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


# An exhibit as one JSON object; `docs/formats.md` describes it.


def json_chunks(
    exhibit: Exhibit, *, about: str = "", notes: Sequence[str] = (), line: int | None = None
) -> Iterator[str]:
    """An exhibit as one JSON object, some rows at a time, ended by a newline.

    Args:
        exhibit: what to write; see `_rows` for what its filters do.
        about: which heads these are, what they do here, and why they are shown, for a person.
        notes: what else there is to say of the text, for a person.
        line: the number of the input line; then the object stands on one line of its
            own. Without it the object is spread over lines for a person to read.
    """
    wrap = "\n" if line is None else ""
    gap = "\n" if line is None else " "
    yield "{" + wrap
    for name, value in _fields(exhibit, about, notes, line).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{to_json(name)}: ["
            yield from _separated(map(to_json, value), wrap, gap)
            yield f"{wrap}],{gap}"
        else:
            yield f"{to_json(name)}: {to_json(value)},{gap}"
    yield '"patterns": ['
    for number, head_map in enumerate(exhibit.maps):
        yield f",{gap}[" if number else f"{wrap}["
        yield from _separated(_rows(exhibit, head_map), wrap, gap)
        yield f"{wrap}]"
    yield f"{wrap}]{wrap}}}\n"


def _separated(items: Iterable[str], wrap: str, gap: str) -> Iterator[str]:
    for number, item in enumerate(items):
        yield f",{gap}{item}" if number else f"{wrap}{item}"


def _fields(exhibit: Exhibit, about: str, notes: Sequence[str], line: int | None) -> dict[str, Any]:
    """All but the patterns, in order."""
    capture = exhibit.capture
    return {
        "schema": SCHEMA,
        "command": "show",
        **({} if line is None else {"line": line}),
        "model": MODEL.row(capture.model),
        "versions": dict(sorted(capture.versions.items())),
        "made": made_to_dict([capture]),
        "text": capture.text,
        "bos": capture.bos,
        "left_out": list(capture.left_out),
        "kind": capture.kind,
        **({"target": capture.target} if capture.target else {}),
        **unknown_to_dict(capture.unknown_words),
        "causal": capture.causal,
        "sinks": capture.sinks,
        "transforms": [transform_to_dict(transform) for transform in capture.transforms],
        **_tokens(capture),
        "about": about,
        "notes": list(notes),
        "finding": _finding(exhibit.finding),
        "loss": _loss(capture),
        "heads": [_head(capture, head_map) for head_map in exhibit.maps],
        "queries": list(exhibit.queries),
        "keys": list(exhibit.keys),
        "top": exhibit.top,
        "min": None if exhibit.least == -inf else exhibit.least,
        **({"skip_distances": list(exhibit.skip)} if exhibit.skip else {}),
    }


def _tokens(capture: Capture) -> dict[str, Any]:
    """One list where queries and keys are the same tokens, else two."""
    queries = [TOKEN.row(token) for token in capture.query_tokens]
    if capture.kind != "cross" and capture.key_tokens == capture.query_tokens:
        return {"tokens": queries}
    keys = [TOKEN.row(token) for token in capture.key_tokens]
    return {"query_tokens": queries, "key_tokens": keys}


def _head(capture: Capture, head_map: Map) -> dict[str, Any]:
    layer, head = head_map.place
    named = capture.named(head_map.layer, head_map.head)
    return {
        "layer": layer,
        "head": head,
        "name": head_map.label,
        "behaviours": [named.behaviour for named in named],
        "known_for": [named.title for named in named],
    }


def _finding(finding: Finding | None) -> dict[str, Any] | None:
    """What the head does here, where a rule picked it: links, or what most rows do."""
    if finding is None:
        return None
    most = finding.tendency
    return {
        "behaviour": finding.behaviour,
        "links": [link._asdict() for link in finding.links],
        "tendency": None
        if most is None
        else {"kind": most.habit, "rows": most.rows, "of": most.of, "key": most.key},
    }


def _loss(capture: Capture) -> dict[str, Any] | None:
    """How well the model predicts the text, where its card says what that means."""
    loss = capture.loss
    if loss is None:
        return None
    return {
        **loss_to_dict(loss),
        "nats_per_character": loss.per_character,
        "strange": loss.strange,
    }


def _rows(exhibit: Exhibit, head_map: Map) -> Iterator[str]:
    """The rows of the exhibit's queries, in the columns of its keys.

    Weights that the filters leave out are null, so that every number is one that the model
    computed. A pair that the mask forbids keeps its weight in the model: 0.0.
    """
    queries, keys = list(exhibit.queries), list(exhibit.keys)
    weights = whole_map(head_map).weights[np.ix_(queries, keys)]
    kept = np.isfinite(weights)  # JSON has no infinity
    if exhibit.filtered:
        forbidden = ~exhibit.capture.allowed()[np.ix_(queries, keys)]
        kept &= _among_links(exhibit, head_map) | forbidden
    for row, known in zip(weights, kept, strict=True):
        numbers: Iterable[str] = map(str, row)
        if not known.all():
            numbers = (
                n if is_known else "null" for n, is_known in zip(numbers, known, strict=True)
            )
        yield "[" + ", ".join(numbers) + "]"


def _among_links(exhibit: Exhibit, head_map: Map) -> NDArray[np.bool_]:
    """(exhibit.queries, exhibit.keys), True for links that pass the filters."""
    links = links_of(exhibit, head_map)
    passed = np.zeros(whole_map(head_map).weights.shape, dtype=np.bool_)
    passed[links.query, links.key] = True
    return passed[np.ix_(list(exhibit.queries), list(exhibit.keys))]


JSON = JsonOutput(
    (
        declared(LinkRow),
        declared(ScoreRow),
    ),
    (declared(ShowObject),),
    rows_as_json=False,
)
