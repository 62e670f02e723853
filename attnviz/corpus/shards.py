"""The files of a corpus (named, in folders, or matched by a pattern), cut into shards.

A document belongs to the shard in which it begins, so that shards can be read in any order, by any
number of processes. Nothing that is read grows with the corpus but the list of its files.
"""

import glob
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, pairwise, takewhile
from pathlib import Path
from typing import Any, BinaryIO

from attnviz.corpus.documents import cuts_of
from attnviz.corpus.folder import FILES, MANIFEST
from attnviz.corpus.places import (
    PLAIN,
    CorpusFile,
    FilePart,
    Shard,
    Split,
    as_local,
    check_regular,
    file_system,
    form_of,
    is_result,
    is_url,
    named_form,
    opened,
    reading,
    shown,
)
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.text import LARGEST, Stdin, as_input_error
from attnviz.kit.write import write_bytes

SHARD = 1 << 18
"""Bytes of a shard, roughly."""


def shards_of(files: Iterable[CorpusFile], split: Split, most: int = SHARD) -> Iterator[Shard]:
    """The shards of a corpus: files below `most` bytes together, larger ones in parts.

    A file that is one document is never cut, nor is a compressed file, nor a row group.
    """
    number, pieces, size = 0, list[FilePart](), 0
    for file in files:
        for piece in _pieces(file, split, most):
            pieces.append(piece)
            size += piece.end - piece.start
            if size >= most:
                yield Shard(number, tuple(pieces))
                number, pieces, size = number + 1, [], 0
    if pieces:
        yield Shard(number, tuple(pieces))


def _pieces(file: CorpusFile, split: Split, most: int) -> Iterator[FilePart]:
    form = named_form(file.path)
    whole = form.compression is not None or (form.kind == "text" and split == "file")
    if whole or file.size <= most:
        cuts: Iterable[int] = ()
    elif form.kind == "table":
        try:
            cuts = cuts_of(file.path, most)
        except InputError:
            cuts = ()  # the documents show them
    else:
        cuts = range(most, file.size, most)
    for start, end in pairwise([0, *cuts, file.size]):
        yield FilePart(file.path, start, end, file)


def corpus_files(paths: Sequence[str], avoid: str | None = None) -> list[CorpusFile]:
    """The files of a corpus, each once: those that are named, and the texts of folders, by name.

    Names that begin with a dot are left out of folders, and pipes and devices.

    Args:
        paths: files, folders, patterns (`*`, `?`, `[…]`, `**`), here or as URLs.
        avoid: a folder, here or as a URL, that is left out where another one holds it.
    """
    files = dict[object, CorpusFile]()
    avoid = None if avoid is None else as_local(avoid)
    for path in map(as_local, paths):
        for key, file in _distant(path, avoid) if is_url(path) else _local(path, avoid):
            files.setdefault(key, file)
    if not files:
        named = ", ".join(repr(shown(path)) for path in paths)
        raise InputError(
            f"there is no text in {named}", f"give files, or a folder with {', '.join(PLAIN)}"
        )
    return list(files.values())


def check_field(files: Iterable[CorpusFile], field: str | None) -> None:
    """See that a field is named only where there are objects or columns."""
    if field is not None and all(named_form(file.path).kind == "text" for file in files):
        raise InputError(f"{option('field')} is for JSON lines and Parquet", "leave it out")


def check_unchanged(files: Iterable[CorpusFile], *, here: bool) -> None:
    """Check that files have not changed since they were listed, as far as can be known.

    `here`: whether they were listed on this machine, so that a file has its own inode.
    """
    for file in files:
        how = _change_of(file, here)
        if how is not None:
            raise InputError(
                f"{shown(file.path)!r} {how} during the scan",
                "let the corpus be, and scan it into another folder",
            )


