"""The documents that begin in a piece of a file."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from attnviz.corpus.folder import Request
from attnviz.corpus.places import (
    BUFFER,
    ContentForm,
    ContentKind,
    CorpusText,
    FilePart,
    Shard,
    Skipped,
    Split,
    decompressed,
    named_form,
    opened,
    reading,
    shown,
)
from attnviz.errors import InputError
from attnviz.inputs import text as inputs_text
from attnviz.inputs.text import BYTE_ORDER_MARK, LOOKED_AT, UTF16_MARKS, check_encodable

if TYPE_CHECKING:
    from attnviz.models.tokenizer import TextTokenizer


LONGEST = 1 << 24
"""The most bytes of a text; a tokenizer takes a hundred times as much memory."""
READ = 1 << 27
"""Bytes of a corpus that are read in a moment."""
TextUnit: TypeAlias = tuple[int, bytes | InputError]
"""The place in its file at which a text begins; and its bytes, or why they cannot be read."""


def documents_of_shard(shard: Shard, request: Request) -> Iterator[CorpusText | Skipped]:
    """The documents that begin in a shard, as many as are counted of it."""
    split, field = request.split, request.key
    documents = (each for piece in shard.pieces for each in documents_of(piece, split, field))
    return islice(documents, shard.most)


def documents_of(piece: FilePart, split: Split, field: str) -> Iterator[CorpusText | Skipped]:
    """The documents that begin in a piece; blank ones are none.

    A document that cannot be read is skipped with the reason. Where the file itself cannot be read
    any further, the rest of the piece is skipped as one. `split`: the unit of a document of a text
    file; `field`: where a JSON object holds its text, or the column of a table.
    """
    path, form = shown(piece.path), named_form(piece.path)
    units = _rows(piece, field) if form.kind == "table" else _stream(piece, form, split)
    for start, data in units:
        try:
            text = _text_of(data, form.kind, field)
        except InputError as error:
            yield Skipped(path, start, error.wrong)
        else:
            if text.strip():
                yield CorpusText(path, start, text)


def _text_of(data: bytes | InputError, kind: ContentKind, field: str) -> str:
    """The text of a unit; of a JSON object, that of this field."""
    if isinstance(data, InputError):
        raise data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(f"not UTF-8 ({error.reason})") from None
    if kind == "table":
        return text
    text = text.removeprefix(BYTE_ORDER_MARK)
    if kind == "json" and text.strip():
        return _of_json(text, field)
    if "\0" in text:
        raise _unreadable(NO_TEXT)
    return text.strip("\r\n")


def _of_json(line: str, field: str) -> str:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"no JSON ({error})") from None
    text = content.get(field) if isinstance(content, dict) else None
    if not isinstance(text, str):
        raise _unreadable(NO_FIELD.format(field))
    check_encodable(text)
    if len(text.encode()) > LONGEST:
        raise _too_long(LONGEST)
    return text


NO_FIELD, NO_COLUMN = "no text under {!r}", "no column {!r}"


def lacks(field: str, why: str) -> bool:
    """Whether a document was skipped because it has nothing under this field."""
    return why in (NO_FIELD.format(field), NO_COLUMN.format(field))


NO_TEXT = "no text: it has zero bytes"


def _unreadable(why: str) -> InputError:
    return InputError(why, "it is skipped")


def _too_long(most: int) -> InputError:
    return _unreadable(f"more than {most >> 20} MB in one text")


# The lines and paragraphs that begin in a part of a stream, in memory that has a bound.

PART = 1 << 20
"""The most bytes of a line that are read at a time."""
BLANK = (b"\n", b"\r\n")
BEFORE = 3
"""Bytes before a part that say whether a paragraph begins with it: the longest `\\n\\r\\n`."""


def _stream(piece: FilePart, form: ContentForm, split: Split) -> Iterator[TextUnit]:
    """The units of a file of texts or of JSON lines that begin in a piece."""
    path, is_json = piece.path, form.kind == "json"
    why = _no_text(path, form)
    if why is not None:
        if piece.start == 0:  # once for the file
            yield 0, _unreadable(why)
        return
    try:
        with decompressed(path, form) as stream:
            if split == "file" and not is_json:
                with reading(path):
                    data = stream.read(LONGEST + 1)
                yield 0, _too_long(LONGEST) if len(data) > LONGEST else data
                return
            yield from units_of(
                stream,
                path,
                piece.start,
                inf if form.compression else piece.end,
                paragraphs=split == "paragraph" and not is_json,
                most=inputs_text.LARGEST if is_json else LONGEST,
            )
    except InputError as error:
        yield piece.start, error


def _no_text(path: str, form: ContentForm) -> str | None:
    """The reason why a file, by its beginning, holds no text, or None if it may hold some."""
    try:
        with decompressed(path, form) as stream, reading(path):
            head = stream.read(LOOKED_AT)
    except InputError:
        return None  # it is reported when the documents are read
    if head.startswith(UTF16_MARKS):
        return "UTF-16, and not UTF-8"
    return NO_TEXT if b"\0" in head else None


def units_of(
    stream: BinaryIO, path: str, start: int, end: float, *, paragraphs: bool, most: int
) -> Iterator[TextUnit]:
    """The lines or paragraphs that begin from the byte `start` up to, and without, `end`.

    Empty lines separate paragraphs. `most`: the bytes of the longest unit that is read. Where
    reading fails, the rest is one unit.
    """
    begun: int | None = None  # where the unit under way begins
    parts, size = list[bytes](), 0
    within = start > 0  # a unit that began before
    reached = start  # the byte before which all units are complete
    try:
        for at, data, first in _parts(stream, path, start):
            blank = paragraphs and first and data in BLANK
            if first and (blank or not paragraphs):
                if begun is not None:
                    reached = at
                    yield begun, b"".join(parts) if size <= most else _too_long(most)
                begun, within = None, False
            if begun is None:
                if at >= end:
                    return
                within = within or (not blank and at < start)
                if within or blank:
                    continue
                begun = reached = at
                parts, size = [], 0
            elif size > most and at >= end:
                break  # the rest of it is of no use
            size += len(data)
            if size <= most:
                parts.append(data)
            else:
                parts.clear()
        if begun is not None:
            yield begun, b"".join(parts) if size <= most else _too_long(most)
    except InputError as error:
        yield reached, error


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


def _rows(piece: FilePart, column: str) -> Iterator[TextUnit]:
    """The units of the row groups that begin in a piece, each at the number of its row.

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
                yield 0, _unreadable(wrong)
                return
            for group, start in enumerate(starts):
                if piece.start <= start < piece.end:
                    yield from _group(file, path, group, at, column)
                at += file.metadata.row_group(group).num_rows
    except InputError as error:
        yield at, error


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

    places = schema.get_all_field_indices(column)
    if len(places) != 1:
        return NO_COLUMN.format(column) if not places else f"several columns {column!r}"
    kind = schema.field(places[0]).type
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    return None if inner in texts else f"the column {column!r} holds {kind}, and no text"


