"""The documents that begin in a piece of a file."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

from attnviz.commands.atlas.folder import Request
from attnviz.commands.atlas.record import CorpusFile, CorpusText, FilePart, Shard, Skipped, Split
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs import text as inputs_text
from attnviz.inputs.places import (
    BUFFER,
    ContentForm,
    decompressed,
    named_form,
    opened,
    reading,
    shown,
)
from attnviz.inputs.text import (
    BYTE_ORDER_MARK,
    LOOKED_AT,
    UTF16_MARKS,
    Stdin,
    as_input_error,
    check_encodable,
)
from attnviz.kit.write import write_bytes

# The lines and paragraphs that begin in a part of a stream, in memory that has a bound.

LONGEST = 1 << 24
"""The most bytes of a text; a tokenizer takes a hundred times as much memory."""
PART = 1 << 20
"""The most bytes of a line that are read at a time."""
BLANK = (b"\n", b"\r\n")
BEFORE = 3
"""Bytes before a part that say whether a paragraph begins with it: the longest `\\n\\r\\n`."""


@dataclass
class TextUnit:
    """A line or a paragraph, and the byte at which it begins; too long, it has no parts.

    `most`: the bytes that are read of it.
    """

    at: int
    most: int
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    @property
    def too_long(self) -> bool:
        """Whether it has more bytes than are read of it."""
        return self.size > self.most

    def add(self, data: bytes) -> None:
        """Its next bytes; they are not kept where it is too long."""
        self.size += len(data)
        if self.too_long:
            self.parts.clear()
        else:
            self.parts.append(data)


def units_of(
    stream: BinaryIO, path: str, start: int, end: float, *, paragraphs: bool, most: int
) -> Iterator[TextUnit | Skipped]:
    """The units that begin from the byte `start` up to, and without, `end`.

    Empty lines separate paragraphs. `most`: the bytes of the longest unit that is read. Where
    reading fails, all that was not given is skipped.
    """
    unit: TextUnit | None = None
    within = start > 0  # a unit that began before
    given = start  # the byte up to which all units were given
    try:
        for at, data, first in _parts(stream, path, start):
            blank = paragraphs and first and data in BLANK
            if first and (blank or not paragraphs):
                if unit is not None:
                    given = at
                    yield unit
                unit, within = None, False
            if unit is None:
                if at >= end:
                    return
                within = within or (not blank and at < start)
                if within or blank:
                    continue
                unit, given = TextUnit(at, most), at
            elif unit.too_long and at >= end:
                break  # the rest of it is of no use
            unit.add(data)
        if unit is not None:
            yield unit
    except InputError as error:
        yield Skipped(shown(path), given, error.wrong)


def _parts(stream: BinaryIO, path: str, start: int) -> Iterator[tuple[int, bytes, bool]]:
    """Lines, in parts where they are long: the byte, the bytes, whether a line begins."""
    at = max(0, start - BEFORE)
    first = at == 0
    with reading(path):
        if at:
            stream.seek(at, os.SEEK_SET)
        while data := stream.readline(PART):
            yield at, data, first
            at, first = at + len(data), data.endswith(b"\n")


READ = 1 << 27
"""Bytes of a corpus that are read in a moment."""


def documents_of_shard(shard: Shard, request: Request) -> Iterator[CorpusText | Skipped]:
    """The documents that begin in a shard, as many as are counted of it."""
    split, field = request.split, request.key
    every = (each for piece in shard.pieces for each in documents_of(piece, split, field))
    return islice(every, shard.most)


def documents_of(piece: FilePart, split: Split, field: str) -> Iterator[CorpusText | Skipped]:
    """The documents that begin in a piece; blank ones are none.

    A document that cannot be read is skipped with the reason. Where the file itself cannot be read
    any further, the rest of the piece is skipped as one. `split`: what a document of a text file
    is; `field`: where a JSON object holds its text, or the column of a table.
    """
    path, form = piece.path, named_form(piece.path)
    if form.kind == "table":
        yield from rows_of(piece, field)
        return
    why = _no_text(path, form)
    if why is not None:
        if piece.start == 0:  # once for the file
            yield Skipped(shown(path), 0, why)
        return
    is_json = form.kind == "json"
    try:
        with decompressed(path, form) as stream:
            units: Iterable[TextUnit | Skipped]
            if split == "file" and not is_json:
                whole = TextUnit(0, LONGEST)
                with reading(path):
                    whole.add(stream.read(LONGEST + 1))
                units = [whole]
            else:
                units = units_of(
                    stream,
                    path,
                    piece.start,
                    inf if form.compression else piece.end,
                    paragraphs=split == "paragraph" and not is_json,
                    most=inputs_text.LARGEST if is_json else LONGEST,
                )
            for unit in units:
                if found := _of_unit(shown(path), unit, field if is_json else None):
                    yield found
    except InputError as error:
        yield Skipped(shown(path), piece.start, error.wrong)


def longest_texts(files: Sequence[CorpusFile], split: Split, field: str, number: int) -> list[int]:
    """The bytes of the longest texts of a corpus, the first `READ` bytes of which are read for it.

    A file that is one text is not read: its size is known.
    """

    def lengths() -> Iterator[int]:
        left = READ
        for file in files:
            if named_form(file.path) == ContentForm("text") and split == "file":
                yield file.size if file.size <= LONGEST else 0
            elif left > 0:
                piece = FilePart(file.path, 0, min(file.size, left))
                left -= file.size
                found = documents_of(piece, split, field)
                yield from (len(d.text.encode()) for d in found if isinstance(d, CorpusText))

    return nlargest(number, lengths())


def _no_text(path: str, form: ContentForm) -> str | None:
    """Why the beginning of a file shows that it holds no text; None: it may hold some."""
    try:
        with decompressed(path, form) as stream, reading(path):
            head = stream.read(LOOKED_AT)
    except InputError:
        return None  # it is told when the documents are read
    if head.startswith(UTF16_MARKS):
        return "UTF-16, and not UTF-8"
    return "no text: it has zero bytes" if b"\0" in head else None


def _of_unit(path: str, unit: TextUnit | Skipped, field: str | None) -> CorpusText | Skipped | None:
    """The text of a unit, or where a field is named, that of its JSON object; None: it is blank."""
    if isinstance(unit, Skipped):
        return unit
    if unit.too_long:
        return too_long(path, unit.at, unit.most)
    try:
        text = b"".join(unit.parts).decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        return Skipped(path, unit.at, f"not UTF-8 ({error.reason})")
    if not text.strip():
        return None
    if field is not None:
        return _of_json(path, unit.at, text, field)
    if "\0" in text:
        return Skipped(path, unit.at, "no text: it has zero bytes")
    return CorpusText(path, unit.at, text.strip("\r\n"))


def _of_json(path: str, start: int, line: str, field: str) -> CorpusText | Skipped | None:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Skipped(path, start, f"no JSON ({error})")
    text = content.get(field) if isinstance(content, dict) else None
    if not isinstance(text, str):
        return Skipped(path, start, f"no text under {field!r}")
    try:
        check_encodable(text)
    except InputError as error:
        return Skipped(path, start, error.wrong)
    if len(text.encode()) > LONGEST:
        return too_long(path, start)
    return CorpusText(path, start, text) if text.strip() else None


# The rows of a Parquet file, group by group, of one column.

ROWS = 64
"""Rows that are read at a time, where their row group is no longer than a text may be."""


def cuts_of(path: str, most: int) -> list[int]:
    """The bytes at which a table can be cut: row groups begin there, about `most` apart."""
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


def rows_of(piece: FilePart, column: str) -> Iterator[CorpusText | Skipped]:
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
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    starts = []
    for group in groups:
        column = group.column(0)
        dictionary = column.dictionary_page_offset if column.has_dictionary_page else None
        starts.append(max(0, min(dictionary or column.data_page_offset, column.data_page_offset)))
    return starts


def _wrong_column(schema: Any, column: str) -> str | None:
    import pyarrow as pa

    found = schema.get_all_field_indices(column)
    if len(found) != 1:
        return f"no column {column!r}" if not found else f"several columns {column!r}"
    kind = schema.field(found[0]).type
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    return None if inner in texts else f"the column {column!r} holds {kind}, and no text"


def _group(
    file: Any, path: str, group: int, at: int, column: str
) -> Iterator[CorpusText | Skipped]:
    """The texts of a row group, whose first row has the number `at`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        with reading(path):
            content = file.metadata.row_group(group)
            columns = map(content.column, range(content.num_columns))
            sizes = (c.total_uncompressed_size for c in columns if c.path_in_schema == column)
            rows = 1 if sum(sizes) > LONGEST else ROWS
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
                elif found := _text(shown(path), at, data.as_py(), column):
                    yield found
                at += 1
    except InputError as error:
        yield Skipped(shown(path), at, error.wrong)


