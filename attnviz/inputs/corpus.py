"""A corpus: text files or JSON lines, cut into shards of bytes, each of which is read by itself.

A line belongs to the shard in which it begins, so that shards can be read in any order.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from attnviz.data.scan import Document, Piece, Shard, Skipped, Split
from attnviz.errors import InputError, option
from attnviz.inputs.decoding import BYTE_ORDER_MARK
from attnviz.inputs.files import LARGEST, as_input_error, opened

SHARD = 1 << 18
"""About so many bytes make a shard."""
JSON_LINES = (".jsonl", ".ndjson")
TEXTS = (".txt", ".md", *JSON_LINES)
"""What is read of a folder."""


def corpus_files(paths: Sequence[Path]) -> list[Path]:
    """The files of a corpus, each once: those that are named, and the texts of folders, by name.

    Raises:
        InputError: there is none, or one is neither a file nor a folder.
    """
    found = dict[Path, None]()
    for path in paths:
        if path.is_dir():
            inside = (each for each in sorted(path.rglob("*")) if each.suffix.lower() in TEXTS)
            found.update(dict.fromkeys(each for each in inside if each.is_file()))
        else:
            with opened(path):  # told of here, and not by a worker
                found[path] = None
    if not found:
        named = ", ".join(repr(str(path)) for path in paths)
        raise InputError(
            f"there is no text in {named}", f"give files, or a folder with {', '.join(TEXTS)}"
        )
    return list(found)


def shards_of(files: Iterable[Path], split: Split, most: int = SHARD) -> Iterator[Shard]:
    """The shards of a corpus: files below `most` bytes together, larger ones in parts.

    A file that is one document is never cut.
    """
    number, pieces, size = 0, list[Piece](), 0
    for path in files:
        with as_input_error(path):
            length = path.stat().st_size
        lines = split != "file" or is_json_lines(path)
        step = most if lines and split != "paragraph" else max(1, length)
        for start in range(0, max(1, length), step):
            end = min(length, start + step)
            pieces.append(Piece(str(path), start, end))
            size += end - start
            if size >= most:
                yield Shard(number, tuple(pieces))
                number, pieces, size = number + 1, [], 0
    if pieces:
        yield Shard(number, tuple(pieces))


def is_json_lines(path: Path | str) -> bool:
    """Whether each line of a file is a JSON object."""
    return Path(path).suffix.lower() in JSON_LINES


def documents_of(piece: Piece, split: Split, field: str) -> Iterator[Document | Skipped]:
    """The documents that begin in a piece; blank ones are none.

    Args:
        piece: the part of a file.
        split: what a document of a text file is.
        field: where a JSON object holds its text.

    Raises:
        InputError: the file cannot be read any more.
    """
    path = Path(piece.path)
    with opened(path) as stream:
        if is_json_lines(path):
            for start, line in _lines(stream, piece):
                yield from _of_json(piece.path, start, line, field)
        elif split == "line":
            for start, line in _lines(stream, piece):
                yield from _of_bytes(piece.path, start, line)
        else:
            with as_input_error(path):
                data = stream.read(LARGEST + 1)
            yield from _of_text(piece.path, data, split)


def _lines(stream: BinaryIO, piece: Piece) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in the piece, each with the byte at which it begins."""
    path = Path(piece.path)
    with as_input_error(path):
        if piece.start:
            stream.seek(piece.start - 1)
            stream.readline()  # up to the end of a line that began before
        at = stream.tell()
        while at < piece.end:
            line = stream.readline(LARGEST + 1)
            if not line:
                return
            yield at, line
            at = stream.tell()


def _of_text(path: str, data: bytes, split: Split) -> Iterator[Document | Skipped]:
    if len(data) > LARGEST:
        yield Skipped(path, 0, f"more than {LARGEST >> 20} MB in one text")
        return
    if split == "file":
        yield from _of_bytes(path, 0, data)
        return
    at = 0
    for part in data.replace(b"\r\n", b"\n").split(b"\n\n"):
        yield from _of_bytes(path, at, part)
        at += len(part) + 2


def _of_json(path: str, start: int, line: bytes, field: str) -> Iterator[Document | Skipped]:
    if not line.strip():
        return
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        yield Skipped(path, start, f"no JSON ({error})")
        return
    text = content.get(field) if isinstance(content, dict) else None
    if not isinstance(text, str):
        yield Skipped(path, start, f"no text under {field!r}")
    elif text.strip():
        yield Document(path, start, text)


def _of_bytes(path: str, start: int, data: bytes) -> Iterator[Document | Skipped]:
    try:
        text = data.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        yield Skipped(path, start, f"not UTF-8 ({error.reason})")
        return
    if text.strip():
        yield Document(path, start, text.strip("\r\n"))


def check_field(files: Iterable[Path], field: str | None) -> None:
    """See that a field is named only where there are objects.

    Raises:
        InputError: no file holds any.
    """
    if field is not None and not any(map(is_json_lines, files)):
        raise InputError(f"{option('field')} is for JSON lines", "leave it out")
