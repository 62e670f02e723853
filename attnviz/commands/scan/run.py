"""A scan from its plan to its result.

shards ─► records ─► one record ─► chosen windows ─► their links ─► tables
"""

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from attnviz.commands.atlas.folder import (
    Store,
    finish,
    keep_manifest,
    lost_files,
    made_of,
    read_manifest,
)
from attnviz.commands.atlas.record import SCALE, SCORES, WEIGHTS, Record, estimate, files_of, units
from attnviz.commands.atlas.tables import (
    GROUP,
    SAID,
    between,
    columns,
    import_parquet,
    read_atlas,
    table_bytes,
)
from attnviz.commands.scan.executors import Executor, HowRun, workers_of
from attnviz.commands.scan.plan import PARTS, Estimated, ScanPlan, estimated, locked
from attnviz.commands.scan.shards import check_unchanged
from attnviz.commands.scan.tasks import CountShard, Done, tasks_of_windows
from attnviz.draw.titles import amount
from attnviz.errors import InputError, option
from attnviz.records.capture import ModelIdentity
from attnviz.records.heads import Head, head_named
from attnviz.records.metrics import BINS, EDGES
from attnviz.records.rows import to_json

ENOUGH = 1000
"""Documents after which a scan ends at once where most of them are bad."""


@dataclass(frozen=True)
class Size:
    """What was counted, and how many documents could not be read; `why`: of the first of them.

    `model`: with which model, where all is counted.
    """

    documents: int
    tokens: int
    bad: int
    why: str = ""
    model: ModelIdentity | None = None


class Watcher(Protocol):
    """Is told how a scan goes on."""

    def expect(self, estimate: Estimated) -> None:
        """What the shards that are left will take, before they are counted."""

    def note(self, said: str) -> None:
        """What was found in the folder and is mended."""

    def begin(self, what: str, done: int, tasks: int) -> None:
        """So many tasks of this kind are to be done, `done` of which are done already."""

    def did(self, done: Done) -> None:
        """A task is done."""


def check_bad(plan: ScanPlan, shards: Sequence[CountShard], size: Size, most: float) -> Size:
    """Name the bad documents of counted shards, and see that they are no more than this percentage.

    Returns:
        the size, with why the first one is bad.

    Raises:
        InputError: they are more, or there are no others.
        OutputError: their list cannot be written.
    """
    write_skipped(plan, shards)
    first, every = next(plan.skipped(shards), None), size.documents + size.bad
    why = f" (the first: {first.why})" if first else ""
    if size.bad * 100 > most * every:
        raise InputError(
            f"{size.bad:,} of {every:,} documents could not be read, more than {most:g}%{why}",
            f"see skipped.jsonl, and raise {option('max_bad')} to go on without them",
        )
    if not size.documents:
        raise InputError(f"no document could be read{why}", "give others, or see skipped.jsonl")
    return replace(size, why=first.why if first else "")


def run_scan(plan: ScanPlan, how: HowRun, watcher: Watcher) -> Size | None:
    """Do what is left of a scan, and write its result.

    Returns:
        What was counted; None for one of several parts, whose result is written by a merge.
    """
    store = plan.store
    with locked(store, how.part):
        keep_manifest(store, plan.manifest)
        store.try_writing()
        manifest = read_manifest(store)
        lost = lost_files(store, manifest)
        if not lost:
            remove_parts(store)  # where the process was killed before it could
            return _finished(store, manifest)
        if "result" in manifest:
            names = ", ".join(sorted(lost))
            watcher.note(f"damaged or lost, and made again: {names}")
        with workers_of(plan.job, how) as workers:
            _count(plan, how, watcher, workers)
            if how.part[1] > 1:
                return None
            total = plan.total()
            size = Size(total.documents, total.tokens, total.bad, model=total.origin.model)
            size = check_bad(plan, plan.of_part((1, 1)), size, how.max_bad)
            tasks = plan.again(total, lost)
            watcher.begin("examples", 0, len(tasks))
            workers.do(tasks, watcher.did)
            check_unchanged(files_of(plan.shards), here=True)
            write_result(plan, total, lost)
            remove_parts(store)
    return size


def _finished(store: Store, manifest: Mapping[str, Any]) -> Size:
    skipped = (store.read("skipped.jsonl") or b"").partition(b"\n")[0]
    why = json.loads(skipped)["why"] if skipped else ""
    atlas = read_atlas(store.where)
    return Size(*atlas.size, manifest["result"]["skipped"], why, atlas.identity)


def _count(plan: ScanPlan, how: HowRun, watcher: Watcher, workers: Executor) -> None:
    every, tasks = plan.of_part(how.part), plan.counting(how.part)
    if tasks and how.merge:
        raise InputError(
            f"{len(tasks):,} of {len(every):,} shards of {plan.store.where!r} are not counted yet, "
            f"or damaged (the first: {tasks[0].shard.number})",
            f"scan the corpus into it again, or run their parts with {option('shard')}",
        )
    damaged = plan.store.names("shards") & {task.name for task in tasks}
    if damaged:
        first = f"the first: {min(damaged)}"
        watcher.note(f"{amount(len(damaged), 'shard')} damaged or of another scan ({first})")
    if len(tasks) > 1:
        watcher.expect(estimated(plan, tasks, workers, how))
    if tasks:
        watcher.begin("shards", len(every) - len(tasks), len(tasks))
    size = Size(0, 0, 0)

    def told(done: Done) -> None:
        nonlocal size
        watcher.did(done)
        size = Size(size.documents + done.documents, 0, size.bad + done.skipped)
        if size.bad >= ENOUGH and size.bad > size.documents:
            left = plan.counting(how.part)
            check_bad(plan, [task for task in every if task not in left], size, how.max_bad)

    workers.do(tasks, told)
    check_unchanged(files_of(task.shard for task in every), here=True)


