"""Results of scans made by hand: small tables and a manifest."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnviz.corpus.folder import ADDED, MANIFEST, SCHEMA, Store, finish
from attnviz.corpus.record import SCORES
from attnviz.corpus.tables import columns, table_bytes
from attnviz.records.capture import ModelIdentity
from attnviz.records.heads import Head
from attnviz.records.rows import made_to_dict
from attnviz.records.tokens import CallOptions

HEADS = tuple((layer, head) for layer in (2, 3) for head in range(3))
EDGES = (0, 1, 2, 4, 8, 16, 32, 64)
TOKENS = ("<bos>", " a", " fluffy", " blue", " creature", " ran", ".")
LINKS = (
    *((0, 0, 1.0), (1, 0, 0.6), (1, 1, 0.4), (2, 0, 0.9)),
    *((4, 0, 0.05), (4, 2, 0.93), (4, 3, 0.02)),
)
"""Query, key, weight: creature attends to fluffy."""

MODEL = ModelIdentity("org/tiny", "gpt2", (3, 3, 3, 3), 100, "native")

Score = Callable[[int, int, str], float | None]


def write_table(folder: Path, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    (folder / f"{table}.parquet").write_bytes(table_bytes(table, rows))


def made_scan(folder: Path, score: Score | None = None, **asked: Any) -> Path:
    """The folder of a scan of `HEADS`, each with the same histograms, tokens and windows.

    Args:
        folder: is made.
        score: of a layer, a head and a name; None for values that are drawn.
        asked: what the manifest says instead.
    """
    folder.mkdir(parents=True)
    draw = random.Random(0)

    def value(layer: int, head: int, name: str) -> float | None:
        return score(layer, head, name) if score else draw.random()

    heads = asked.pop("heads", HEADS)
    write_table(folder, "heads", [_scores(layer, head, value) for layer, head in heads])
    named = [Head(*head) for head in heads]
    write_table(folder, "histograms", [row for head in named for row in histograms(head)])
    write_table(folder, "tokens", [row for head in named for row in tokens(head)])
    write_table(folder, "examples", [row for head in named for row in examples(head)])
    manifest = {
        **{"schema": SCHEMA, "model": "org/tiny", "revision": None, "split": "file"},
        **{"key": "text", "length": 32, "dtype": "auto", "paths": ["my texts"]},
        **{"corpus": [["my texts/a.txt", 40, 7], ["my texts/b.txt", 50, 8]]},
        **asked,
    }
    return sealed(folder, manifest)


def sealed(folder: Path, asked: Mapping[str, Any] | None = None) -> Path:
    """The folder, with its files as they are in its manifest."""
    (folder / "skipped.jsonl").touch()
    manifest = asked or without_result(folder)
    made = made_to_dict((), (MODEL,), CallOptions({"length": manifest.get("length")}))
    finish(Store(str(folder)), manifest, made, skipped=0)
    return folder


def without_result(folder: Path) -> dict[str, Any]:
    """What was asked, of a manifest."""
    found = json.loads((folder / MANIFEST).read_text())
    return {name: value for name, value in found.items() if name not in ADDED}


def _scores(layer: int, head: int, value: Score) -> dict[str, Any]:
    row: dict[str, Any] = {"layer": layer, "head": head}
    row |= {"documents": 4, "windows": 5, "tokens": 60}
    for name in SCORES:
        row[name] = value(layer, head, name)
        row[f"{name}_error"] = None if row[name] is None else 0.01
        row[f"{name}_documents"] = 3 if name == "induction" else 4
    for name in (*SCORES, "strong_induction"):
        row[f"{name}_over_tokens"] = value(layer, head, f"{name}_over_tokens")
        row[f"{name}_queries"] = 20 if name == "induction" else 60
    return {**row, "largest_over_windows": 0.7654321}


def histograms(head: Head) -> list[dict[str, Any]]:
    """All weight at a distance of 0 or 1; three windows with 0.9 and more, two with 0.5."""
    rows: list[dict[str, Any]] = []
    for name in ("distance", "position"):
        for i, start in enumerate(EDGES):
            end = EDGES[i + 1] if i + 1 < len(EDGES) else None
            value = (0.25, 0.75)[i] if i < 2 else 0.0
            rows.append({"histogram": name, "start": start, "end": end, "value": value})
    for i in range(50):
        count = {25: 2.0, 46: 3.0}.get(i, 0.0)
        bounds = {"start": i / 50, "end": (i + 1) / 50}
        rows.append({"histogram": "largest", **bounds, "value": count})
    return [{**head._asdict(), **row} for row in rows]


def tokens(head: Head) -> list[dict[str, Any]]:
    """Two query tokens, two key tokens, one pair."""
    found = [
        *(("query", " creature", None, 3.5), ("query", " ran", None, 1.0)),
        *(("key", None, " fluffy", 2.5), ("key", None, "fluffy", 0.5)),
        ("pair", " creature", " fluffy", 2.25),
    ]
    return [
        {
            **head._asdict(),
            "side": side,
            "rank": i,
            "query": q,
            "key": k,
            "mass": mass,
            "windows": 5,
        }
        for i, (side, q, k, mass) in enumerate(found)
    ]


def examples(head: Head, written: tuple[str, ...] = TOKENS) -> list[dict[str, Any]]:
    """A top window, the same window again as one of its bin, and another one of a low bin."""
    queries, keys, weights = (list(each) for each in zip(*LINKS, strict=True))
    links = {"queries": queries, "keys": keys, "weights": weights}
    place = {"bin": 18, "largest": 0.93, "apart": 0.93, "path": "a.txt", "start": 0}
    whole = {**place, "tokens": list(written), **links}
    low = {"tokens": ["<bos>", " x", " y"], "queries": [2, 1], "keys": [1, 1]}
    rows: list[Mapping[str, Any]] = [
        {"kind": "top", **whole},
        {"kind": "bin", **whole},
        {
            **{
                "kind": "bin",
                "bin": 2,
                "largest": 0.12,
                "apart": 0.12,
                "path": "b.txt",
                "start": 9,
            },
            **{**low, "weights": [0.12, 0.01]},
        },
    ]
    known = set(columns("examples").names)
    made = [{**head._asdict(), "rank": i, "window": 0, **row} for i, row in enumerate(rows)]
    return [{name: row[name] for name in row if name in known} for row in made]
