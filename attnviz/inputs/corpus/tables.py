"""The rows of a Parquet file, group by group, of one column."""

from collections.abc import Iterator
from typing import Any

from attnviz.commands.atlas.record import Document, Piece, Skipped
from attnviz.errors import InputError
from attnviz.inputs.corpus.units import LONGEST
from attnviz.inputs.places import BUFFER, opened, reading, shown

ROWS = 64
"""Rows that are read at a time, where their row group is no longer than a text may be."""


def cuts_of(path: str, most: int) -> list[int]:
    """The bytes at which a table can be cut: row groups begin there, about `most` apart.

    Raises:
        InputError: it cannot be read.
    """
    import pyarrow.parquet as pq

    with opened(path) as stream, reading(path):
        file = pq.ParquetFile(stream)
        starts = _starts(file)
    cuts, last = list[int](), 0
    for start in sorted(starts):
        if start - last >= most:
            cuts.append(start)
            last = start
    return cuts


def rows_of(piece: Piece, column: str) -> Iterator[Document | Skipped]:
    """The texts of the row groups that begin in a piece; a document's start is its row.

    A group that is damaged is skipped from the first row that cannot be read.
    """
    import pyarrow.parquet as pq

    path, at = piece.path, 0
    try:
        with opened(path) as stream:
            with reading(path):
                file = pq.ParquetFile(stream, buffer_size=BUFFER)
                wrong = _wrong_column(file.schema_arrow, column)
                starts = _starts(file)
            if wrong:
                yield Skipped(shown(path), 0, wrong)
                return
            for group, start in enumerate(starts):
                if piece.start <= start < piece.end:
                    yield from _group(file, path, group, at, column)
                at += file.metadata.row_group(group).num_rows
    except InputError as error:
        yield Skipped(shown(path), at, error.wrong)


def _starts(file: Any) -> list[int]:
    """The byte at which each row group begins."""
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    starts = []
    for group in groups:
        column = group.column(0)
        dictionary = column.dictionary_page_offset if column.has_dictionary_page else None
        starts.append(max(0, min(dictionary or column.data_page_offset, column.data_page_offset)))
    return starts


def _wrong_column(schema: Any, column: str) -> str | None:
    """Why no text can be in the column; None: it can."""
    import pyarrow as pa

    found = schema.get_all_field_indices(column)
    if len(found) != 1:
        return f"no column {column!r}" if not found else f"several columns {column!r}"
    kind = schema.field(found[0]).type
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    return None if inner in texts else f"the column {column!r} holds {kind}, and no text"


def _group(file: Any, path: str, group: int, at: int, column: str) -> Iterator[Document | Skipped]:
    """The texts of a row group, whose first row has the number `at`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        with reading(path):
            rows = 1 if _size(file, group, column) > LONGEST else ROWS
            batches = file.iter_batches(
                rows, row_groups=[group], columns=[column], use_threads=False
            )
        while True:
            with reading(path):
                batch = next(batches, None)
                if batch is None:
                    return
                values = batch.column(0)
                if pa.types.is_dictionary(values.type):
                    values = values.dictionary_decode()
                # as bytes: a value that is no UTF-8 is skipped, and not its batch
                texts = values.cast(pa.large_binary())
                long = pc.greater(pc.binary_length(texts), LONGEST)
            for data, is_long in zip(texts, long.to_pylist(), strict=True):
                if is_long:
                    yield too_long(shown(path), at)
                else:
                    yield from _text(shown(path), at, data.as_py(), column)
                at += 1
    except InputError as error:
        yield Skipped(shown(path), at, error.wrong)


def _size(file: Any, group: int, column: str) -> int:
    """The bytes of a column in a row group, when they are decompressed."""
    content = file.metadata.row_group(group)
    columns = map(content.column, range(content.num_columns))
    return sum(c.total_uncompressed_size for c in columns if c.path_in_schema == column)


def too_long(path: str, start: int, most: int = LONGEST) -> Skipped:
    """A text that is skipped, as it has more than `most` bytes."""
    return Skipped(path, start, f"more than {most >> 20} MB in one text")


def _text(path: str, row: int, data: bytes | None, column: str) -> Iterator[Document | Skipped]:
    if data is None:
        yield Skipped(path, row, f"no text under {column!r}")
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield Skipped(path, row, f"not UTF-8 ({error.reason})")
        return
    if text.strip():
        yield Document(path, row, text)
