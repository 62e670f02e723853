"""A scan as tasks: those of its shards, and then those of the windows that they chose.

FOLDER/manifest.json      what was asked, over which files, with which model and versions
FOLDER/shards/…           the record of each finished shard
FOLDER/examples/…         the windows that were run again, until the result is written
FOLDER/heads.parquet      the result, written last; beside it histograms.parquet,
                          tokens.parquet, examples.parquet and skipped.jsonl
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from attnviz.data.record import Record, merged
from attnviz.data.scan import Document, Shard
from attnviz.errors import InputError, UsageError
from attnviz.inputs.corpus import SHARD, corpus_files, documents_of, shards_of
from attnviz.models.catalog import Source
from attnviz.scanning.files import record_of_bytes
from attnviz.scanning.manifest import keep_manifest, manifest_of
from attnviz.scanning.request import Request
from attnviz.scanning.store import Store
from attnviz.scanning.tasks import CountShard, Lasting, tasks_of_windows
from attnviz.scanning.work import Job
from attnviz.writers.atomic import make_folder

AT_ONCE = 32
"""Records that are merged at a time."""
MOST_SHARDS = 1 << 16


@dataclass(frozen=True, eq=False)
class Plan:
    """A scan: what its workers are told, and the shards of its corpus."""

    job: Job
    shards: Sequence[Shard]
    size: int
    """Bytes of its corpus, about, where it is compressed."""

    @property
    def store(self) -> Store:
        """Its folder."""
        return self.job.store

    def counting(self, part: tuple[int, int] = (1, 1)) -> list[CountShard]:
        """The shards that are not counted yet; of N parts of them the I-th, for (I, N)."""
        number, of = part
        mine = (CountShard(s) for s in self.shards if s.number % of == number - 1)
        return left(self.store, "shards", list(mine))

    def again(self, total: Record) -> list[Lasting]:
        """What is still to be run again, when every shard is counted."""
        tasks = tasks_of_windows(total, self.shards)
        examples, sampled = (
            [task for task in tasks if task.name.startswith(folder)]
            for folder in ("examples", "sampled")
        )
        return [*left(self.store, "examples", examples), *left(self.store, "sampled", sampled)]

    def total(self) -> Record:
        """The records of all shards as one.

        Raises:
            InputError: one is missing or damaged.
        """
        records = self._records()
        total: Record | None = None
        while some := list(islice(records, AT_ONCE)):
            total = merged(some if total is None else [total, *some])
        assert total is not None  # a corpus has a shard
        return total

    def _records(self) -> Iterator[Record]:
        for shard in self.shards:
            name = CountShard(shard).name
            data = self.store.read(name)
            if data is None:
                raise InputError(
                    f"the shard {shard.number} of {self.store.where!r} is not counted yet",
                    "scan again, or run the part that it belongs to",
                )
            try:
                yield record_of_bytes(data)
            except ValueError:
                raise InputError(
                    f"the record {self.store.url(name)!r} is damaged", "remove it, and scan again"
                ) from None


T = TypeVar("T", bound=Lasting)


def left(store: Store, folder: str, tasks: Sequence[T]) -> list[T]:
    """The tasks whose file is not in the folder yet."""
    there = store.names(folder)
    return [task for task in tasks if task.name not in there]


def make_plan(store: Store, request: Request, source: Source) -> Plan:
    """Plan a scan, and see that its folder can be written, and is empty or of the same scan.

    Raises:
        InputError: there is no text.
        UsageError: the folder is another scan's; the difference is named.
        OutputError: it cannot be written.
    """
    files = corpus_files(request.paths, avoid=store.where)
    states = [(file.path, file.size, file.mark) for file in files]
    size = sum(file.size for file in files)
    shards = list(shards_of(files, request.split, request.shard or shard_size(size)))
    if request.documents is not None:
        shards = list(_limited(shards, request, request.documents))
    store.try_writing()
    keep_manifest(store, manifest_of(request, source, states, len(shards)))
    return Plan(Job(store, request, source), shards, size)


def shard_size(corpus: int) -> int:
    """Bytes of a shard: at least SHARD, and twice as many until there are at most MOST_SHARDS."""
    size = SHARD
    while corpus > size * MOST_SHARDS:
        size *= 2
    return size


def _limited(shards: Sequence[Shard], request: Request, most: int) -> Iterator[Shard]:
    """The first shards, with so many documents together."""
    for shard in shards:
        if most <= 0:
            return
        every = (d for p in shard.pieces for d in documents_of(p, request.split, request.key))
        wanted = sum(isinstance(d, Document) for d in islice(every, most))
        yield replace(shard, most=most)
        most -= wanted


@contextmanager
def locked(store: Store, part: tuple[int, int] = (1, 1)) -> Iterator[None]:
    """Hold the folder against another scan until the end; parts hold it together.

    A folder behind a URL has no lock.

    Raises:
        UsageError: another process scans into it.
    """
    if store.remote:
        yield
        return
    import fcntl

    number, of = part
    folder = Path(store.where)
    make_folder(folder)
    whole = folder / ".lock"
    own = whole if of == 1 else folder / f".lock-{number}-{of}"
    with whole.open("w") as shared, own.open("w") as alone:
        try:
            if of > 1:
                fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another scan writes into {store.where!r}", "wait, or give another folder"
            ) from None
        yield
