"""A scan from its plan to its result.

shards ─► records ─► one record ─► chosen windows ─► their links ─► tables
"""

import io
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from attnviz.commands.scan.estimate import ONE_TRIAL, Estimated, estimated
from attnviz.commands.scan.executors import Executor, HowRun, workers_of
from attnviz.commands.scan.plan import PARTS, WHOLE, Done, ScanPlan, Task, parts_of, record_file
from attnviz.corpus.documents import lacks
from attnviz.corpus.folder import (
    LOCK,
    PASSING,
    Store,
    finish,
    keep_manifest,
    lost_files,
    made_of,
    read_manifest,
)
from attnviz.corpus.places import Shard, files_of
from attnviz.corpus.record import Record, bin_rows, heads_of, score_rows
from attnviz.corpus.shards import check_unchanged
from attnviz.corpus.tables import GROUP, SAID, between, columns, import_parquet, table_bytes
from attnviz.draw.titles import amount
from attnviz.errors import InputError, OutputError, UsageError, option
from attnviz.kit.write import as_output_error, make_folder
from attnviz.records.heads import Head
from attnviz.records.rows import to_json

ENOUGH = 1000
"""Documents after which a scan ends at once where most of them are bad."""


class Watcher:
    """Gets the progress of a scan; this one shows nothing."""

    def expect(self, estimate: Estimated) -> None:
        """Tell what the remaining shards will take, before they are counted."""

    def note(self, said: str) -> None:
        """Tell what is mended in the folder."""

    def begin(self, what: str, left: Sequence[Task], of: Sequence[Task]) -> None:
        """Tell which tasks are left of all of this kind; the others are done already."""

    def did(self, done: Done) -> None:
        """A task is done."""


def run_scan(plan: ScanPlan, how: HowRun, watcher: Watcher) -> bool:
    """Do what is left of a scan, and write its result.

    Returns:
        whether there is a result: that of several parts is written by a merge.
    """
    store = plan.store
    with locked(store, how.part):
        keep_manifest(store, plan.manifest)
        store.try_writing()
        manifest = read_manifest(store)
        lost = lost_files(store, manifest)
        if not lost:
            remove_parts(store)  # where the process was killed before it could
            return True
        if "result" in manifest:
            names = ", ".join(sorted(lost))
            watcher.note(f"damaged or lost, and made again: {names}")
        with workers_of(plan.job, how) as workers:
            _count(plan, how, watcher, workers)
            if how.part != WHOLE:
                return False
            total = plan.total()
            check_bad(plan, plan.shards, total.documents, total.bad, how.max_bad)
            tasks = plan.again(total, lost)
            watcher.begin("examples", tasks, tasks)
            workers.do(tasks, watcher.did)
            check_unchanged(files_of(plan.shards), here=True)
            write_result(plan, total, lost)
            remove_parts(store)
    return True


def _count(plan: ScanPlan, how: HowRun, watcher: Watcher, workers: Executor) -> None:
    """Count the shards that are left."""
    own, shards = plan.of_part(how.part), plan.counting(how.part)
    if shards and how.merge:
        raise InputError(
            f"{len(shards):,} of {len(own):,} shards of {plan.store.where!r} are not counted "
            f"yet, or damaged (the first: {shards[0].number})",
            f"scan the corpus into it again, or run their parts with {option('shard')}",
        )
    damaged = plan.store.names("shards") & set(map(record_file, shards))
    if damaged:
        first = f"the first: {min(damaged)}"
        watcher.note(f"{amount(len(damaged), 'shard')} damaged or of another scan ({first})")
    if len(shards) > 1:
        watcher.begin("trial", ONE_TRIAL, ONE_TRIAL)
        watcher.expect(estimated(plan, shards, workers, how))
    if shards:
        watcher.begin("shards", shards, own)
    documents = bad = 0

    def report(done: Done) -> None:
        nonlocal documents, bad
        watcher.did(done)
        documents, bad = documents + done.documents, bad + done.skipped
        if bad >= ENOUGH and bad > documents:
            uncounted = plan.counting(how.part)
            counted = [shard for shard in own if shard not in uncounted]
            check_bad(plan, counted, documents, bad, how.max_bad)

    workers.do(shards, report)
    check_unchanged(files_of(own), here=True)