# The result of a scan: its records and its parts as tables.


def write_result(plan: ScanPlan, total: Record, lost: Collection[str]) -> None:
    """Write the tables that are lost of a scan whose tasks are all done, and what is in them."""
    store, length = plan.store, total.origin.length
    names = [task.name for task in tasks_of_windows(total, plan.shards)]
    made = made_of(plan.manifest, total.origin)
    said = to_json(made)
    for table, folder in PARTS.items():
        parts = [name for name in names if name.startswith(folder)]
        if f"{table}.parquet" in lost:
            store.write(f"{table}.parquet", joined(store, table, parts, _named(total), said))
    store.write("histograms.parquet", table_bytes("histograms", list(_histograms(total)), said))
    store.write("heads.parquet", table_bytes("heads", list(_heads(total, length)), said))
    counted = {"documents": total.documents, "tokens": total.tokens, "skipped": total.bad}
    finish(store, plan.manifest, made, **counted)


def remove_parts(store: Store) -> None:
    """Remove what the tables were made from."""
    for folder in PARTS.values():
        store.remove(folder)


def write_skipped(plan: ScanPlan, shards: Sequence[CountShard]) -> None:
    """Write the documents of counted shards that could not be read, one a line."""
    lines = (f"{to_json(vars(each))}\n".encode() for each in plan.skipped(shards))
    plan.store.write("skipped.jsonl", lines)


def _named(total: Record) -> Sequence[Head]:
    return [head for head in map(head_named, total.heads) if head is not None]


def _heads(total: Record, length: int) -> Iterator[Mapping[str, object]]:
    unit = units(length).tolist()
    for place, head in enumerate(_named(total)):
        row: dict[str, object] = {"layer": head.layer, "head": head.head}
        for metric, name in enumerate(SCORES):
            found, n = estimate(total, place, metric, unit[metric]), total.counts[place, metric]
            row[name] = found.mean if n else None
            row[f"{name}_error"] = found.error
            row[f"{name}_documents"] = int(n)
        counted = {name: getattr(total, name) for name in ("documents", "windows", "tokens")}
        yield row | counted


def _histograms(total: Record) -> Iterator[Mapping[str, object]]:
    """`distance`, `position`: the mean mass per query; `largest`: how many windows."""
    doubling = list(zip((0, *EDGES), (*EDGES, None), strict=True))
    equal = [(i / WEIGHTS, (i + 1) / WEIGHTS) for i in range(WEIGHTS)]
    assert len(doubling) == BINS
    for place, head in enumerate(_named(total)):
        for histogram, counts in (("distance", total.distances), ("position", total.positions)):
            shares = counts[place] / SCALE / max(1, total.documents)
            yield from _bins(head, histogram, doubling, shares.tolist())
        yield from _bins(head, "largest", equal, total.largest[place].tolist())


def _bins(
    head: Head, histogram: str, bins: Sequence[tuple[float, float | None]], values: Sequence[float]
) -> Iterator[Mapping[str, object]]:
    for (start, end), value in zip(bins, values, strict=True):
        row = {"layer": head.layer, "head": head.head, "histogram": histogram}
        bounds = {"start": float(start), "end": None if end is None else float(end)}
        yield {**row, **bounds, "value": float(value)}


# The parts that workers left, joined to one table that is sorted by head.


HEADS = 256
"""Heads whose rows are in memory at a time."""


class _Chunks(io.RawIOBase):
    """A file that is taken away as it is written."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.chunks.append(bytes(data))
        return len(self.chunks[-1])

    def taken(self) -> Iterator[bytes]:
        """What was written since the last time."""
        chunks, self.chunks = self.chunks, []
        yield from chunks


def joined(
    store: Store, table: str, parts: Sequence[str], heads: Sequence[Head], said: str
) -> Iterator[bytes]:
    """A table of the result as a Parquet file, in chunks.

    `parts`: the files that make it; `heads`: all, in order; `said`: how it was made.
    """
    import_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = _Chunks()
    schema = columns(table).with_metadata({SAID: said})
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd") as writer:
        for first in range(0, len(heads), HEADS):
            some = heads[first : first + HEADS]
            read = [_rows(store, name, table, some) for name in parts]
            whole = pa.concat_tables([columns(table).empty_table(), *read])
            writer.write_table(_in_order(whole), row_group_size=GROUP[table])
            yield from sink.taken()
    yield from sink.taken()


def _rows(store: Store, name: str, table: str, heads: Sequence[Head]) -> Any:
    """The rows of some heads, which follow each other, in a part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(name) as part:
            some = between(heads[0], heads[-1])
            found = pq.read_table(part, filters=some, use_threads=False, pre_buffer=False)
            return found.cast(columns(table))
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{store.url(name)!r} is damaged", "remove it, and scan again") from None


def _in_order(table: Any) -> Any:
    """The rows by head, and by their rank where one head's stand in several parts."""
    import pyarrow.compute as pc

    place = [("layer", "ascending"), ("head", "ascending")]
    keys = [*place, ("side", "descending"), ("rank", "ascending")]
    known = [key for key in keys if key[0] in table.column_names]
    return table.take(pc.sort_indices(table, sort_keys=known))