def _change_of(file: CorpusFile, here: bool) -> str | None:
    """The change of a file since it was listed, or None if it is the same."""
    inode = file.inode
    with reading(file.path):
        try:
            if is_url(file.path):
                system, path = file_system(file.path)
                system.invalidate_cache()
                info = system.info(path)
                size, marks = info.get("size"), set(_marks(info))
            else:
                state = os.stat(file.path)
                size, marks, inode = state.st_size, {str(state.st_mtime_ns)}, state.st_ino
        except FileNotFoundError:
            return "was removed"
    if size is not None and size != file.size:
        return f"was changed from {file.size:,} to {size:,} bytes"
    if file.mark and marks and file.mark not in marks:
        return "was changed"
    return "was replaced" if here and inode != file.inode else None


# The files of this computer.


def _local(path: str, avoid: str | None) -> Iterator[tuple[object, CorpusFile]]:
    if path.startswith("/dev/"):
        path = os.path.realpath(path)  # what /dev/stdin leads to, workers must find, too
    if glob.has_magic(path) and not os.path.lexists(path):
        yield from _matched(path, avoid)
        return
    path = path and str(Path(path))  # an empty one is not a file
    with reading(path):
        state = os.stat(path)
    check_regular(path, state)
    is_file = stat.S_ISREG(state.st_mode)
    closed = _keys_of(avoid)
    if is_file:  # the result would overwrite these
        there = (Path(avoid, name) for name in (MANIFEST, *FILES)) if avoid else ()
        closed = {_key(each.stat()) for each in there if each.is_file()}
    if _key(state) in closed:
        raise is_result(path)
    if is_file:
        yield _file(path, state)
        return
    for each, its_state in _walk(path, closed):
        if form_of(each):
            yield _file(each, its_state)


def _walk(top: str, closed: set[object]) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files in a folder and in those within, by name.

    Links are followed, and each folder is entered once, so that a loop of links ends.
    """
    waiting = [top]
    while waiting:
        path = waiting.pop()
        with reading(path):
            state = _state_behind(path)
            if state is None or _key(state) in closed:
                continue
            if stat.S_ISDIR(state.st_mode):
                closed.add(_key(state))
                names = sorted(os.listdir(path), reverse=True)
                base = "" if path == "." else path
                waiting += [os.path.join(base, name) for name in names if name[0] != "."]
        if stat.S_ISREG(state.st_mode):
            yield path, state


def _state_behind(path: str) -> os.stat_result | None:
    """The state of what a name leads to; None for a link that leads nowhere, or to itself."""
    try:
        return os.stat(path)
    except OSError:
        if os.path.islink(path):
            return None
        raise


def _matched(pattern: str, avoid: str | None) -> Iterator[tuple[object, CorpusFile]]:
    """The files that match; `**` stands for any folders, and does not follow a loop of links."""
    parts = Path(pattern).parts
    matches: Iterable[tuple[str, os.stat_result | None]]
    if "**" in parts:
        fixed = list(takewhile(lambda part: not glob.has_magic(part), parts))
        top = os.path.join(*fixed) if fixed else "."
        inside = _walk(top, _keys_of(avoid)) if os.path.isdir(top) else ()
        matches = (
            (path, state)
            for path, state in inside
            if _fits(Path(os.path.relpath(path, top)).parts, parts[len(fixed) :])
        )
    else:
        closed = avoid and os.path.realpath(avoid)
        matches = (
            (path, _state_behind(path))
            for path in sorted(glob.glob(pattern))
            if not (closed and Path(os.path.realpath(path)).is_relative_to(closed))
        )
    files = [_file(path, its) for path, its in matches if its and stat.S_ISREG(its.st_mode)]
    if not files:
        raise InputError(f"no file matches {shown(pattern)!r}", "check the name")
    yield from files


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not parts or not pattern:
        return not parts and all(each == "**" for each in pattern)
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _keys_of(avoid: str | None) -> set[object]:
    return {_key(os.stat(avoid))} if avoid is not None and os.path.isdir(avoid) else set()


def _key(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _file(path: str, state: os.stat_result) -> tuple[object, CorpusFile]:
    return _key(state), CorpusFile(path, state.st_size, str(state.st_mtime_ns), state.st_ino)


# The files of a corpus behind a URL.

MARKS = (
    *("ETag", "etag", "sha256", "md5Hash", "content_md5", "md5", "checksum", "blob_id"),
    *("LastModified", "last_modified", "Last-Modified", "mtime", "modified", "updated", "created"),
)
"""Fields of a file's information that change with its content, the most exact first."""


