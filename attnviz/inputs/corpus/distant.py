"""The files of a corpus behind a URL."""

import glob
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from attnviz.commands.atlas.record import CorpusFile
from attnviz.errors import InputError
from attnviz.inputs.places import file_system, form_of, is_result, is_url, reading

MARKS = (
    *("ETag", "etag", "sha256", "md5Hash", "content_md5", "md5", "checksum", "blob_id"),
    *("LastModified", "last_modified", "Last-Modified", "mtime", "modified", "updated", "created"),
)
"""What file systems say of a file that changes with its content, the most exact first."""


def distant_files(url: str, avoid: str | None) -> Iterator[CorpusFile]:
    """The file at a URL, the texts of the folder there, or the files that match, by name.

    Args:
        url: what fsspec opens.
        avoid: a folder that is left out.

    Raises:
        InputError: there is nothing, or it cannot be reached.
        UsageError: the URL is the folder to avoid, or a package is not installed.
    """
    system, path = file_system(url)
    closed = _full(avoid) if avoid is not None and is_url(avoid) else None
    if _full(url) == closed:
        raise is_result(url)
    with reading(url):
        found = {system.unstrip_protocol(name): info for name, info in _found(system, path)}
    if not found and glob.has_magic(path):
        raise InputError(f"no file matches {url!r}", "see that the pattern is right")
    for name in sorted(found):
        if closed is not None and name.startswith(f"{closed}/"):
            continue
        size = found[name].get("size")
        if size is None:
            raise InputError(f"{name!r} does not say its size", "download it first")
        yield CorpusFile(name, int(size), _mark(found[name]))


def state_of(url: str) -> tuple[int | None, set[str]]:
    """The bytes of a file as they are now, and all marks that its file system tells.

    Raises:
        FileNotFoundError: it is gone.
    """
    system, path = file_system(url)
    system.invalidate_cache()
    info = system.info(path)
    return info.get("size"), set(_marks(info))


def _full(url: str) -> str:
    """The URL in the one spelling of its file system."""
    system, path = file_system(url)
    return str(system.unstrip_protocol(path))


def _found(system: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if glob.has_magic(path) and not system.exists(path):
        inside = system.glob(path, detail=True)
    else:
        info = system.info(path)
        if info["type"] != "directory":
            yield path, info
            return
        every = system.find(path, detail=True)
        inside = {name: each for name, each in every.items() if _is_text(name, path)}
    yield from ((name, each) for name, each in inside.items() if each["type"] == "file")


def _is_text(name: str, folder: str) -> bool:
    inside = name.removeprefix(folder).strip("/").split("/")
    return form_of(name) is not None and not any(part.startswith(".") for part in inside)


def _mark(info: Mapping[str, Any]) -> str:
    return next(_marks(info), "")


def _marks(info: Mapping[str, Any]) -> Iterator[str]:
    for value in (info[name] for name in MARKS if info.get(name)):
        # a listing may tell seconds where the file itself tells a date
        yield str(value.timestamp() if isinstance(value, datetime) else value)
