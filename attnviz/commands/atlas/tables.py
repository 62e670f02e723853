"""The tables of a scan's result as Parquet: their columns, written and read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args

import numpy as np

from attnviz.commands.atlas.folder import AGAIN, TABLES, Store, is_whole, read_manifest
from attnviz.commands.atlas.record import Atlas, Bin, HeadAtlas, HeadExample, TokenMass
from attnviz.commands.atlas.rows import ATLAS_ROW, BIN, EXAMPLE, MASS
from attnviz.errors import InputError, missing
from attnviz.records.heads import Head
from attnviz.records.restore import model_of_dict
from attnviz.records.rows import Fields

AT_ONCE = {"histograms": 1 << 12, "tokens": 1 << 12, "examples": 16}
"""How many rows are in memory while a table is read head by head; an example is large."""
Table: TypeAlias = Sequence[Mapping[str, Any]]
Folder: TypeAlias = str | Path
"""The folder of a scan: a path, or a URL that fsspec opens."""
GROUP = {"heads": 1 << 12, "histograms": 1 << 12, "tokens": 1 << 10, "examples": 1 << 6}
"""Rows of a group, of which a reader of one head reads few."""
SAID = b"attnviz"
"""Where a table says how it was made, as JSON, and a part of one of which scan and task it is."""


def import_parquet() -> None:
    """See that pyarrow is installed.

    Raises:
        UsageError: it is not.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise missing("the result of a scan needs pyarrow", "scan") from None


def _types(fields: Fields[Any]) -> dict[str, Any]:
    return {field.name: field.type for field in fields.all}


PLACE = {"layer": int, "head": int}
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "heads": _types(ATLAS_ROW),
    "histograms": {**PLACE, "histogram": str, **_types(BIN)},
    "tokens": {**PLACE, "side": str, "rank": int, **_types(MASS), "windows": int},
    "examples": {**PLACE, "rank": int | None, **_types(EXAMPLE)},
}
"""The columns of each table, and the types of their values."""


@cache
def columns(table: str) -> Any:
    """The columns of a table, as pyarrow's schema."""
    import pyarrow as pa

    text = pa.string()
    known = {int: pa.int64(), float: pa.float64(), list[str]: pa.list_(text)}
    known |= {list[int]: pa.list_(pa.int32()), list[float]: pa.list_(pa.float32())}
    kinds = {name: _kinds(kind)[0] for name, kind in COLUMNS[table].items()}
    return pa.schema([(name, known.get(kind, text)) for name, kind in kinds.items()])


def _kinds(kind: Any) -> tuple[Any, ...]:
    """The types that a value may have."""
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


def place_of(row: Mapping[str, Any]) -> Head:
    """The head of a row of any table."""
    return Head(row["layer"], row["head"])


def between(first: Head, last: Head) -> Any:
    """What pyarrow filters by: rows of the heads from `first` to `last`."""
    import pyarrow.compute as pc

    layer, head = pc.field("layer"), pc.field("head")
    after = (layer > first.layer) | ((layer == first.layer) & (head >= first.head))
    before = (layer < last.layer) | ((layer == last.layer) & (head <= last.head))
    return after & before


def table_bytes(table: str, rows: Sequence[Mapping[str, object]], said: str = "") -> bytes:
    """A table of the result, or a part of one, as a Parquet file; `said`: see `SAID`."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    made = pa.Table.from_pylist([dict(row) for row in rows], schema=columns(table))
    made = made.replace_schema_metadata({SAID: said} if said else None)
    pq.write_table(made, sink, row_group_size=GROUP[table], compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def part_of(store: Store, name: str) -> str | None:
    """Of which scan and task a part of a table is; None where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(name) as opened:
            said = (pq.read_schema(opened).metadata or {}).get(SAID, b"")
    except (OSError, pa.ArrowException):
        return None
    return bytes(said).decode(errors="replace")


def read_atlas(folder: Folder) -> Atlas:
    """The result of a scan.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: there is none, or it is damaged.
    """
    manifest = _checked(folder, TABLES[:1])
    rows = _read(folder, "heads")
    if not rows:
        raise InputError(f"{str(folder)!r} holds no heads", "scan again")
    made = manifest["result"]["made"]
    try:
        (model,) = map(model_of_dict, made["models"])
    except (LookupError, TypeError, ValueError):
        raise InputError(f"the manifest in {str(folder)!r} is damaged", AGAIN) from None
    return Atlas(str(manifest.get("model", "")), rows, manifest, model)


def read_head(folder: Folder, row: Mapping[str, Any]) -> HeadAtlas:
    """All that was found of one head; `row`: its row of the atlas."""
    head = place_of(row)
    _checked(folder, TABLES[1:])
    return _head(row, *(_read(folder, table, head) for table in TABLES[1:]))


def read_heads(folder: Folder, rows: Iterable[Mapping[str, Any]]) -> Iterator[HeadAtlas]:
    """All that was found of each head, one after the other; the tables are read once.

    `rows`: those of the atlas, in the order of the table.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: the result is damaged.
    """
    _checked(folder, TABLES[1:])
    tables = [_Parts(_batches(folder, table)) for table in TABLES[1:]]
    for row in rows:
        yield _head(row, *(table.of(place_of(row)) for table in tables))
    if any(table.left for table in tables):
        raise InputError(f"the tables of {str(folder)!r} are of other heads", "scan again")


