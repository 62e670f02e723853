"""The folder of a scan, on this machine or where a URL points to; every file is written whole."""

import errno
import importlib.metadata
import json
import os
import platform
import re
import secrets
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, cast

from attnviz.corpus.places import Split, as_local
from attnviz.corpus.record import Origin, record_of_bytes
from attnviz.errors import InputError, OutputError, UsageError, option
from attnviz.kit.option import check_number, check_value
from attnviz.kit.prepare import HeadOptions
from attnviz.kit.write import as_output_error, make_folder, write_bytes
from attnviz.models.catalog import Source
from attnviz.models.placement import Placement
from attnviz.records.metrics import METRICS
from attnviz.records.rows import made_to_dict
from attnviz.records.tokens import CallOptions

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
        """Write a file, or chunks as they come, which is then complete or untouched."""
        if not self.remote:
            path = Path(self.where) / name
            make_folder(path.parent)
            with as_output_error(path):
                if path.exists():
                    check_regular(path)
            write_bytes(path, data)
            return
        with self._one_sentence(OutputError, name):
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
        """Read the content of a file; None where there is none."""
        with self._one_sentence(InputError, name):
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
        """Whether a file, or anything else, is there."""
        with self._one_sentence(InputError, name):
            if self.remote:
                return bool(self._system.exists(self.url(name)))
            return os.path.lexists(Path(self.where) / name)

    def state(self, name: str) -> dict[str, Any] | None:
        """The bytes of a file, and their digest; None where there is none."""
        size, digest = 0, blake2b(digest_size=16)
        with self._one_sentence(InputError, name):
            try:
                with self.open(name) as file:
                    while data := file.read(PART):
                        size += len(data)
                        digest.update(data)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return {"bytes": size, "blake2b": digest.hexdigest()}

    def open(self, name: str) -> BinaryIO:
        """Open a file, to be read in parts."""
        if self.remote:
            return cast("BinaryIO", self._system.open(self.url(name), "rb"))
        path = Path(self.where) / name
        check_regular(path)
        return path.open("rb")

    def names(self, folder: str) -> set[str]:
        """The files of a folder within this one, as `folder/name`."""
        with self._one_sentence(InputError, folder):
            try:
                if self.remote:
                    self._system.invalidate_cache()  # others write there, too
                    entries = self._system.ls(self.url(folder), detail=False)
                else:
                    entries = [path.name for path in (Path(self.where) / folder).iterdir()]
            except (FileNotFoundError, NotADirectoryError):
                return set()
        return {f"{folder}/{str(each).rsplit('/', 1)[-1]}" for each in entries}

    def remove(self, folder: str) -> None:
        """Remove a folder within this one, and the files in it."""
        import shutil

        with self._one_sentence(OutputError, folder):
            if not self.remote:
                shutil.rmtree(Path(self.where) / folder, ignore_errors=True)
            elif self.names(folder):
                self._system.rm(self.url(folder), recursive=True)

    def try_writing(self) -> None:
        """See that a file can be written."""
        name = f"{TRIAL}-{secrets.token_hex(4)}"  # others may try at the same time
        self.write(name, b"attnviz")
        with self._one_sentence(OutputError, name):
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
    def _one_sentence(self, kind: type[InputError | OutputError], name: str) -> Iterator[None]:
        """Raise one sentence in place of whatever a file system raises."""
        try:
            yield
        except (UsageError, InputError, OutputError):
            raise
        except Exception as error:  # each file system has errors of its own
            known = error.strerror if isinstance(error, OSError) else None
            sentence = " ".join((known or str(error)).split()) or type(error).__name__
            verb = "written" if kind is OutputError else "read"
            raise kind(
                f"{self.url(name)!r} cannot be {verb}: {sentence}", "see that it can"
            ) from None