def _distant(url: str, avoid: str | None) -> Iterator[tuple[object, CorpusFile]]:
    """The file at a URL, the texts of the folder there, or the files that match, by name."""
    system, path = file_system(url)
    closed = _full(avoid) if avoid is not None and is_url(avoid) else None
    if _full(url) == closed:
        raise is_result(url)
    with reading(url):
        infos = {system.unstrip_protocol(name): info for name, info in _infos(system, path)}
    if not infos and glob.has_magic(path):
        raise InputError(f"no file matches {url!r}", "see that the pattern is right")
    for name in sorted(infos):
        if closed is not None and name.startswith(f"{closed}/"):
            continue
        size = infos[name].get("size")
        if size is None:
            raise InputError(f"{name!r} does not say its size", "download it first")
        yield name, CorpusFile(name, int(size), next(_marks(infos[name]), ""))


def _full(url: str) -> str:
    """The URL in the one spelling of its file system."""
    system, path = file_system(url)
    return str(system.unstrip_protocol(path))


def _infos(system: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if glob.has_magic(path) and not system.exists(path):
        inside = system.glob(path, detail=True)
    else:
        info = system.info(path)
        if info["type"] != "directory":
            yield path, info
            return
        every = system.find(path, detail=True)
        hidden = {name for name in every if "/." in f"/{name.removeprefix(path).strip('/')}"}
        inside = {n: each for n, each in every.items() if form_of(n) and n not in hidden}
    yield from ((name, each) for name, each in inside.items() if each["type"] == "file")


def _marks(info: Mapping[str, Any]) -> Iterator[str]:
    for value in (info[name] for name in MARKS if info.get(name)):
        # a listing may have seconds where the file itself has a date
        yield str(value.timestamp() if isinstance(value, datetime) else value)


# Standard input as a file, which can be cut into shards and read by several processes.

CHUNK = 1 << 20
"""The most bytes of it that are read at a time."""


def spool(stdin: Stdin, path: Path) -> Path:
    """Write standard input, to its end, into a file, complete or not at all; returns the file.

    `path`: without a suffix; JSON lines get `.jsonl`, everything else `.txt`. A file that holds the
    same bytes already stays as it is, so that its time is kept.
    """
    if stdin.stream is None or stdin.is_terminal:
        state = "closed" if stdin.stream is None else "a terminal"
        raise InputError(f"standard input is {state}", "send the corpus through a pipe")
    head = _head(stdin.stream)
    chunks = chain([head], iter(partial(_read, stdin.stream), b""))
    texts, lines = (path.with_name(path.name + suffix) for suffix in (".txt", ".jsonl"))
    target = texts
    with suppress(ValueError, RecursionError):
        target = lines if isinstance(json.loads(head), dict) else texts
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
        while size < LARGEST and (line := stream.readline(LARGEST)):
            lines.append(line)
            size += len(line)
            if line.strip():
                break
    return b"".join(lines)


def _read(stream: BinaryIO) -> bytes:
    with as_input_error(None):
        return stream.read(CHUNK)


def _holds(path: Path, chunks: Iterable[bytes]) -> bool:
    """Whether a file holds these bytes, and no more."""
    if not path.is_file():
        return False
    with opened(str(path)) as file, reading(str(path)):
        return all(file.read(len(chunk)) == chunk for chunk in chunks) and not file.read(1)
