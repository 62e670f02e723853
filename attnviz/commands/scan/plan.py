"""A scan as tasks: those of its shards, and then those of the windows that they chose.

FOLDER/manifest.json      what was asked, over which files, with which model and versions
FOLDER/shards/…           the record of each finished shard
FOLDER/examples/…         the windows that were run again, until the result is written
FOLDER/heads.parquet      the result, written last; beside it histograms.parquet,
                          tokens.parquet, examples.parquet and skipped.jsonl
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attnviz.commands.atlas.folder import AGAIN, Request, Store, digest_of, manifest_of
from attnviz.commands.atlas.record import (
    Record,
    Shard,
    Skipped,
    files_of,
    merged,
    record_of_bytes,
    skipped_of_bytes,
)
from attnviz.commands.atlas.tables import part_of
from attnviz.commands.scan.corpus import LONGEST, READ, documents_of, longest_texts
from attnviz.commands.scan.executors import Executor, HowRun
from attnviz.commands.scan.shards import SHARD, corpus_files, shards_of
from attnviz.commands.scan.tasks import (
    CountShard,
    Done,
    Lasting,
    Task,
    Trial,
    part_name,
    tasks_of_windows,
)
from attnviz.commands.scan.worker import Job
from attnviz.errors import InputError, OutputError, UsageError
from attnviz.kit.write import as_output_error, make_folder
from attnviz.models.catalog import Source, files_of_model, state_of_memory
from attnviz.models.placement import SHARE, free_bytes

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


R = TypeVar("R")
LOCK = ".lock"
PARTS = {"examples": "examples", "tokens": "sampled"}
"""The tables that are made of parts, and the folder of these."""
AT_ONCE = 32
"""Records that are merged at a time."""
MOST_SHARDS = 1 << 16
"""Shards of a corpus, at most, but for files that are never cut."""


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """A scan: the job of its workers, and the shards of its corpus."""

    job: Job
    manifest: Mapping[str, Any]
    shards: Sequence[Shard]
    size: int
    """Bytes of its corpus, about, where it is compressed."""

    @property
    def store(self) -> Store:
        return self.job.store

    def of_part(self, part: tuple[int, int]) -> list[CountShard]:
        """The shards of the I-th of N parts, for (I, N)."""
        number, of = part
        return [CountShard(shard) for shard in self.shards if shard.number % of == number - 1]

    def counting(self, part: tuple[int, int] = (1, 1)) -> list[CountShard]:
        """The shards of a part that are not counted yet, or whose records are not theirs."""
        tasks, there = self.of_part(part), self.store.names("shards")
        return [task for task in tasks if task.name not in there or not self._is_counted(task)]

    def again(self, total: Record, lost: Collection[str]) -> list[Lasting]:
        """The tasks to run again for the tables that were lost, when every shard is counted."""
        tasks = tasks_of_windows(total, self.shards)
        folders = [folder for table, folder in PARTS.items() if f"{table}.parquet" in lost]
        there = {name for folder in folders for name in self.store.names(folder)}
        return [
            task
            for task in tasks
            if task.name.startswith(tuple(folders))
            and not (
                task.name in there
                and part_of(self.store, task.name) == part_name(self.job.scan, task)
            )
        ]

    def total(self) -> Record:
        """The records of all shards as one.

        Raises:
            InputError: one is missing, damaged, or of another scan.
        """
        records, total = map(self._record, self.of_part((1, 1))), list[Record]()
        try:
            while some := list(islice(records, AT_ONCE)):
                total = [merged([*total, *some])]
        except ValueError as error:
            raise InputError(
                f"the records of {self.store.where!r} do not belong together: {error}",
                "scan again into another folder",
            ) from None
        return total[0]  # a corpus has a shard

    def skipped(self, shards: Sequence[CountShard]) -> Iterator[Skipped]:
        """The documents of counted shards that could not be read."""
        for shard in shards:
            yield from self._read(shard, skipped_of_bytes)

    def _record(self, shard: CountShard) -> Record:
        record = self._read(shard, partial(record_of_bytes, shard=shard.shard.number))
        if record.origin.scan != self.job.scan:
            raise self._damaged(shard)
        return record

    def _is_counted(self, shard: CountShard) -> bool:
        try:
            self._record(shard)
        except InputError:
            return False
        return True

    def _read(self, shard: CountShard, parse: Callable[[bytes], R]) -> R:
        data = self.store.read(shard.name)
        if data is None:
            raise InputError(
                f"the shard {shard.shard.number} of {self.store.where!r} is not counted yet",
                "scan again, or run the part that it belongs to",
            )
        try:
            return parse(data)
        except ValueError:
            raise self._damaged(shard) from None

    def _damaged(self, shard: CountShard) -> InputError:
        return InputError(
            f"the record {self.store.url(shard.name)!r} is damaged, or of another shard", AGAIN
        )


def make_plan(
    store: Store, request: Request, source: Source, model: "LoadedModel | None" = None
) -> ScanPlan:
    """Plan a scan, perhaps with a model that is in memory; nothing is written."""
    files = corpus_files(request.paths, avoid=store.where)
    size = sum(file.size for file in files)
    shards = list(shards_of(files, request.split, request.shard or shard_size(size)))
    if request.documents is not None:
        shards = list(_limited(shards, request, request.documents))
    states = [(file.path, file.size, file.mark) for file in files]
    held = files_of_model(source) if model is None else state_of_memory(model)
    manifest = manifest_of(request, source, held, states, len(shards))
    return ScanPlan(Job(store, request, source, digest_of(manifest), model), manifest, shards, size)


def shard_size(corpus: int) -> int:
    """Bytes of a shard: at least SHARD, and twice as many until there are at most MOST_SHARDS."""
    size = SHARD
    while corpus > size * MOST_SHARDS:
        size *= 2
    return size


def _limited(shards: Sequence[Shard], request: Request, most: int) -> Iterator[Shard]:
    """The first shards, which hold `most` documents together, readable or not."""
    for shard in shards:
        if most <= 0:
            return
        every = (d for p in shard.pieces for d in documents_of(p, request.split, request.key))
        wanted = sum(1 for _ in islice(every, most))
        yield replace(shard, most=wanted)
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
    whole, own = folder / LOCK, folder / (LOCK if of == 1 else f"{LOCK}-{number}-{of}")
    with _lock_file(whole) as shared, _lock_file(own) as alone:
        try:
            if of > 1:
                fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another scan writes into {store.where!r}", "wait, or give another folder"
            ) from None
        yield


@contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    """A file to be locked, which is made where it is not there, and never written."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OutputError(f"{str(path)!r} is not a regular file", "remove it")
    with as_output_error(path):
        descriptor = os.open(path, flags, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# What a scan will take, seen on a few windows before it starts.

RECORD_BYTES, EXAMPLE_BYTES = 1000, 12_000
"""About how much a head takes in a record, and an example in the result."""
TEXT_MEMORY = 180
"""Bytes of memory that a tokenizer takes for each byte of a text, roughly."""
EXAMPLES = 24
"""Examples of a head, roughly."""


@dataclass(frozen=True)
class Estimated:
    """About what is left of a scan: tokens, seconds, bytes of memory and of disk.

    `memory`: of all workers, while they read the longest texts that are known. `more`: what one
    worker takes beyond it for a text that is as long as it may be, where there may be one.
    """

    tokens: int
    seconds: float
    memory: int
    disk: int
    more: int = 0


def estimated(plan: ScanPlan, tasks: Sequence[Task], workers: Executor, how: HowRun) -> Estimated:
    """Estimate the cost of a scan from a few windows of the first shard that is left."""
    first, tried = tasks[0], list[Done]()
    assert isinstance(first, CountShard)
    workers.do([Trial(first.shard)], tried.append)
    trial = tried[0]
    if not trial.tokens:
        return Estimated(0, 0.0, trial.memory, 0)
    asked = plan.job.request
    longest = longest_texts(files_of(plan.shards), asked.split, asked.key, workers.workers)
    memory = [
        trial.memory * n + TEXT_MEMORY * sum(longest[:n]) for n in range(1, workers.workers + 1)
    ]
    share = len(tasks) / len(plan.shards)
    tokens = plan.size * share * trial.tokens / max(1, trial.size)
    if asked.documents is not None:
        tokens = min(tokens, asked.documents * trial.tokens / max(1, trial.documents))
    again = min(tokens, trial.heads * EXAMPLES * asked.length)
    if how.workers is None:  # each holds a model of its own
        free = SHARE * free_bytes()
        workers.limit(max(1, sum(each <= free for each in memory)))
    processes = min(workers.workers, len(tasks))
    more = TEXT_MEMORY * LONGEST if plan.size > READ else 0
    disk = trial.heads * (len(tasks) * RECORD_BYTES + EXAMPLES * EXAMPLE_BYTES)
    seconds = (tokens + again) * trial.seconds / trial.tokens / processes
    return Estimated(int(tokens), seconds, memory[processes - 1], disk, more)
