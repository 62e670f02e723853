"""The tables of a scan's result as Parquet: their columns, written and read."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.data.atlas import SCORES, Atlas, Bin, Example, HeadAtlas, TokenMass
from attnviz.errors import InputError, UsageError
from attnviz.scan.plan import read_manifest
from attnviz.writers.atomic import write_bytes

TABLES = ("heads", "histograms", "tokens", "examples")


def import_parquet() -> None:
    """See that pyarrow is installed.

    Raises:
        UsageError: it is not.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise UsageError(
            "the result of a scan needs pyarrow, which is not installed",
            "install it: pip install 'attnviz[scan]'",
        ) from None


@cache
def columns(table: str) -> Any:
    """The columns of a table, as pyarrow's schema."""
    import pyarrow as pa

    text, count, number = pa.string(), pa.int64(), pa.float64()
    scores = [
        column
        for name in SCORES
        for column in ((name, number), (f"{name}_error", number), (f"{name}_documents", count))
    ]
    counted = [("documents", count), ("windows", count), ("tokens", count)]
    of: dict[str, Sequence[tuple[str, Any]]] = {
        "heads": [("head", text), ("layer", count), ("number", count), *scores, *counted],
        "histograms": [
            *(("head", text), ("histogram", text)),
            *(("start", number), ("end", number), ("value", number)),
        ],
        "tokens": [
            *(("head", text), ("side", text), ("rank", count)),
            *(("query", text), ("key", text), ("mass", number), ("windows", count)),
        ],
        "examples": [
            *(("head", text), ("kind", text), ("bin", count), ("largest", number)),
            *(("path", text), ("start", count), ("window", count)),
            *(("tokens", pa.list_(text)), ("queries", pa.list_(pa.int32()))),
            *(("keys", pa.list_(pa.int32())), ("weights", pa.list_(pa.float32()))),
        ],
    }
    return pa.schema(of[table])


def write_table(folder: Path, table: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a table of the result, sorted by head, in groups of rows that one head fits in.

    Raises:
        UsageError: pyarrow is not installed.
        OutputError: it cannot be written.
    """
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    made = pa.Table.from_pylist([dict(row) for row in rows], schema=columns(table))
    pq.write_table(made, sink, row_group_size=1 << 12, compression="zstd")
    write_bytes(folder / f"{table}.parquet", sink.getvalue().to_pybytes())


def read_atlas(folder: Path) -> Atlas:
    """The result of a scan.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: there is none, or it is damaged.
    """
    manifest = read_manifest(folder)
    rows = _read(folder, "heads")
    if not rows:
        raise InputError(f"{str(folder)!r} holds no heads", "scan again")
    return Atlas(str(manifest.get("model", "")), rows, manifest)


def read_head(folder: Path, row: Mapping[str, Any]) -> HeadAtlas:
    """All that was found of one head; `row`: its row of the atlas.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: the result is damaged.
    """
    head = str(row["head"])
    histograms: dict[Any, list[Bin]] = {}
    for each in _read(folder, "histograms", head):
        made = Bin(each["start"], each["end"], each["value"])
        histograms.setdefault(each["histogram"], []).append(made)
    tokens: dict[Any, list[TokenMass]] = {}
    sampled = 0
    for each in _read(folder, "tokens", head):
        found = TokenMass(each["query"], each["key"], each["mass"])
        tokens.setdefault(each["side"], []).append(found)
        sampled = each["windows"]
    examples = [_example(each) for each in _read(folder, "examples", head)]
    return HeadAtlas(row, histograms, tokens, examples, sampled)


def _example(row: Mapping[str, Any]) -> Example:
    queries, keys = (np.array(row[name], np.int64) for name in ("queries", "keys"))
    named = {name: row[name] for name in ("kind", "bin", "largest", "path", "start", "window")}
    weights = np.array(row["weights"], np.float32)
    return Example(
        **named, tokens=tuple(row["tokens"]), queries=queries, keys=keys, weights=weights
    )


def _read(folder: Path, table: str, head: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table, or those of one head."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{table}.parquet"
    try:
        chosen = None if head is None else [("head", "==", head)]
        found = pq.read_table(path, filters=chosen)
        rows: list[dict[str, Any]] = found.to_pylist()
    except (OSError, pa.ArrowException):
        raise InputError(
            f"{str(folder)!r} holds no finished scan", "let attnviz scan finish it"
        ) from None
    if not found.schema.equals(columns(table)):
        raise InputError(f"{str(path)!r} is no table of {table}", "scan again")
    return rows