def _checked(folder: Folder, tables: Sequence[str]) -> Mapping[str, Any]:
    store = Store(str(folder))
    manifest = read_manifest(store)
    if "result" not in manifest:
        raise InputError(f"{store.where!r} holds no finished scan", AGAIN)
    for table in tables:
        name = f"{table}.parquet"
        if not is_whole(store, manifest, name):
            raise _damaged(store, name)
    return manifest


def _damaged(store: Store, name: str) -> InputError:
    return InputError(f"{store.url(name)!r} is missing, damaged, or of another scan", AGAIN)


def _head(row: Mapping[str, Any], bins: Table, masses: Table, examples: Table) -> HeadAtlas:
    histograms: dict[Any, list[Bin]] = {}
    for each in bins:
        made = Bin(each["start"], each["end"], each["value"])
        histograms.setdefault(each["histogram"], []).append(made)
    tokens: dict[Any, list[TokenMass]] = {}
    sampled = 0
    for each in masses:
        found = TokenMass(each["query"], each["key"], each["mass"])
        tokens.setdefault(each["side"], []).append(found)
        sampled = each["windows"]
    return HeadAtlas(row, histograms, tokens, list(map(_example, examples)), sampled)


class _Parts:
    """The rows of a table, which is sorted by head, head by head."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._groups = groupby(rows, key=place_of)
        self._next = next(self._groups, None)

    @property
    def left(self) -> bool:
        """Whether there are rows of a head that nobody asked for."""
        return self._next is not None

    def of(self, head: Head) -> Table:
        """The rows of this head, where it is the next one; else none."""
        if self._next is None or self._next[0] != head:
            return []
        rows = list(self._next[1])
        self._next = next(self._groups, None)
        return rows


def _example(row: Mapping[str, Any]) -> HeadExample:
    queries, keys = (np.array(row[name], np.int64) for name in ("queries", "keys"))
    weights, tokens = np.array(row["weights"], np.float32), tuple(row["tokens"])
    places = np.concatenate([queries, keys])
    inside = ((places >= 0) & (places < len(tokens))).all()
    if not (len(queries) == len(keys) == len(weights) and inside and np.isfinite(weights).all()):
        raise InputError("a table of examples has links that are none", "scan again")
    numbers = ("bin", "largest", "apart", "start", "window")
    named = {name: row[name] for name in ("kind", "path", *numbers)}
    return HeadExample(**named, tokens=tokens, queries=queries, keys=keys, weights=weights)


def _batches(folder: Folder, table: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a table, a few of which are in memory; their lists of numbers as arrays."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    store, name = Store(str(folder)), f"{table}.parquet"
    try:
        with store.open(name) as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            _check(file.schema_arrow, store.url(name), table)
            for group in range(file.num_row_groups):  # what was read stays until its reader ends
                for batch in file.iter_batches(AT_ONCE[table], row_groups=[group]):
                    listed = map(_values, batch.columns)
                    for values in zip(*listed, strict=True):
                        yield dict(zip(batch.schema.names, values, strict=True))
    except (OSError, pa.ArrowException):
        raise _damaged(store, name) from None


def _values(column: Any) -> Sequence[Any]:
    """The values of a column; lists of numbers as arrays, as a head has 100,000 links."""
    import pyarrow as pa

    if not pa.types.is_list(column.type) or pa.types.is_string(column.type.value_type):
        values: list[Any] = column.to_pylist()
        return values
    return np.split(column.values.to_numpy(), column.offsets.to_numpy()[1:-1])


def _read(folder: Folder, table: str, head: Head | None = None) -> list[dict[str, Any]]:
    """The rows of a table, or those of one head."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    store, name = Store(str(folder)), f"{table}.parquet"
    try:
        chosen = None if head is None else between(head, head)
        with store.open(name) as opened:
            # threads of its own that hold a Python file abort a process that ends
            found = pq.read_table(opened, filters=chosen, use_threads=False, pre_buffer=False)
        rows: list[dict[str, Any]] = found.to_pylist()
    except (OSError, pa.ArrowException):
        raise _damaged(store, name) from None
    _check(found.schema, store.url(name), table)
    _check_values(dict(zip(found.column_names, found.columns, strict=True)), store.url(name), table)
    return rows


def _check(schema: Any, path: str, table: str) -> None:
    if not schema.equals(columns(table)):
        raise InputError(f"{path!r} is no table of {table}", "scan again")


def _check_values(columns: Mapping[str, Any], path: str, table: str) -> None:
    """See that no value is missing, in lists neither."""
    for name, column in columns.items():
        import pyarrow.compute as pc

        flat = pc.list_flatten(column) if str(column.type).startswith("list") else column
        missing = column.null_count or flat.null_count
        if missing and NoneType not in _kinds(COLUMNS[table][name]):
            raise InputError(f"{path!r} has rows without {name}", "scan again")
