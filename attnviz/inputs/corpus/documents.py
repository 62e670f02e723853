"""The documents that begin in a piece of a file."""

import json
from collections.abc import Iterator, Sequence
from heapq import nlargest
from math import inf
from typing import BinaryIO

from attnviz.commands.atlas.record import CorpusFile, Document, Piece, Skipped, Split
from attnviz.errors import InputError
from attnviz.inputs import text as inputs_text
from attnviz.inputs.corpus.tables import rows_of, too_long
from attnviz.inputs.corpus.units import LONGEST, Unit, Units
from attnviz.inputs.places import Form, decompressed, named_form, reading, shown
from attnviz.inputs.text import BYTE_ORDER_MARK, LOOKED_AT, UTF16_MARKS, check_encodable

READ = 1 << 27
"""Bytes of a corpus that are read in a moment."""


def documents_of(piece: Piece, split: Split, field: str) -> Iterator[Document | Skipped]:
    """The documents that begin in a piece; blank ones are none.

    A document that cannot be read is skipped with the reason. Where the file itself cannot be read
    any further, the rest of the piece is skipped as one.

    Args:
        piece: the part of a file.
        split: what a document of a text file is.
        field: where a JSON object holds its text, or the column of a table.
    """
    form = named_form(piece.path)
    if form.kind == "table":
        yield from rows_of(piece, field)
        return
    why = _no_text(piece.path, form)
    if why is not None:
        if piece.start == 0:  # once for the file
            yield Skipped(shown(piece.path), 0, why)
        return
    try:
        yield from _of_stream(piece, form, split, field)
    except InputError as error:
        yield Skipped(shown(piece.path), piece.start, error.wrong)


def longest_texts(files: Sequence[CorpusFile], split: Split, field: str, number: int) -> list[int]:
    """The bytes of the longest texts of a corpus, the first `READ` bytes of which are read for it.

    A file that is one text is not read: its size tells.
    """
    return nlargest(number, _lengths(files, split, field))


def _lengths(files: Sequence[CorpusFile], split: Split, field: str) -> Iterator[int]:
    left = READ
    for file in files:
        if named_form(file.path) == Form("text") and split == "file":
            yield file.size if file.size <= LONGEST else 0
        elif left > 0:
            piece = Piece(file.path, 0, min(file.size, left))
            left -= file.size
            found = documents_of(piece, split, field)
            yield from (len(d.text.encode()) for d in found if isinstance(d, Document))


def _no_text(path: str, form: Form) -> str | None:
    """Why the beginning of a file shows that it holds no text; None: it may hold some."""
    try:
        with decompressed(path, form) as stream, reading(path):
            head = stream.read(LOOKED_AT)
    except InputError:
        return None  # it is told when the documents are read
    if head.startswith(UTF16_MARKS):
        return "UTF-16, and not UTF-8"
    return "no text: it has zero bytes" if b"\0" in head else None


def _of_stream(piece: Piece, form: Form, split: Split, field: str) -> Iterator[Document | Skipped]:
    with decompressed(piece.path, form) as stream:
        if form.kind == "text" and split == "file":
            yield from _of_file(stream, piece.path)
            return
        end = inf if form.compression else piece.end
        paragraphs = form.kind == "text" and split == "paragraph"
        most = inputs_text.LARGEST if form.kind == "json" else LONGEST
        units = Units(stream, piece.path, piece.start, end, paragraphs=paragraphs, most=most)
        try:
            for unit in units:
                yield from _of_unit(piece.path, unit, field if form.kind == "json" else None)
        except InputError as error:
            yield Skipped(shown(piece.path), units.at, error.wrong)


def _of_file(stream: BinaryIO, path: str) -> Iterator[Document | Skipped]:
    unit = Unit(0, LONGEST)
    with reading(path):
        unit.add(stream.read(LONGEST + 1))
    yield from _of_unit(path, unit, None)


def _of_unit(path: str, unit: Unit, field: str | None) -> Iterator[Document | Skipped]:
    """The text of a unit, or where a field is named, that of its JSON object."""
    path = shown(path)
    if unit.too_long:
        yield too_long(path, unit.at, unit.most)
        return
    data = b"".join(unit.parts)
    try:
        text = data.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        yield Skipped(path, unit.at, f"not UTF-8 ({error.reason})")
        return
    if not text.strip():
        return
    if field is not None:
        yield from _of_json(path, unit.at, text, field)
    elif "\0" in text:
        yield Skipped(path, unit.at, "no text: it has zero bytes")
    else:
        yield Document(path, unit.at, text.strip("\r\n"))


def _of_json(path: str, start: int, line: str, field: str) -> Iterator[Document | Skipped]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        yield Skipped(path, start, f"no JSON ({error})")
        return
    text = content.get(field) if isinstance(content, dict) else None
    if not isinstance(text, str):
        yield Skipped(path, start, f"no text under {field!r}")
        return
    try:
        check_encodable(text)
    except InputError as error:
        yield Skipped(path, start, error.wrong)
        return
    if len(text.encode()) > LONGEST:
        yield too_long(path, start)
    elif text.strip():
        yield Document(path, start, text)
