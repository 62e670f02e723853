"""Links as rows, as columns, and as one JSON object."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.headlines import about, beside_notes
from attnviz.kit.result import notes_of
from attnviz.kit.write import SEPARATORS, cell, printable_cell
from attnviz.records.capture import Capture, Kind, TextLoss
from attnviz.records.exhibit import Exhibit, Links, Map, links_of, whole_map
from attnviz.records.heads import Finding, FoundLink, NamedHead, Tendency
from attnviz.records.rows import (
    ABSENT,
    HEAD,
    LAYER,
    LINE,
    MADE,
    MODEL,
    PLACED,
    TARGET,
    TIMED,
    TOKEN,
    TRANSFORMS,
    UNKNOWN,
    VERSIONS,
    Field,
    Fields,
    JsonOutput,
    at,
    fields_at,
    how_made,
    if_any,
    list_of,
    object_fields,
    place_of,
    places_in,
    to_json,
)
from attnviz.records.rows import EXACT as EXACT_TEXT

if TYPE_CHECKING:
    from attnviz.commands.show.outputs import OutputRequest

# Links as rows: JSON lines, CSV and TSV, streamed.
#
# Every row has the same columns, those of `LINKS`. Where a map is a reduction, the column that was
# reduced holds the reduction's name (`"head": "mean"`). Scores have the column `score` instead of
# `weight`, contributions `contribution`.


GATED: tuple[Field[Any], ...] = (
    Field("gate", float, "The share that a gate after softmax lets through there.", optional=True),
    Field("passed", float, "The share of the length that passes.", optional=True),
)


def _pair(value: Field[Any]) -> tuple[Field[Any], ...]:
    """The fields of both tokens around that of their weight."""
    return (
        Field("query", int, "The position of the query."),
        Field("query_token", str),
        Field("key", int, "The position of the key."),
        Field("key_token", str),
        value,
        *GATED,
        Field("query_exact", str, EXACT_TEXT),
        Field("key_exact", str, EXACT_TEXT),
        *PLACED,
        *TIMED,
    )


OF_HEAD: tuple[Field[Any], ...] = LINE, Field("layer", int, LAYER), Field("head", int, HEAD)
OF_MAP: tuple[Field[Any], ...] = (
    LINE,
    Field("layer", int | str, f"{LAYER[:-1]}; the name of a reduction over layers."),
    Field("head", int | str, "The head in its layer; the name of a reduction over heads."),
)
LINKS = Fields[Any](
    "LinkRow",
    "How much a query attends to a key in one head.",
    (*OF_MAP, *_pair(Field("weight", float))),
)
SCORES = Fields[Any](
    "ScoreRow",
    "With --scores: how well a key matches a query in one head.",
    (*OF_HEAD, *_pair(Field("score", float, "Before mask and softmax."))),
)
CONTRIBUTIONS = Fields[Any](
    "ContributionRow",
    "How much a query attends to a key, with --contribution: the share of what the head writes.",
    (
        *OF_MAP,
        *_pair(Field("contribution", float, "Below 0: against what the head writes in all.")),
    ),
)
IMPLICIT = Fields[Any](
    "ImplicitRow",
    "With --kind implicit: how much of a key's input goes into a query's output in one head.",
    (*OF_HEAD, *_pair(Field("implicit_weight", float, "M of y = M·x + D·x; it has a sign."))),
)
ERRORS = Fields[Any](
    "ErrorRow",
    "How much a query attends to a key in one head: the standard error of a mean over texts.",
    (*OF_MAP, *_pair(Field("error", float, "The standard error of the mean weight."))),
)
_NAMES = tuple(field.name for field in LINKS.all if field not in (*GATED, *PLACED, *TIMED))
COLUMNS, EXACT = _NAMES[:-2], _NAMES[-2:]
CHUNK = 32_768  # links in one chunk: a few megabytes at most


def row_chunks(exhibit: Exhibit, request: "OutputRequest") -> Iterator[str]:
    """The links of every map of an exhibit as jsonl, csv or tsv, some thousand rows at a time.

    The exhibit's filters decide which links there are; a single text is line 1.
    """
    gates = exhibit.gates
    gated = () if gates is None else tuple(field.name for field in GATED)
    names = [*COLUMNS[:-1], exhibit.value_name, *gated, *EXACT]
    names += [field.name for field in places_in(exhibit.capture)]
    form, line = request.format, request.line
    if form in SEPARATORS and request.first:
        yield SEPARATORS[form].join(names) + "\n"
    for n, head_map in enumerate(exhibit.maps):
        links = links_of(exhibit, head_map)
        beside = {} if gates is None else dict(zip(exhibit.queries, gates[:, n].T, strict=True))
        for start in range(0, len(links), CHUNK):
            part = slice(start, start + CHUNK)
            chunk = Links(links.query[part], links.key[part], links.weight[part])
            yield _rows_of(exhibit, head_map, chunk, line or 1, form, names, beside)


def _rows_of(
    exhibit: Exhibit,
    head_map: Map,
    links: Links,
    line: int,
    form: str,
    names: Sequence[str],
    beside: Mapping[int, Sequence[float]],
) -> str:
    """One row per link: where it is, its query, its key, its weight, and the tokens' exact texts.

    The fields beside a weight are made once for each token and not for each link, so that a
    million rows take about a second. `beside`: the fields beside the weights of a query.
    """
    json = form == "jsonl"
    gap = ", " if json else SEPARATORS[form]
    named = [f'"{name}": ' if json else "" for name in names]
    label, exact = to_json, to_json
    if not json:
        label, exact = partial(cell, separator=gap), partial(printable_cell, separator=gap)

    def columns(first: int, *values: object) -> str:
        """Values of the columns from one on, with their names and the gap behind each."""
        return "".join(f"{named[n]}{value}{gap}" for n, value in enumerate(values, start=first))

    place = [to_json(each) if json else each for each in head_map.place]
    at = next(n for n, name in enumerate(names) if name == EXACT[-1])
    start, end = ("{" if json else "") + columns(0, line, *place), "}\n" if json else "\n"
    tokens = exhibit.capture.query_tokens
    places = np.unique(links.query).tolist()
    queries = {i: start + columns(3, i, label(tokens[i].label)) for i in places}
    after_query = {
        i: gap + columns(8, *map(str, beside.get(i, ())), exact(tokens[i].exact)) for i in places
    }
    tokens, places = exhibit.capture.key_tokens, np.unique(links.key).tolist()
    keys = {i: columns(5, i, label(tokens[i].label)) + named[7] for i in places}
    after_key = {i: f"{named[at]}{exact(tokens[i].exact)}" for i in places}
    for i in places:
        boxed = place_of(exhibit.capture, tokens[i]) if len(named) > at + 1 else ()
        values = (to_json(each) if json or each is not None else "" for each in boxed)
        after_key[i] += "".join(f"{gap}{named[n]}{v}" for n, v in enumerate(values, at + 1)) + end
    rows = zip(links.query.tolist(), links.key.tolist(), map(str, links.weight), strict=True)
    return "".join(
        [f"{queries[q]}{keys[k]}{weight}{after_query[q]}{after_key[k]}" for q, k, weight in rows]
    )


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
    return {
        "layer": np.repeat(_places(layer), sizes),
        "head": np.repeat(_places(head), sizes),
        "query": query,
        "query_token": np.array([token.label for token in queries], object)[query],
        "key": key,
        "key_token": np.array([token.label for token in keys], object)[key],
        exhibit.value_name: weight,
        **_gate_columns(exhibit, links),
        "query_exact": np.array([token.exact for token in queries], object)[query],
        "key_exact": np.array([token.exact for token in keys], object)[key],
        **_placed_columns(exhibit.capture, key),
    }


def _placed_columns(capture: Capture, key: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The places that keys stand for, NaN for others; nothing of a text."""
    if not (fields := places_in(capture)):
        return {}
    placed = np.array([place_of(capture, token) for token in capture.key_tokens], float)
    return {field.name: placed[key, n] for n, field in enumerate(fields)}


