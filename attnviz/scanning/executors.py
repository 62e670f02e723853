"""Where the tasks of a scan are done: processes of this machine, this process, or a Ray cluster.

They differ in nothing but that: a task is done by `Worker.do` and leaves its file in the store.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from attnviz.errors import UsageError, option
from attnviz.models.placement import Device
from attnviz.scanning.local import local_workers
from attnviz.scanning.tasks import Done, Task
from attnviz.scanning.worker import Job, Worker


@dataclass(frozen=True)
class HowRun:
    """How a scan runs, on which no bit of its result depends.

    `workers`: how many processes, None: one for each processor; `ray`: a cluster's address,
    "local" or "auto", None: no cluster; `part`: (I, N) for the I-th of N processes that share the
    folder; `merge`: every part is counted already; `max_bad`: percent of the documents that may be
    skipped.

    Raises:
        UsageError: there are no workers.
    """

    workers: int | None = None
    ray: str | None = None
    part: tuple[int, int] = (1, 1)
    merge: bool = False
    max_bad: float = 1.0

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"{option('workers', self.workers)} does nothing", "give at least 1")

    def processes(self, device: Device) -> int:
        """How many workers there are on this machine: one for each GPU, or each core."""
        gpus = 0 if self.workers or device == "cpu" else _devices()
        return self.workers or gpus or _cores()


class Executor(Protocol):
    """Workers that do tasks."""

    @property
    def workers(self) -> int:
        """How many there are at most."""

    def limit(self, workers: int) -> None:
        """Let there be no more workers than this, where memory is short."""

    def do(self, tasks: Sequence[Task], told: Callable[[Done], object]) -> None:
        """Do all tasks, in no particular order; `told` is given what each of them did.

        Raises:
            AttnvizError: what a worker raised; what is done stays.
        """


def workers_of(job: Job, how: HowRun) -> AbstractContextManager[Executor]:
    """The workers of a job; they are ended in any case.

    Raises:
        UsageError: Ray is not installed, or a model in memory is to have several workers.
        ModelError: there is no cluster at this address.
    """
    if job.model is not None:
        return _here(job, how)
    if how.ray is None:
        return local_workers(job, how.processes(job.source.placement.device))
    from attnviz.scanning.ray import ray_workers

    return ray_workers(job, how.ray, how.workers)


@dataclass(frozen=True)
class OneWorker:
    """A worker in this process, which does one task after the other."""

    worker: Worker
    workers: int = 1

    def limit(self, workers: int) -> None:
        """There is one."""

    def do(self, tasks: Sequence[Task], told: Callable[[Done], object]) -> None:
        """Do all tasks in their order; raises what `Worker.do` raises."""
        for task in tasks:
            told(self.worker.do(task))


@contextmanager
def _here(job: Job, how: HowRun) -> Iterator[OneWorker]:
    """The worker of a model in memory, which cannot be sent anywhere.

    Raises:
        UsageError: there are to be more.
    """
    from attnviz.models.reducing import same_threads_after

    if how.ray is not None or (how.workers or 1) > 1:
        raise UsageError(
            "a model in memory is scanned by one worker, in this process",
            f"leave {option('workers')} and {option('ray')} out, or save it and give its folder",
        )
    with same_threads_after():
        yield OneWorker(Worker(job))


def _cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _devices() -> int:
    """The graphics processors; torch is asked only where a driver is there."""
    if not Path("/dev/nvidiactl").exists():
        return 0
    from attnviz.models.reducing import devices

    return devices()
