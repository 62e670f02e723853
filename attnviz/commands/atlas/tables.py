"""The tables of a scan's result as Parquet: their columns, written and read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias

import numpy as np

from attnviz.commands.atlas.counted import atlas_so_far, bin_rows
from attnviz.commands.atlas.folder import AGAIN, Store, is_locked, is_whole, read_manifest
from attnviz.commands.atlas.record import (
    Atlas,
    Bin,
    HeadAtlas,
    HeadExample,
    MeanOver,
    TokenMass,
    head_of,
    row_of_means,
)
from attnviz.commands.atlas.rows import BIN, EXAMPLE, MASS, TABLES
from attnviz.errors import InputError, missing, option
from attnviz.records.heads import Head
from attnviz.records.restore import model_of_dict
from attnviz.records.rows import Fields, kinds_of

AT_ONCE = {"histograms": 1 << 12, "tokens": 1 << 12, "examples": 16}
"""How many rows are in memory while a table is read head by head; an example is large."""
GROUP = {"heads": 1 << 12, "histograms": 1 << 12, "tokens": 1 << 10, "examples": 1 << 6}
"""Rows of a group, of which a reader of one head reads few."""
SAID = b"attnviz"
"""The entry in which a table says how it was made, as JSON, and a part of one its scan and task."""
StoredRow: TypeAlias = Mapping[str, Any]


def import_parquet() -> None:
    """See that pyarrow is installed.

    Raises:
        UsageError: it is not.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise missing("the result of a scan needs pyarrow", "scan") from None


@cache
def columns(table: str) -> Any:
    """The columns of a table, as pyarrow's schema."""
    import pyarrow as pa

    text = pa.string()
    known = {int: pa.int64(), float: pa.float64(), list[str]: pa.list_(text)}
    known |= {list[int]: pa.list_(pa.int32()), list[float]: pa.list_(pa.float32())}
    kinds = {field.name: kinds_of(field.type)[0] for field in TABLES[table]}
    return pa.schema([(name, known.get(kind, text)) for name, kind in kinds.items()])


def between(first: Head, last: Head) -> Any:
    """The filter for pyarrow: rows of the heads from `first` to `last`."""
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

    sink, schema = pa.BufferOutputStream(), columns(table)
    arrays = [_array([row.get(field.name) for row in rows], field.type) for field in schema]
    content = pa.Table.from_arrays(arrays, schema=schema)
    content = content.replace_schema_metadata({SAID: said} if said else None)
    pq.write_table(content, sink, row_group_size=GROUP[table], compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _array(values: Sequence[Any], kind: Any) -> Any:
    """A column; lists of numbers, of which an example has thousands, from their arrays."""
    import pyarrow as pa

    if not pa.types.is_list(kind) or not all(isinstance(each, np.ndarray) for each in values):
        return pa.array(values, kind)
    number = kind.value_type.to_pandas_dtype()
    flat = np.concatenate([np.empty(0, number), *values]).astype(number, copy=False)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(flat))