def _gate_columns(exhibit: Exhibit, links: Sequence[Links]) -> dict[str, NDArray[Any]]:
    """The share that gates let through beside each link; nothing without a gate."""
    gates = exhibit.gates
    if gates is None:
        return {}
    place = np.zeros(len(exhibit.capture.query_tokens), np.int64)
    place[list(exhibit.queries)] = np.arange(len(exhibit.queries))
    places = [place[each.query] for each in links]
    return {
        field.name: np.concatenate([of[n, at] for n, at in enumerate(places)])
        for field, of in zip(GATED, gates, strict=True)
    }


def _places(values: tuple[int | str, ...]) -> NDArray[Any]:
    """Numbers as numbers; where a reduction is among them, objects."""
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, dtype=np.int64 if whole else object)


# An exhibit as one JSON object; `docs/formats.md` describes it.


FOUND = Fields[FoundLink](
    "FoundLink",
    "A link by which a head was picked.",
    (Field("query", int), Field("key", int), Field("weight", float)),
)
TENDENCY = Fields[Tendency](
    "TendencyObject",
    "The behaviour of most rows of a head.",
    (
        Field("kind", str, "", lambda tendency: tendency.habit),
        Field("rows", int),
        Field("of", int),
        Field("key", int | None),
    ),
)
FINDING = Fields[Finding](
    "FindingObject",
    "The behaviour here of the head that was picked.",
    (
        Field("behaviour", str | None),
        Field("links", list_of(FOUND)),
        Field("tendency", (TENDENCY, NoneType)),
    ),
)
LOSS = Fields[TextLoss](
    "LossObject",
    "How well the built-in model predicts the text.",
    (
        Field("nats", float),
        Field("characters", int),
        Field("limit", float),
        Field("nats_per_character", float, "", lambda loss: loss.per_character),
        Field("strange", bool, "Whether the text is not of the model's world."),
    ),
)
HEAD_SHOWN = Fields[tuple[Map, Sequence[NamedHead]]](
    "PatternHead",
    "What a pattern is of.",
    (
        Field(
            "layer",
            int | str,
            "A number; the reduction's name where it is over layers.",
            lambda shown: shown[0].place[0],
        ),
        Field(
            "head",
            int | str,
            "A number; the reduction's name where it is over heads.",
            lambda shown: shown[0].place[1],
        ),
        Field("name", str, "", lambda shown: shown[0].label),
        Field("behaviours", list[str], "", lambda shown: [each.behaviour for each in shown[1]]),
        Field("known_for", list[str], "", lambda shown: [each.title for each in shown[1]]),
    ),
)


