"""What a scan was asked to do, over what, with what: the manifest of its folder.

    FOLDER/manifest.json          what was asked, the corpus, the model, versions
    FOLDER/shards/000007.json     the record of a finished shard, written whole
    FOLDER/heads.parquet          the result, and histograms.parquet, skipped.jsonl beside it

A scan goes on where its folder holds the same manifest, and is refused where it holds another one.
"""

import importlib.metadata
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attnviz.data.scan import Record, Shard, Split, record_of, record_to_dict
from attnviz.data.serial import to_json
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.corpus import SHARD, corpus_files, shards_of
from attnviz.models.catalog import Source
from attnviz.runs.options import HeadOptions
from attnviz.writers.atomic import make_folder, write_bytes

SCHEMA = "attnviz-scan/2"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Request:
    """What is asked: the corpus, how it is cut, and which heads are counted.

    `key`: where a JSON object holds its text; `length`: the most tokens of a window;
    `shard`: about how many bytes are counted at a time.
    """

    paths: tuple[Path, ...]
    split: Split = "file"
    key: str = "text"
    length: int = 512
    shard: int = SHARD
    heads: HeadOptions = field(default_factory=HeadOptions)


@dataclass(frozen=True, eq=False)
class Plan:
    """A scan of a folder: its request, the model, and the shards of its corpus."""

    folder: Path
    request: Request
    source: Source
    shards: tuple[Shard, ...]
    manifest: Mapping[str, Any]

    def left(self) -> list[Shard]:
        """The shards that have no record yet."""
        return [shard for shard in self.shards if not self.place(shard.number).exists()]

    def place(self, number: int) -> Path:
        """The file of a shard's record."""
        return self.folder / "shards" / f"{number:06}.json"

    def keep(self, number: int, record: Record) -> None:
        """Write the record of a finished shard.

        Raises:
            OutputError: it cannot be written; what is finished stays.
        """
        write_bytes(self.place(number), f"{to_json(record_to_dict(record))}\n".encode())

    def records(self) -> Iterator[Record]:
        """The records of all shards, in order.

        Raises:
            InputError: one is damaged.
        """
        for shard in self.shards:
            path = self.place(shard.number)
            try:
                yield record_of(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                raise InputError(
                    f"the record {str(path)!r} is damaged", "remove it, and scan again"
                ) from None


def make_plan(folder: Path, request: Request, source: Source) -> Plan:
    """Plan a scan, and see that its folder is empty, or of the same scan.

    Raises:
        InputError: there is no text.
        UsageError: the folder is another scan's; the difference is named.
        OutputError: it cannot be written.
    """
    files = corpus_files(request.paths)
    shards = tuple(shards_of(files, request.split, request.shard))
    manifest = _manifest(request, source, files, len(shards))
    place = folder / MANIFEST
    make_folder(folder / "shards")
    if place.exists():
        _check_same(place, manifest)
    else:
        write_bytes(place, f"{json.dumps(manifest, indent=2)}\n".encode())
    return Plan(folder, request, source, shards, manifest)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder against another scan until the end.

    Raises:
        UsageError: another process scans into it.
    """
    import fcntl

    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another scan writes into {str(folder)!r}", "wait, or give another folder"
            ) from None
        yield


def _manifest(
    request: Request, source: Source, files: Iterable[Path], shards: int
) -> dict[str, Any]:
    states = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    return {
        "schema": SCHEMA,
        "model": source.name,
        "revision": source.revision,
        "engine": source.engine,
        "device": source.placement.device,
        "dtype": source.placement.dtype,
        "split": request.split,
        "field": request.key,
        "length": request.length,
        "shard": request.shard,
        **asdict(request.heads),
        "corpus": states,
        "shards": shards,
        "versions": {
            name: importlib.metadata.version(name) for name in ("attnviz", "torch", "transformers")
        },
        "processor": platform.machine(),
        "threads": 1,
    }


def _check_same(place: Path, manifest: Mapping[str, Any]) -> None:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        names = [name for name in manifest if found.get(name) != manifest[name]]
    except (ValueError, AttributeError):
        names = ["schema"]
    if names:
        raise UsageError(
            f"{str(place.parent)!r} holds another scan: its {', '.join(names)} "
            f"{'differ' if len(names) > 1 else 'differs'}",
            f"give another folder with {option('output')}",
        )


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """The manifest of a finished scan.

    Raises:
        InputError: the folder holds none.
    """
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if found["schema"] == SCHEMA:
            return dict(found)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{str(folder)!r} holds no scan", "give the folder that attnviz scan wrote")


def merged(records: Iterable[Record]) -> Record:
    """All counts together."""
    total = Record()
    for record in records:
        total.merge(record)
    return total