def part_of(store: Store, name: str) -> str | None:
    """The scan and task of a part of a table; None where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(name) as opened:
            origin = (pq.read_schema(opened).metadata or {}).get(SAID, b"")
    except (OSError, pa.ArrowException):
        return None
    return bytes(origin).decode(errors="replace")


def read_atlas(folder: str | Path, mean: MeanOver = "documents", *, partial: bool = False) -> Atlas:
    """The result of a scan; `folder`: a path, or a URL that fsspec opens; `mean`: which is shown.

    `partial`: what is counted so far, where the scan is not finished.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: there is none, or it is damaged.
    """
    folder = str(folder)
    if partial and "result" not in (so_far := read_manifest(Store(folder))):
        return atlas_so_far(Store(folder), so_far, mean)
    manifest = _checked(folder, "heads")
    rows = [row_of_means(row, mean) for row in _read(folder, "heads")]
    if not rows:
        raise InputError(f"{folder!r} holds no heads", "scan again")
    try:
        (model,) = map(model_of_dict, manifest["result"]["made"]["models"])
    except (LookupError, TypeError, ValueError):
        raise InputError(f"the manifest in {folder!r} is damaged", AGAIN) from None
    made = manifest["result"]["made"]
    return Atlas(str(manifest.get("model", "")), rows, manifest, model, folder, made)


OF_A_HEAD = "histograms", "tokens", "examples"


def read_head(atlas: Atlas, row: StoredRow) -> HeadAtlas:
    """All that was found of one head; `row`: its row of the atlas."""
    if atlas.total is not None:
        return next(each for each in read_heads(atlas) if each.head == head_of(row))
    _checked(atlas.folder, *OF_A_HEAD)
    return _head(atlas, row, (_read(atlas.folder, table, head_of(row)) for table in OF_A_HEAD))


def read_heads(atlas: Atlas) -> Iterator[HeadAtlas]:
    """All that was found of each head, one after the other; the tables are read once.

    The rows of the atlas are in the order of the table.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: the result is damaged.
    """
    if atlas.total is not None:
        bins = groupby(bin_rows(atlas.total), key=head_of)
        for row, (_, own) in zip(sorted(atlas.rows, key=head_of), bins, strict=True):
            yield _head(atlas, row, ([*own], [], []))  # tokens and examples come last
        return
    _checked(atlas.folder, *OF_A_HEAD)
    tables = (_by_head(atlas.folder, table, atlas.heads) for table in OF_A_HEAD)
    for row, *parts in zip(atlas.rows, *tables, strict=True):
        yield _head(atlas, row, parts)


def _by_head(folder: str, table: str, heads: Iterable[Head]) -> Iterator[list[StoredRow]]:
    """The rows of each head in turn, from a table that is sorted by head and may lack some."""
    groups = groupby(_batches(folder, table), key=head_of)
    group = next(groups, None)
    for head in heads:
        if group is None or group[0] != head:
            yield []
            continue
        yield list(group[1])
        group = next(groups, None)
    if group is not None:
        raise InputError(f"the tables of {folder!r} are of other heads", "scan again")


def _checked(folder: str, *tables: str) -> Mapping[str, Any]:
    """The manifest of a finished scan, whose tables are as it wrote them."""
    store = Store(folder)
    manifest = read_manifest(store)
    if "result" not in manifest:
        raise InputError(f"{store.where!r} holds no finished scan", _what_to_do(store))
    for table in tables:
        name = f"{table}.parquet"
        if not is_whole(store, manifest, name):
            raise _damaged(store, name)
    return manifest


def _what_to_do(store: Store) -> str:
    """How a scan that is not finished goes on: it runs, was stopped, or met too many bad files."""
    so_far = f"or see what is counted with {option('partial', True)}"
    if is_locked(store):
        return f"wait for the scan that runs there, {so_far}"
    bad = (store.state("skipped.jsonl") or {"bytes": 0})["bytes"]
    more = f"a larger {option('max_bad')} if it ended for the documents that skipped.jsonl lists"
    return f"{AGAIN}, with {more}, {so_far}" if bad else f"{AGAIN}, {so_far}"


def _damaged(store: Store, name: str) -> InputError:
    return InputError(f"{store.url(name)!r} is missing, damaged, or of another scan", AGAIN)


def _head(atlas: Atlas, row: StoredRow, parts: Iterable[Sequence[StoredRow]]) -> HeadAtlas:
    """A head from its row of each table in `OF_A_HEAD`."""
    bins, masses, examples = parts
    histograms: dict[Any, list[Bin]] = {}
    for each in bins:
        histograms.setdefault(each["histogram"], []).append(Bin(**_values_of(BIN, each)))
    tokens: dict[Any, list[TokenMass]] = {}
    for each in masses:
        tokens.setdefault(each["side"], []).append(TokenMass(**_values_of(MASS, each)))
    sampled = masses[-1]["windows"] if masses else 0
    return HeadAtlas(row, histograms, tokens, list(map(_example, examples)), sampled, atlas.model)


def _values_of(fields: Fields[Any], row: StoredRow) -> dict[str, Any]:
    return {field.name: row[field.name] for field in fields.all}


def _example(row: StoredRow) -> HeadExample:
    queries, keys = (np.array(row[name], np.int64) for name in ("queries", "keys"))
    weights, tokens = np.array(row["weights"], np.float32), tuple(row["tokens"])
    places = np.concatenate([queries, keys])
    inside = ((places >= 0) & (places < len(tokens))).all()
    if not (len(queries) == len(keys) == len(weights) and inside and np.isfinite(weights).all()):
        raise InputError("a table of examples has links that are none", "scan again")
    links = {"tokens": tokens, "queries": queries, "keys": keys, "weights": weights}
    return HeadExample(**{**_values_of(EXAMPLE, row), **links})


def _batches(folder: str, table: str) -> Iterator[StoredRow]:
    """The rows of a table, a few of which are in memory; their lists of numbers as arrays."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    store, name = Store(folder), f"{table}.parquet"
    try:
        with store.open(name) as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            for group in range(file.num_row_groups):  # what was read stays until its reader ends
                for batch in file.iter_batches(AT_ONCE[table], row_groups=[group]):
                    _check(batch, store.url(name), table)
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


def _read(folder: str, table: str, head: Head | None = None) -> list[dict[str, Any]]:
    """The rows of a table, or those of one head."""
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    store, name = Store(folder), f"{table}.parquet"
    try:
        chosen = None if head is None else between(head, head)
        with store.open(name) as opened:
            # threads of its own that hold a Python file abort a process that ends
            chosen_rows = pq.read_table(opened, filters=chosen, use_threads=False, pre_buffer=False)
        _check(chosen_rows, store.url(name), table)
        rows: list[dict[str, Any]] = chosen_rows.to_pylist()
    except (OSError, pa.ArrowException):
        raise _damaged(store, name) from None
    return rows


def _check(batch: Any, path: str, table: str) -> None:
    """See that rows are of this table, and that no value is missing, in lists neither."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batch.schema.equals(columns(table)):
        raise InputError(f"{path!r} is no table of {table}", "scan again")
    for field, column in zip(TABLES[table], batch.columns, strict=True):
        flat = pc.list_flatten(column) if pa.types.is_list(column.type) else column
        if (column.null_count or flat.null_count) and NoneType not in kinds_of(field.type):
            raise InputError(f"{path!r} has rows without {field.name}", "scan again")