def _group(file: Any, path: str, group: int, at: int, column: str) -> Iterator[TextUnit]:
    """The units of a row group, whose first row has the number `at`."""
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
            for value, is_long in zip(texts, long.to_pylist(), strict=True):
                data = _too_long(LONGEST) if is_long else value.as_py()
                yield at, _unreadable(NO_FIELD.format(column)) if data is None else data
                at += 1
    except InputError as error:
        yield at, error


# Documents cut into windows of tokens.


@dataclass(frozen=True)
class Window:
    """A window of a document of a shard.

    `ordinal`: its number in the shard; `document`: that of its document; `number`: which of the
    document's windows it is; `ids`: its tokens; `chance`: a hash of a seed, of
    `number`, and of the document: its text, its place and the name of its file.
    """

    ordinal: int
    document: int
    number: int
    ids: tuple[int, ...]
    chance: int


class WindowCutter:
    """Cuts the documents of a shard into windows, each with the ends that the model knows."""

    def __init__(self, tokenizer: "TextTokenizer", length: int, seed: int) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        first, last = tokenizer.ends(tokenizer.bos)
        self._first, self._last = (tuple(token.id for token in end) for end in (first, last))
        self._step = max(1, length - len(first) - len(last))
        self._ordinal = self._document = 0

    def of(self, document: CorpusText) -> list[Window]:
        """The windows of the next document."""
        inner = self._tokenizer.ids(document.text)
        windows = []
        name = f"{document.path.rsplit('/', 1)[-1]} {document.start} {document.text}"
        digest = blake2b(name.encode()).hexdigest()
        for number, at in enumerate(range(0, len(inner), self._step)):
            ids = (*self._first, *inner[at : at + self._step], *self._last)
            drawn = blake2b(f"{self._seed} {number} {digest}".encode(), digest_size=8)
            chance = int.from_bytes(drawn.digest()) >> 1  # as a signed integer holds it
            windows.append(Window(self._ordinal, self._document, number, ids, chance))
            self._ordinal += 1
        self._document += 1
        return windows
