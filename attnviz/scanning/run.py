"""A scan from its plan to its result.

shards ─► records ─► one record ─► chosen windows ─► their links ─► tables
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from attnviz.data.record import Record
from attnviz.errors import InputError, option
from attnviz.scanning.estimate import Estimated, estimated
from attnviz.scanning.executors import Executor, HowRun, workers_of
from attnviz.scanning.plan import Plan, locked
from attnviz.scanning.result import is_finished, remove_parts, skipped_lines, write_result
from attnviz.scanning.tasks import Done

ENOUGH = 100
"""So many documents are read before a scan is stopped for how many of them are bad."""

Told: TypeAlias = Callable[[Done], object]


class Watcher(Protocol):
    """Is told how a scan goes on."""

    def expect(self, estimate: Estimated) -> None:
        """What the shards that are left will take, before they are counted."""

    def begin(self, what: str, done: int, tasks: int) -> None:
        """So many tasks of this kind are to be done, `done` of which are done already."""

    def did(self, done: Done) -> None:
        """A task is done."""


@dataclass
class Badness:
    """Ends a scan whose documents cannot be read; `most`: percent of them."""

    most: float
    good: int = 0
    bad: int = 0

    def add(self, good: int, bad: int) -> None:
        """Count documents.

        Raises:
            InputError: too many were skipped.
        """
        self.good += good
        self.bad += bad
        if self.good + self.bad >= ENOUGH:
            self.check()

    def check(self) -> None:
        """See that there are not too many; raises as `add`."""
        every = self.good + self.bad
        if self.bad * 100 > self.most * every:
            raise InputError(
                f"{self.bad:,} of {every:,} documents could not be read, more than {self.most:g}%",
                f"see skipped.jsonl, and raise {option('max_bad')} to go on without them",
            )


def run_scan(plan: Plan, how: HowRun, watcher: Watcher) -> Record | None:
    """Do what is left of a scan, and write its result.

    Returns:
        All counts; None where this is one of several parts, whose result is written by a merge.

    Raises:
        InputError: no document, or too few of them, can be read.
        UsageError: another scan writes into the folder.
        OutputError: a file cannot be written; what is done stays.
    """
    with locked(plan.store, how.part), workers_of(plan.job, how) as workers:
        _count(plan, how, watcher, workers)
        if how.part[1] > 1:
            return None
        total = plan.total()
        plan.store.write("skipped.jsonl", skipped_lines(total))
        Badness(how.max_bad, total.documents, len(total.skipped)).check()
        if not total.documents:
            raise InputError("no document could be read", "give others, or see skipped.jsonl")
        if not is_finished(plan.store):
            _run_again(plan, total, watcher, workers)
            write_result(plan, total)
        remove_parts(plan.store)  # also where the process was killed before it could
    return total


def _count(plan: Plan, how: HowRun, watcher: Watcher, workers: Executor) -> None:
    """Count the shards that are left."""
    tasks = plan.counting(how.part)
    if not tasks:
        return
    if len(tasks) > 1:
        watcher.expect(estimated(plan, tasks, workers, how))
    watcher.begin("shards", len(plan.shards) // how.part[1] - len(tasks), len(tasks))
    badness = Badness(how.max_bad)

    def told(done: Done) -> None:
        watcher.did(done)
        badness.add(done.documents, done.skipped)

    workers.do(tasks, told)


def _run_again(plan: Plan, total: Record, watcher: Watcher, workers: Executor) -> None:
    """Run the windows that were chosen."""
    tasks = plan.again(total)
    watcher.begin("examples", 0, len(tasks))
    workers.do(tasks, watcher.did)
