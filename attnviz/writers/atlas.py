"""All that a scan found of one head, as one JSON object or as rows."""

from collections.abc import Iterator, Mapping
from typing import Any

from attnviz.data.atlas import SCORES, Example, HeadAtlas
from attnviz.records.rows import SCHEMA, to_json

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
