"""Executors of a scan's tasks: processes of this machine, this process, or a Ray cluster.

They differ in nothing but that: a task is done by `Worker.do` and leaves its file in the store.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from attnviz.commands.scan.tasks import Done, Task
from attnviz.commands.scan.worker import Job, Worker
from attnviz.errors import AttnvizError, ModelError, UsageError, option
from attnviz.models.placement import Device


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
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
        return self.workers or gpus or cores or 1


class Executor(Protocol):
    """Workers that do tasks."""

    @property
    def workers(self) -> int:
        """How many there are at most."""

    def limit(self, workers: int) -> None:
        """Let there be no more workers than this, where memory is short."""

    def do(self, tasks: Sequence[Task], told: Callable[[Done], object]) -> None:
        """Do all tasks, in no particular order; `told` receives the outcome of each."""


def workers_of(job: Job, how: HowRun) -> AbstractContextManager[Executor]:
    """The workers of a job; they are ended in any case."""
    if job.model is not None:
        return _here(job, how)
    if how.ray is None:
        return local_workers(job, how.processes(job.source.placement.device))
    from attnviz.commands.scan.ray import ray_workers

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
    """The worker of a model in memory, which cannot be sent anywhere."""
    from attnviz.models.reducing import same_threads_after

    if how.ray is not None or (how.workers or 1) > 1:
        raise UsageError(
            "a model in memory is scanned by one worker, in this process",
            f"leave {option('workers')} and {option('ray')} out, or save it and give its folder",
        )
    with same_threads_after():
        yield OneWorker(Worker(job))


def _devices() -> int:
    """The graphics processors; torch is asked only where a driver is there."""
    if not Path("/dev/nvidiactl").exists():
        return 0
    from attnviz.models.reducing import devices

    return devices()


# Tasks in processes of this machine, which may be killed: files are written whole.

ENDED = ModelError(
    "a worker ended before its task was done",
    "perhaps memory is short: give fewer workers, and scan again to go on",
)


class LocalWorkers:
    """Processes that do tasks; see `local_workers`."""

    def __init__(self, job: Job, most: int) -> None:
        self._job, self._most = job, most
        self._pool: dict[Connection, BaseProcess] = {}

    @property
    def workers(self) -> int:
        return self._most

    def limit(self, workers: int) -> None:
        self._most = min(self._most, workers)

    def do(self, tasks: Sequence[Task], told: Callable[[Done], object]) -> None:
        """Do all tasks, in no particular order; `told` is given what each did, as it is done."""
        while len(self._pool) < min(self._most, len(tasks)):
            self._start()
        waiting = list(reversed(tasks))
        busy = {worker for worker in self._pool if _sent(worker, waiting)}
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                told(_answer(ready))
                if not _sent(ready, waiting):
                    busy.discard(ready)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        given = there, self._job, len(self._pool)
        process = context.Process(target=_work, args=given, daemon=True)
        # Ctrl-C is the parent's: a worker has it blocked from its first moment, imports included
        resource_tracker.ensure_running()  # first, as this lets Ctrl-C through again
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        there.close()
        self._pool[here] = process

    def end(self) -> None:
        for process in self._pool.values():
            process.kill()
        for process in self._pool.values():
            process.join()


@contextmanager
def local_workers(job: Job, most: int) -> Iterator[LocalWorkers]:
    """At most `most` processes, which are ended in any case."""
    workers = LocalWorkers(job, most)
    try:
        yield workers
    finally:
        workers.end()


def _sent(worker: Connection, waiting: list[Task]) -> bool:
    if waiting:
        try:
            worker.send(waiting.pop())
        except BrokenPipeError:
            raise ENDED from None
        return True
    return False


def _answer(worker: Connection) -> Done:
    try:
        said = worker.recv()
    except (EOFError, ConnectionResetError):
        raise ENDED from None
    if isinstance(said, AttnvizError):
        raise said
    if not isinstance(said, Done):
        raise RuntimeError(f"in a worker: {said}")
    return said


def _work(parent: Connection, job: Job, number: int) -> None:
    """A worker: it answers each task with what it did, or with the error that ends it."""
    from attnviz.models.reducing import use_device

    try:
        _end_with_parent()
        use_device(number)
        worker = Worker(job)
        while True:
            parent.send(worker.do(parent.recv()))
    except AttnvizError as error:
        parent.send(error)
    except (EOFError, BrokenPipeError):  # the parent has gone
        return
    except Exception:  # a bug, which the parent tells
        parent.send(traceback.format_exc())
    finally:
        os._exit(0)  # libraries whose threads still run abort a process that ends by itself


def _end_with_parent() -> None:
    """Let the system end this process when its parent is gone, killed or not (Linux)."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