def check_regular(path: Path) -> None:
    """See that a file is there and has an end, as a pipe would be waited for; else an `OSError`."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError("it is not a regular file")


# What a scan is asked to do.


LINKS, EXAMPLES, SAMPLED = PASSING = "links", "examples", "sampled"
"""Folders of what is kept until the result is written."""
BATCH, CACHED_BATCH, LARGE = 4096, 512, 1 << 24
"""The most tokens of a batch. A longer window is a batch of its own. CACHED_BATCH holds on a
processor for models with LARGE parameters or more, so that their layers stay in its cache."""


@dataclass(frozen=True)
class Request:
    """The request: the corpus, how it is cut, and which heads are counted.

    `paths`: files, folders, patterns or URLs; `key`: where a JSON object, or a row of Parquet,
    holds its text; `length`: the most tokens of a window; `shard`: about how many bytes are counted
    at a time, None: as many as a corpus of this size wants; `documents`: how many are read, None
    for all; `seed`: that of the drawn examples.
    """

    paths: tuple[str, ...]
    split: Split = "file"
    key: str = "text"
    length: int = 512
    shard: int | None = None
    documents: int | None = None
    seed: int = 0
    heads: HeadOptions = field(default_factory=HeadOptions)

    def __post_init__(self) -> None:
        if not self.paths:
            raise UsageError("there is no corpus", "name files or folders of text")
        check_value("split", self.split, Split)
        check_number("length", self.length, 8, whole=True)
        if self.documents is not None:
            check_number("max_docs", self.documents, 1, 10**15, whole=True)


# The manifest of a scan: what was asked, over what, with what.
#
# A scan continues where its folder holds the same manifest, and is refused where it holds another
# one: a result never mixes two corpora, models, versions or kinds of processor. Beside what was
# asked it holds the scan's name, which is its digest, and when all is written, how the result was
# made, and the size and digest of every file of it: without them, a scan is not finished.
#
# The weights of a model that is loaded by its name are not part of it, as a plan is made without
# them: their fingerprint is in every record (`Origin`), and records of other weights are not
# merged.


SCHEMA = "attnviz-scan/6"
MANIFEST, LOCK = "manifest.json", ".lock"
TABLES = ("heads.parquet", "histograms.parquet", "tokens.parquet", "examples.parquet")
FILES = (*TABLES, "skipped.jsonl")
"""The files of a result."""
ADDED = ("scan", "result")
"""The fields of the manifest besides those of the request: the name of the scan, and its files."""
AGAIN = "scan the same corpus into it again: what is whole stays, and the rest is made again"
ANOTHER = f"give another folder with {option('output')}, or remove this one"


def manifest_of(
    request: Request,
    source: Source,
    files: Sequence[Sequence[Any]],
    corpus: Sequence[Sequence[Any]],
    shards: int,
) -> dict[str, Any]:
    """All on which a bit of the result depends; `files`, `corpus`: name, size and mark of each.

    `files` are those of the model.
    """
    options = {**asdict(request), "heads": asdict(request.heads), "paths": list(request.paths)}
    return {
        "schema": SCHEMA,
        "model": source.name,
        "revision": source.revision,
        "files": [list(each) for each in files],
        "kind": source.kind,
        "engine": source.engine,
        "device": source.placement.device,
        "dtype": source.placement.dtype,
        **options,
        "corpus": [list(each) for each in corpus],
        "shards": shards,
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("attnviz", "torch", "transformers", "tokenizers", "numpy", "pyarrow")
        }
        | {plugin.package: plugin.version for plugin in METRICS.added},
        "processor": processor(),
        "threads": 1,
        "batch": [BATCH, CACHED_BATCH],
    }


def processor() -> str:
    """The kind of processor, as far as it chooses how numbers are computed."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text()
    except OSError:
        cpuinfo = ""
    vendor = re.search(r"vendor_id\s*:\s*(\S+)", cpuinfo)
    widest = next((name for name in ("avx512f", "avx2") if name in cpuinfo.split()), "")
    return " ".join(filter(None, (platform.machine(), vendor[1] if vendor else "", widest)))


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The name of a scan, by which its records are known: a digest of what was asked."""
    described = {name: value for name, value in manifest.items() if name not in ADDED}
    written = json.dumps(described, sort_keys=True).encode()
    return blake2b(written, digest_size=8).hexdigest()


def keep_manifest(store: Store, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, or see that the one that is there is the same.

    One under which nothing was counted is replaced. One that is lost or damaged is written again
    where all shards are of this scan.
    """
    if is_of_this_scan(store, manifest):
        return
    for folder in PASSING:
        store.remove(folder)  # they are of whatever was there before
    _write(store, {**manifest, "scan": digest_of(manifest)})


