"""What a scan reads: a corpus in shards, and the documents of each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Split: TypeAlias = Literal["file", "paragraph", "line"]


@dataclass(frozen=True)
class CorpusFile:
    """A file of the corpus: its path or URL, its bytes, and a mark that changes with its content.

    `mark`: the time of the last change in nanoseconds; of a URL, the checksum or the time that its
    file system tells, or nothing. `inode`: its number in the file system of this machine.
    """

    path: str
    size: int
    mark: str
    inode: int = 0


@dataclass(frozen=True)
class Piece:
    """A part of a corpus file: from the byte `start` up to, and without, `end`.

    Documents that begin there belong to it; in Parquet, the row groups that begin there. `file`:
    the file as it was when the corpus was listed; None: nobody looked.
    """

    path: str
    start: int
    end: int
    file: CorpusFile | None = None


@dataclass(frozen=True)
class Shard:
    """What one worker counts at a time; its record has its number.

    `most`: how many documents of it are counted; None: all.
    """

    number: int
    pieces: tuple[Piece, ...]
    most: int | None = None


@dataclass(frozen=True)
class Document:
    """A text of the corpus, its file, and the byte at which it begins.

    The byte is one of the decompressed file; in Parquet, `start` is the row, counted from 0.
    """

    path: str
    start: int
    text: str


@dataclass(frozen=True)
class Skipped:
    """A document that could not be read, or all that is left of a piece, and why."""

    path: str
    start: int
    why: str


def files_of(shards: Iterable[Shard]) -> list[CorpusFile]:
    """The files of some shards, each once."""
    every = (piece.file for shard in shards for piece in shard.pieces)
    return list(dict.fromkeys(file for file in every if file is not None))