def too_long(path: str, start: int, most: int = LONGEST) -> Skipped:
    """A text that is skipped, as it has more than `most` bytes."""
    return Skipped(path, start, f"more than {most >> 20} MB in one text")


def _text(path: str, row: int, data: bytes | None, column: str) -> CorpusText | Skipped | None:
    if data is None:
        return Skipped(path, row, f"no text under {column!r}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Skipped(path, row, f"not UTF-8 ({error.reason})")
    return CorpusText(path, row, text) if text.strip() else None


# Standard input as a file, which can be cut into shards and read by several processes.


def spool(stdin: Stdin, path: Path) -> Path:
    """Write standard input, to its end, into a file, complete or not at all; returns the file.

    `path`: without a suffix; JSON lines get `.jsonl`, everything else `.txt`. A file that holds the
    same bytes already stays as it is, so that its time is kept.

    Raises:
        InputError: standard input is a terminal or closed, or cannot be read.
        OutputError: the file cannot be written.
        UsageError: the file is there, with other bytes.
    """
    if stdin.stream is None or stdin.is_terminal:
        state = "closed" if stdin.stream is None else "a terminal"
        raise InputError(f"standard input is {state}", "send the corpus through a pipe")
    head = _head(stdin.stream)
    chunks = chain([head], iter(partial(_read, stdin.stream), b""))
    texts, lines = (path.with_name(path.name + suffix) for suffix in (".txt", ".jsonl"))
    target = lines if _is_json(head) else texts
    for old in (lines, texts):
        if old.exists() and not (old == target and _holds(old, chunks)):
            raise UsageError(
                f"{str(old)!r} holds what another scan read from standard input",
                f"give another folder with {option('output')}",
            )
    if not target.exists():
        write_bytes(target, chunks)
    return target


def _head(stream: BinaryIO) -> bytes:
    """The beginning of standard input, up to the end of the first line that is not blank."""
    lines, size = list[bytes](), 0
    with as_input_error(None):
        while size < inputs_text.LARGEST and (line := stream.readline(inputs_text.LARGEST)):
            lines.append(line)
            size += len(line)
            if line.strip():
                break
    return b"".join(lines)


def _read(stream: BinaryIO) -> bytes:
    with as_input_error(None):
        return stream.read(PART)


def _is_json(line: bytes) -> bool:
    """Whether a line is a JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _holds(path: Path, chunks: Iterable[bytes]) -> bool:
    """Whether a file holds these bytes, and no more."""
    if not path.is_file():
        return False
    with opened(str(path)) as file, reading(str(path)):
        return all(file.read(len(chunk)) == chunk for chunk in chunks) and not file.read(1)