def _tokens(name: str, *, one_list: bool) -> Field[Capture]:
    """The tokens of a side; those of both where queries and keys are the same tokens."""

    def of(run: Capture) -> object:
        same = run.kind != "cross" and run.key_tokens == run.query_tokens
        tokens = run.key_tokens if name == "key_tokens" else run.query_tokens
        return tokens if same == one_list else ABSENT

    return Field(name, list_of(TOKEN), "", of, optional=True)


RUN = fields_at(
    "0.capture",
    Field("model", MODEL),
    VERSIONS,
    Field("made", MADE, "", lambda run: how_made([run]), optional=True),
    Field("text", str),
    Field("bos", bool),
    Field("left_out", list[int], "Tokens that were cut off before and after."),
    Field("kind", Kind),
    TARGET,
    UNKNOWN,
    Field("causal", bool),
    Field("sinks", bool, "Whether rows may sum to less than 1."),
    TRANSFORMS,
    _tokens("tokens", one_list=True),
    _tokens("query_tokens", one_list=False),
    _tokens("key_tokens", one_list=False),
)
"""What was run."""
SHOWN = fields_at(
    "0",
    Field("about", str, "For a person.", about),
    Field(
        "notes",
        list[str],
        "For a person.",
        lambda shown: notes_of([shown.capture], beside_notes(shown)),
    ),
    Field("finding", (FINDING, NoneType)),
    Field("loss", (LOSS, NoneType), "", lambda shown: shown.capture.loss),
    Field(
        "heads",
        list_of(HEAD_SHOWN),
        "",
        lambda shown: [(m, shown.capture.named(m.layer, m.head)) for m in shown.maps],
    ),
    Field("queries", list[int], "The positions of the rows."),
    Field("keys", list[int], "The positions of the columns."),
    Field("top", int | None),
    Field("min", float | None, "", lambda shown: None if shown.least == -inf else shown.least),
    if_any("skip_distances", list[int], "", lambda shown: shown.skip),
    Field(
        "gates",
        list[list[list[float]]],
        "gates[0][h][i]: the share that a gate after the softmax lets through at queries[i]; "
        "gates[1]: the share of the written vector's length that passes.",
        lambda shown: ABSENT if shown.gates is None else shown.gates.tolist(),
        optional=True,
    ),
    Field(
        "patterns",
        list[list[list[float | None]]],
        "patterns[h][i][j]; null: left out by a filter.",
        lambda shown: ABSENT,  # they are streamed
    ),
)
"""What is shown of it; the record is an exhibit, and its line if it is one of several."""
SHOW = Fields[tuple[Exhibit, int | None]](
    "ShowObject",
    "`attnviz show -f json`.",
    (
        *object_fields("show"),
        if_any("line", int, "With --lines: the number of the input line.", at("1")),
        *RUN,
        *SHOWN,
    ),
)
JSON = JsonOutput((LINKS, SCORES, CONTRIBUTIONS, IMPLICIT, ERRORS), (SHOW,), rows_as_json=False)


def json_chunks(exhibit: Exhibit, request: "OutputRequest") -> Iterator[str]:
    """An exhibit as one JSON object, some rows at a time, ended by a newline.

    With a line number the object is on one line of its own; without it, it is spread over lines
    for a person to read.
    """
    line = request.line
    wrap = "\n" if line is None else ""
    gap = "\n" if line is None else " "
    yield "{" + wrap
    for name, value in SHOW.row((exhibit, line)).items():
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


def _rows(exhibit: Exhibit, head_map: Map) -> Iterator[str]:
    """The rows of the exhibit's queries, in the columns of its keys.

    Weights that the filters leave out are null, so that every number is one that the model
    computed. A pair that the mask forbids keeps its weight in the model: 0.0.
    """
    whole, picked = whole_map(head_map).weights, np.ix_(list(exhibit.queries), list(exhibit.keys))
    weights = whole[picked]
    kept = np.isfinite(weights)  # JSON has no infinity
    kept &= ~np.isin(exhibit.keys, head_map.dropped)
    if exhibit.filtered:
        links, passed = links_of(exhibit, head_map), np.zeros_like(whole, dtype=np.bool_)
        passed[links.query, links.key] = True
        kept &= passed[picked] | ~exhibit.capture.allowed()[picked]
    for row, known in zip(weights, kept, strict=True):
        # most rows are known in full, and written faster so
        pairs = zip(row, known, strict=True)
        numbers = map(str, row) if known.all() else (str(n) if k else "null" for n, k in pairs)
        yield "[" + ", ".join(numbers) + "]"
