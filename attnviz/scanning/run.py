"""A scan from its plan to its result.

shards ─► records ─► one record ─► chosen windows ─► their links ─► tables
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from attnviz.commands.atlas.folder import Store, keep_manifest, lost_files, read_manifest
from attnviz.commands.atlas.record import files_of
from attnviz.commands.atlas.tables import read_atlas
from attnviz.draw.titles import amount
from attnviz.errors import InputError, option
from attnviz.inputs.corpus.listing import check_unchanged
from attnviz.records.capture import ModelIdentity
from attnviz.scanning.estimate import Estimated, estimated
from attnviz.scanning.executors import Executor, HowRun, workers_of
from attnviz.scanning.plan import Plan, locked
from attnviz.scanning.result import remove_parts, write_result, write_skipped
from attnviz.scanning.tasks import CountShard, Done

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


def check_bad(plan: Plan, shards: Sequence[CountShard], size: Size, most: float) -> Size:
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


def run_scan(plan: Plan, how: HowRun, watcher: Watcher) -> Size | None:
    """Do what is left of a scan, and write its result.

    Returns:
        What was counted; None for one of several parts, whose result is written by a merge.

    Raises:
        InputError: no document, or too few of them, can be read; a part is not counted yet; a file
            of the corpus was changed.
        UsageError: another scan writes into the folder, or it holds one.
        OutputError: a file cannot be written; what is done stays.
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
    """What a finished scan counted."""
    skipped = (store.read("skipped.jsonl") or b"").partition(b"\n")[0]
    why = json.loads(skipped)["why"] if skipped else ""
    atlas = read_atlas(store.where)
    return Size(*atlas.size, manifest["result"]["skipped"], why, atlas.identity)


def _count(plan: Plan, how: HowRun, watcher: Watcher, workers: Executor) -> None:
    """Count the shards that are left."""
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