def check_bad(
    plan: ScanPlan, shards: Sequence[Shard], documents: int, bad: int, most: float
) -> None:
    """Name the bad documents of counted shards, and see that they are no more than this percentage.

    `documents`: the number that are not bad.
    """
    lines = (f"{to_json(vars(each))}\n".encode() for each in plan.skipped(shards))
    plan.store.write("skipped.jsonl", lines)
    first, total, key = next(plan.skipped(shards), None), documents + bad, plan.job.request.key
    why = f" (the first: {first.path!r}, {first.why})" if first else ""
    see = f"see {plan.store.url('skipped.jsonl')}"
    if bad and not documents and all(lacks(key, each.why) for each in plan.skipped(shards)):
        raise InputError(
            f"no document could be read{why}",
            f"name the field of the text with {option('field')}, and another folder with "
            f"{option('output')}; {see}",
        )
    if bad * 100 > most * total:
        raise InputError(
            f"{bad:,} of {total:,} documents could not be read, more than {most:g}%{why}",
            f"{see}, and raise {option('max_bad')} to go on without them",
        )
    if not documents:
        raise InputError(f"no document could be read{why}", f"give others, or {see}")


# The lock of a folder.


@contextmanager
def locked(store: Store, part: tuple[int, int] = WHOLE) -> Iterator[None]:
    """Hold the folder against another scan until the end; parts hold it together.

    A folder behind a URL has no lock.
    """
    if store.remote:
        yield
        return
    import fcntl

    number, parts = part
    folder = Path(store.where)
    make_folder(folder)
    whole, own = folder / LOCK, folder / (LOCK if part == WHOLE else f"{LOCK}-{number}-{parts}")
    with _lock_file(whole) as shared, _lock_file(own) as alone:
        try:
            if part != WHOLE:
                fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another scan writes into {store.where!r}", "wait, or give another folder"
            ) from None
        yield


def _lock_file(path: Path) -> BinaryIO:
    """A file to be locked, which is made where it is not there, and never written."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OutputError(f"{str(path)!r} is not a regular file", "remove it")
    with as_output_error(path):
        return os.fdopen(os.open(path, flags, 0o666), "rb")


# The result of a scan: its records and its parts as tables.


def write_result(plan: ScanPlan, total: Record, lost: Collection[str]) -> None:
    """Write the tables that are lost of a scan whose tasks are all done, and what is in them."""
    store = plan.store
    made = made_of(plan.manifest, total.origin)
    said = to_json(made)
    for kind in PARTS:
        name = f"{kind.table}.parquet"
        if name in lost:
            parts = [p.name for p in parts_of(total, plan.shards) if isinstance(p, kind)]
            store.write(name, joined(store, kind.table, parts, heads_of(total), said))
    store.write("histograms.parquet", table_bytes("histograms", [*bin_rows(total)], said))
    store.write("heads.parquet", table_bytes("heads", [*score_rows(total)], said))
    counted = {"documents": total.documents, "tokens": total.tokens, "skipped": total.bad}
    finish(store, plan.manifest, made, **counted)


def remove_parts(store: Store) -> None:
    """Remove what the tables were made from."""
    for folder in PASSING:
        store.remove(folder)


# The parts that workers left, joined to one table that is sorted by head.

HEADS = 256
"""Heads whose rows are in memory at a time."""


def joined(
    store: Store, table: str, parts: Sequence[str], heads: Sequence[Head], said: str
) -> Iterator[bytes]:
    """A table of the result as a Parquet file, in chunks.

    `parts`: the files that make it; `heads`: all, in order; `said`: how it was made.
    """
    import_parquet()
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    schema = columns(table).with_metadata({SAID: said})
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        for first in range(0, len(heads), HEADS):
            some = heads[first : first + HEADS]
            read = [_rows(store, name, table, some) for name in parts]
            whole = pa.concat_tables([columns(table).empty_table(), *read])
            # by their rank where one head's stand in several parts
            place = [("layer", "ascending"), ("head", "ascending")]
            keys = [*place, ("side", "descending"), ("rank", "ascending")]
            known = [key for key in keys if key[0] in whole.column_names]
            whole = whole.take(pc.sort_indices(whole, sort_keys=known))
            writer.write_table(whole, row_group_size=GROUP[table])
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    """The bytes written since the last call."""
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


def _rows(store: Store, name: str, table: str, heads: Sequence[Head]) -> Any:
    """The rows of some heads, which follow each other, in a part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(name) as part:
            chosen = between(heads[0], heads[-1])
            rows = pq.read_table(part, filters=chosen, use_threads=False, pre_buffer=False)
            return rows.cast(columns(table))
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{store.url(name)!r} is damaged", "remove it, and scan again") from None
