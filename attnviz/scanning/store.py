"""The folder of a scan, on this machine or where a URL points to; every file is written whole."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from attnviz.errors import InputError, OutputError, UsageError
from attnviz.inputs.places import as_local
from attnviz.kit.write import as_output_error, make_folder, write_bytes

TRIAL = ".attnviz-trial"
LARGEST = 1 << 30
"""The most bytes of a file that is read whole: a manifest, or the record of a shard."""
PART = 1 << 20
"""Bytes that are read of any other at a time."""

OBJECTS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory", "oci", "r2")
"""File systems in which an upload appears whole; in others a file is renamed."""


@dataclass(frozen=True)
class Store:
    """A folder, `s3://bucket/folder` or a path; it can be sent to another process."""

    where: str

    def __post_init__(self) -> None:
        if not self.where:
            raise UsageError("the folder of a scan has no name", "name one, as in scanned")

    @classmethod
    def at(cls, where: str) -> "Store":
        """The folder at a path or a URL; a path is made a full one, for workers elsewhere."""
        local = as_local(where)
        return cls(os.path.abspath(local) if local and "://" not in local else local)

    @property
    def remote(self) -> bool:
        """Whether another file system than that of this machine holds it."""
        return "://" in self.where

    def write(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Write a file, or chunks as they come, which is then complete or untouched.

        Raises:
            OutputError: it cannot be written.
        """
        if not self.remote:
            path = Path(self.where) / name
            make_folder(path.parent)
            with as_output_error(path):
                if path.exists():
                    check_regular(path)
            write_bytes(path, data)
            return
        with self._told(OutputError, name):
            whole = data if isinstance(data, bytes) else b"".join(data)
            system = self._system
            if self.where.partition("://")[0] in OBJECTS:
                system.pipe_file(self.url(name), whole)  # one PUT, which nobody sees half done
            else:
                partial = f"{self.url(name)}.{secrets.token_hex(4)}.partial"
                system.makedirs(system._parent(partial), exist_ok=True)
                system.pipe_file(partial, whole)
                system.mv(partial, self.url(name))

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where there is none.

        Raises:
            InputError: it cannot be read.
        """
        with self._told(InputError, name):
            try:
                if self.remote:
                    return bytes(self._system.cat_file(self.url(name)))  # in one request
                with self.open(name) as file:
                    data = file.read(LARGEST + 1)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if len(data) > LARGEST:
                raise OSError(f"it has more than {LARGEST >> 30} GB")
            return data

    def has(self, name: str) -> bool:
        """Whether a file, or anything else, is there.

        Raises:
            InputError: it cannot be seen.
        """
        with self._told(InputError, name):
            if self.remote:
                return bool(self._system.exists(self.url(name)))
            return os.path.lexists(Path(self.where) / name)

    def state(self, name: str) -> dict[str, Any] | None:
        """The bytes of a file, and their digest; None where there is none.

        Raises:
            InputError: it cannot be read.
        """
        size, digest = 0, blake2b(digest_size=16)
        with self._told(InputError, name):
            try:
                with self.open(name) as file:
                    while data := file.read(PART):
                        size += len(data)
                        digest.update(data)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return {"bytes": size, "blake2b": digest.hexdigest()}

    def open(self, name: str) -> BinaryIO:
        """A file, to be read in parts.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        if self.remote:
            opened: BinaryIO = self._system.open(self.url(name), "rb")
            return opened
        path = Path(self.where) / name
        check_regular(path)
        return path.open("rb")

    def names(self, folder: str) -> set[str]:
        """The files of a folder within this one, as `folder/name`.

        Raises:
            InputError: it cannot be listed.
        """
        with self._told(InputError, folder):
            try:
                if self.remote:
                    self._system.invalidate_cache()  # others write there, too
                    found = self._system.ls(self.url(folder), detail=False)
                else:
                    found = [path.name for path in (Path(self.where) / folder).iterdir()]
            except (FileNotFoundError, NotADirectoryError):
                return set()
        return {f"{folder}/{str(each).rsplit('/', 1)[-1]}" for each in found}

    def remove(self, folder: str) -> None:
        """Remove a folder within this one, and the files in it.

        Raises:
            OutputError: it cannot be removed.
        """
        import shutil

        with self._told(OutputError, folder):
            if not self.remote:
                shutil.rmtree(Path(self.where) / folder, ignore_errors=True)
            elif self.names(folder):
                self._system.rm(self.url(folder), recursive=True)

    def try_writing(self) -> None:
        """See that a file can be written.

        Raises:
            OutputError: it cannot.
        """
        name = f"{TRIAL}-{secrets.token_hex(4)}"  # others may try at the same time
        self.write(name, b"attnviz")
        with self._told(OutputError, name):
            if self.remote:
                self._system.rm_file(self.url(name))
            else:
                (Path(self.where) / name).unlink()

    def url(self, name: str) -> str:
        """The address of a file as its file system takes it."""
        return f"{self.where.rstrip('/')}/{name}"

    @property
    def _system(self) -> Any:
        import fsspec

        try:
            return fsspec.core.url_to_fs(self.where)[0]
        except (ImportError, ValueError) as error:
            raise UsageError(
                f"{self.where!r} cannot be opened: {error}", "install what it names"
            ) from None

    @contextmanager
    def _told(self, kind: type[InputError | OutputError], name: str) -> Iterator[None]:
        """Raise one sentence in place of whatever a file system raises."""
        try:
            yield
        except (UsageError, InputError, OutputError):
            raise
        except Exception as error:  # each file system has errors of its own
            known = error.strerror if isinstance(error, OSError) else None
            said = " ".join((known or str(error)).split()) or type(error).__name__
            verb = "written" if kind is OutputError else "read"
            raise kind(f"{self.url(name)!r} cannot be {verb}: {said}", "see that it can") from None


def check_regular(path: Path) -> None:
    """See that a file that is there is one with an end, as a pipe would be waited for.

    Raises:
        OSError: it is none, or not there.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError("it is not a regular file")
