"""The parts that workers left, joined to one table that is sorted by head."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

from attnviz.commands.atlas.folder import Store
from attnviz.commands.atlas.tables import GROUP, SAID, between, columns, import_parquet
from attnviz.errors import InputError
from attnviz.records.heads import Head

HEADS = 256
"""Heads whose rows are in memory at a time."""


class _Chunks(io.RawIOBase):
    """A file that is taken away as it is written."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.chunks.append(bytes(data))
        return len(self.chunks[-1])

    def taken(self) -> Iterator[bytes]:
        """What was written since the last time."""
        chunks, self.chunks = self.chunks, []
        yield from chunks


def joined(
    store: Store, table: str, parts: Sequence[str], heads: Sequence[Head], said: str
) -> Iterator[bytes]:
    """A table of the result as a Parquet file, in chunks.

    Args:
        store: the folder of the scan.
        table: which table.
        parts: the files that make it.
        heads: all heads, in order.
        said: how it was made.

    Raises:
        InputError: a part is missing or damaged.
    """
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = _Chunks()
    schema = columns(table).with_metadata({SAID: said})
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        for first in range(0, len(heads), HEADS):
            some = heads[first : first + HEADS]
            read = [_rows(store, name, table, some) for name in parts]
            whole = pa.concat_tables([columns(table).empty_table(), *read])
            writer.write_table(_in_order(whole), row_group_size=GROUP[table])
            yield from sink.taken()
    yield from sink.taken()


def _rows(store: Store, name: str, table: str, heads: Sequence[Head]) -> Any:
    """The rows of some heads, which follow each other, in a part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(name) as part:
            some = between(heads[0], heads[-1])
            found = pq.read_table(part, filters=some, use_threads=False, pre_buffer=False)
            return found.cast(columns(table))
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{store.url(name)!r} is damaged", "remove it, and scan again") from None


def _in_order(table: Any) -> Any:
    """The rows by head, and by their rank where one head's stand in several parts."""
    import pyarrow.compute as pc

    place = [("layer", "ascending"), ("head", "ascending")]
    keys = [*place, ("side", "descending"), ("rank", "ascending")]
    known = [key for key in keys if key[0] in table.column_names]
    return table.take(pc.sort_indices(table, sort_keys=known))