def is_of_this_scan(store: Store, manifest: Mapping[str, Any]) -> bool:
    """Whether the folder has this manifest; raises where a scan must not write it there."""
    old, scan = _stored(store), digest_of(manifest)
    intact = _is_intact(old)
    if intact and old["scan"] == scan:
        return True
    shards = store.names("shards")
    if shards or old.get("result") or any(map(store.has, TABLES)):
        if not old or (old.get("schema") == SCHEMA and not intact):
            _check_orphans(store, shards, scan)
        else:
            names = (name for name in manifest if old.get(name) != manifest[name])
            differences = ", ".join(
                _difference(name, old.get(name), manifest[name]) for name in names
            )
            raise UsageError(f"{store.where!r} holds another scan ({differences})", ANOTHER)
    elif not str(old.get("schema")).startswith(SCHEMA.partition("/")[0]):
        there = [MANIFEST] if store.has(MANIFEST) else []
        there += filter(store.names, PASSING)
        if there:  # another program's, which a scan would replace
            wrong = f"{store.where!r} has {there[0]!r}, which attnviz scan did not write"
            raise UsageError(wrong, ANOTHER)
    return False


def made_of(manifest: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """The facts of how a scan was made: the same for the same scan, whoever ran it, and when."""
    same = ("kind", "engine", "device", "dtype")
    options = {
        "corpus": manifest["paths"],
        "field": manifest["key"],
        "split": manifest["split"],
        "length": origin.length,  # where the model's context is shorter than what was asked, that
        **{name: manifest[name] for name in same},
        "max_docs": manifest["documents"],
        "bos": origin.bos,
        "layers": manifest["heads"]["layers"],
        "heads": manifest["heads"]["heads"],
    }
    models = () if origin.model is None else (origin.model,)
    how_made = made_to_dict((), models, CallOptions(options, manifest["seed"]))
    return {**how_made, "versions": manifest["versions"]}


def finish(
    store: Store, manifest: Mapping[str, Any], made: Mapping[str, Any], **counted: int
) -> None:
    """Write the manifest of a finished scan: how it was made, what it counted, and its files."""
    files = {name: store.state(name) for name in FILES}
    result = {**counted, "made": made, "files": files}
    _write(store, {**manifest, "scan": digest_of(manifest), "result": result})


def is_locked(store: Store) -> bool:
    """Whether a scan writes into the folder now; a folder behind a URL has no lock."""
    if store.remote:
        return False
    import fcntl

    try:
        with store.open(LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # nothing was locked there yet
        return False
    return False


def lost_files(store: Store, manifest: Mapping[str, Any]) -> set[str]:
    """The files of a result that are not as the scan wrote them; all while it is not finished."""
    return {name for name in FILES if not is_whole(store, manifest, name)}


def is_whole(store: Store, manifest: Mapping[str, Any], name: str) -> bool:
    """Whether a file of a result is as the scan wrote it; raises as `lost_files`."""
    written = manifest["result"]["files"].get(name) if "result" in manifest else None
    return written is not None and store.state(name) == written


def _write(store: Store, manifest: Mapping[str, Any]) -> None:
    store.write(MANIFEST, f"{json.dumps(manifest, indent=2)}\n".encode())


def _check_orphans(store: Store, shards: Iterable[str], scan: str) -> None:
    """See that every record of a folder without a manifest is of this scan."""
    scans = set[str]()
    for name in shards:
        with suppress(ValueError):
            scans.add(record_of_bytes(store.read(name) or b"").origin.scan)
    if scans != {scan}:
        kept = "shards of another scan" if scans else "tables without their shards"
        raise UsageError(f"{store.where!r} has lost its manifest, but holds {kept}", ANOTHER)


def _difference(name: str, old: object, new: object) -> str:
    """The difference, with both values where they are short."""
    parameters = {"key": "field", "documents": "max_docs"}
    if isinstance(old, list | dict) or isinstance(new, list | dict):
        return {"files": "another model", "paths": "other paths"}.get(name, f"another {name}")
    return f"{parameters.get(name, name)} was {old}, is {new}"


def read_manifest(store: Store) -> Mapping[str, Any]:
    """Read the manifest of a scan.

    Raises:
        InputError: the folder holds none, or a damaged one, or that of another version.
    """
    manifest = _stored(store)
    if _is_intact(manifest):
        return manifest
    schema = manifest.get("schema")
    if not manifest and not store.has(MANIFEST):
        raise InputError(
            f"{store.where!r} holds no scan", "give the folder that attnviz scan wrote"
        )
    if schema != SCHEMA and re.fullmatch(r"attnviz-scan/\d{1,3}", str(schema)):
        raise InputError(
            f"{store.where!r} holds a scan of another version ({schema}, not {SCHEMA})",
            f"make it anew: {_command_of(manifest, f'{store.where}-anew')}",
        )
    raise InputError(f"the manifest in {store.where!r} is damaged", AGAIN)


FLAGS = {
    **{"model": "--model", "revision": "--revision", "kind": "--kind", "split": "--split"},
    **{"key": "--field", "length": "--length", "documents": "--max-docs", "seed": "--seed"},
    **{"layers": "--layer", "heads": "--head"},
}


def _command_of(manifest: Mapping[str, Any], folder: str) -> str:
    """The command of a scan, as far as a manifest of another version has it."""
    heads, paths = manifest.get("heads"), manifest.get("paths")
    said = {**manifest, "heads": None, **(heads if isinstance(heads, dict) else {})}
    options = [
        word
        for name, flag in FLAGS.items()
        if said.get(name) not in (None, getattr(Request, name, None))
        for word in (flag, str(said[name]))
    ]
    corpus = map(str, paths) if isinstance(paths, list) else ["CORPUS"]
    return shlex.join(["attnviz", "scan", *corpus, *options, "--output", folder])


def asked_by(store: Store) -> tuple[Request, Source]:
    """The request of a folder's scan, and its model.

    Raises:
        InputError: the folder holds no scan, or a damaged one.
    """
    manifest = read_manifest(store)
    names = ("split", "key", "length", "shard", "documents", "seed")
    try:
        heads = HeadOptions(**manifest["heads"])
        request = Request(tuple(manifest["paths"]), heads=heads, **{n: manifest[n] for n in names})
        placement = Placement(manifest["device"], manifest["dtype"])
        named = {name: manifest[name] for name in ("revision", "kind", "engine")}
        return request, Source(manifest["model"], placement=placement, **named)
    except (KeyError, TypeError):
        raise InputError(f"the manifest in {store.where!r} is damaged", AGAIN) from None


def _stored(store: Store) -> dict[str, Any]:
    """The content of a manifest's file; empty where there is none, or no object in it."""
    try:
        manifest = json.loads(store.read(MANIFEST) or b"")
    except (ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _is_intact(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is of this version, and as it was written."""
    result = manifest.get("result", {"files": {}, "made": {}, "skipped": 0})
    return (
        manifest.get("schema") == SCHEMA
        and manifest.get("scan") == digest_of(manifest)
        and isinstance(result, dict)
        and isinstance(result.get("files"), dict)
        and isinstance(result.get("made"), dict)
        and isinstance(result.get("skipped"), int)
    )
