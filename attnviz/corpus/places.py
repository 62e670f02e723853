"""Files of a corpus: their place, the content that their names promise, and the shards of them.

A path is a file of this computer, or a URL that fsspec opens.
"""

import contextlib
import gzip
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

from attnviz.errors import AttnvizError, InputError, UsageError, command_to_install, option
from attnviz.inputs.given import SAMPLE, found
from attnviz.inputs.text import as_input_error

ContentKind: TypeAlias = Literal["text", "json", "table"]
Compression: TypeAlias = Literal["gzip", "zstd"]
BUFFER = 1 << 20
"""Bytes that are asked of a distant file at a time."""
DECOMPRESSED = 1 << 14
"""Bytes that are asked of zstd at a time; as many are lost before damage."""
LONGEST = 200
"""The most characters of another library's message."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.:-]*://", re.IGNORECASE)


@dataclass(frozen=True)
class ContentForm:
    """The content of a file: texts, JSON lines or a table; compressed as gzip, as zstd, or not."""

    kind: ContentKind
    compression: Compression | None = None


PLAIN: dict[str, ContentKind] = {
    ".txt": "text",
    ".md": "text",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "table",
}
"""The files that are read from a folder; texts and JSON lines also when compressed."""
COMPRESSED: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}


def form_of(path: str) -> ContentForm | None:
    """The content that the name of a file promises; None: unknown."""
    kind, compression = _promised(path)
    if kind is None or (compression and kind == "table"):
        return None
    return ContentForm(kind, compression)


def named_form(path: str) -> ContentForm:
    """The form of a file that was named; it is text if its name does not show another form."""
    return form_of(path) or ContentForm("text", _promised(path)[1])


def _promised(path: str) -> tuple[ContentKind | None, Compression | None]:
    """The kind of file that a path's endings promise, without the query of a URL."""
    name = (path.partition("?")[0] if is_url(path) else path).lower()
    inner, last = os.path.splitext(name)
    compression = COMPRESSED.get(last)
    return PLAIN.get(os.path.splitext(inner)[1] if compression else last), compression


def as_local(path: str) -> str:
    """A `file://` URL, or a sample, as a path of this computer; any other path as it is."""
    for scheme in ("file://", "local://"):
        path = path.removeprefix(scheme)
    return str(found(Path(path))) if path.startswith(SAMPLE) else path


def is_url(path: str) -> bool:
    """Whether fsspec opens the path."""
    return _SCHEME.match(path) is not None


def shown(path: str) -> str:
    """The path as text that can be written; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def file_system(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path in it.

    Raises:
        UsageError: a package is not installed.
        InputError: nothing reads such a URL.
    """
    import fsspec
    from fsspec.registry import known_implementations

    scheme = url.partition("://")[0]
    if "::" in url:
        raise InputError(f"{url!r} is a URL in another", "give a plain URL")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        package = known_implementations.get(scheme, {}).get("class", "").partition(".")[0]
        known = package and package != "fsspec"
        hint = f"install it: {command_to_install([package])}" if known else "install them"
        raise UsageError(f"{scheme}:// needs a package: {_first_line(error)}", hint) from None
    except ValueError:
        hint = "give a file, a folder, or a URL as s3://bucket/folder"
        raise InputError(f"nothing here reads {scheme}://", hint) from None
    except Exception as error:  # the settings of a file system are checked in its own way
        raise _sentence(url, error) from error
    return system, path


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise an InputError in place of whatever the reading of this path raises."""
    try:
        with contextlib.nullcontext() if is_url(path) else as_input_error(Path(path)):
            yield
    except (AttnvizError, MemoryError):
        raise
    except Exception as error:  # each file system, compression and table has errors of its own
        raise _sentence(path, error) from error


def _sentence(path: str, error: Exception) -> InputError:
    name = repr(shown(path))
    if isinstance(error, FileNotFoundError):
        return InputError(f"there is nothing at {name}", "check the name")
    if isinstance(error, PermissionError):
        return InputError(f"there is no permission to read {name}", "give the credentials for it")
    far = "see that it can be reached, with the credentials for it"
    hint = far if is_url(path) else "give another file"
    return InputError(f"{name} cannot be read: {_first_line(error)}", hint)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:LONGEST].rstrip(". ")


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The bytes of a file as they are, closed at the end."""
    with reading(path):
        if is_url(path):
            system, inside = file_system(path)
            # no cache: a shard takes few bytes of a file, and they are buffered here
            raw = system.open(inside, "rb", cache_type="none")
            stream = cast(BinaryIO, io.BufferedReader(raw, BUFFER))
        else:
            check_regular(path, os.stat(path))
            stream = open(path, "rb")  # noqa: SIM115
    with stream:
        yield stream


def is_result(path: str) -> UsageError:
    """The error of a corpus that is the folder of its own result, or a file of it."""
    what = "the folder" if os.path.isdir(path) or is_url(path) else "a file"
    return UsageError(
        f"{shown(path)!r} is {what} of the result", f"give another folder with {option('output')}"
    )


def check_regular(path: str, state: os.stat_result) -> None:
    """Check that a file has an end, and can be read again.

    Raises:
        InputError: it is a pipe or a device.
    """
    if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
        raise InputError(
            f"{shown(path)!r} is not a regular file", "give - to read what comes through a pipe"
        )


@contextlib.contextmanager
def decompressed(path: str, form: ContentForm) -> Iterator[BinaryIO]:
    """The bytes that are in a file, closed at the end."""
    with opened(path) as stream:
        if form.compression == "gzip":
            with gzip.GzipFile(fileobj=stream) as inner:
                yield cast(BinaryIO, inner)
        elif form.compression == "zstd":
            import pyarrow as pa

            with reading(path):
                raw = pa.input_stream(stream, compression="zstd")
            with io.BufferedReader(raw, DECOMPRESSED) as outer:
                yield cast(BinaryIO, outer)
        else:
            yield stream


# What a scan reads: a corpus in shards, and the documents of each.


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
class FilePart:
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
    """The documents that one worker counts at a time; its record has its number.

    `most`: the number of its documents that are counted, or None for all.
    """

    number: int
    pieces: tuple[FilePart, ...]
    most: int | None = None

    @property
    def size(self) -> int:
        """Bytes of its files, as they are stored."""
        return sum(piece.end - piece.start for piece in self.pieces)


@dataclass(frozen=True)
class CorpusText:
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
