"""Executors of a scan's tasks: processes of this machine, this process, or a Ray cluster.

They differ in nothing but that: `Worker.do` does a task and leaves its file in the store.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from attnviz.commands.scan.plan import Done, Job, Task
from attnviz.commands.scan.worker import Worker
from attnviz.errors import AttnvizError, ModelError, UsageError, needing, option
from attnviz.models.placement import Device


@dataclass(frozen=True)
class HowRun:
    """The settings of a scan that change no bit of its result.

    `workers`: the number of processes, None for one on each processor; `ray`: a cluster's address,
    "local" or "auto", None without one; `part`: (I, N) for the I-th of N processes that share the
    folder; `merge`: every part is counted already; `max_bad`: percent of the documents that may be
    skipped.
    """

    workers: int | None = None
    ray: str | None = None
    part: tuple[int, int] = (1, 1)
    merge: bool = False
    max_bad: float = 1.0


class Executor(ABC):
    """Workers that do tasks; `workers`: the most there are."""

    def __init__(self, job: Job, workers: int) -> None:
        self._job, self.workers = job, workers

    def limit(self, workers: int) -> None:
        """Let there be no more workers than this, where memory is short."""
        self.workers = min(self.workers, workers)

    @abstractmethod
    def do(self, tasks: Sequence[Task], report: Callable[[Done], object]) -> None:
        """Do all tasks, in no particular order; `report` receives the outcome of each.

        Raises:
            AttnvizError: what a worker raised; what is done stays.
        """


@contextmanager
def workers_of(job: Job, how: HowRun) -> Iterator[Executor]:
    """The workers of a job; they are ended in any case."""
    if job.model is not None:
        from attnviz.models.reducing import same_threads_after

        if how.ray is not None or (how.workers or 1) > 1:
            raise UsageError(
                "a model in memory is scanned by one worker, in this process",
                f"leave {option('workers')} and {option('ray')} out, or save it and give its "
                "folder",
            )
        with same_threads_after():
            yield OneWorker(job)
        return
    workers: LocalWorkers | RayWorkers
    if how.ray is None:
        device = job.source.placement.device
        linux = sys.platform == "linux"
        cores = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
        workers = LocalWorkers(job, how.workers or _gpus(device) or cores)
    else:
        workers = RayWorkers(job, how.ray, how.workers)
    try:
        yield workers
    finally:
        workers.end()


def _gpus(device: Device) -> int:
    """The graphics processors; torch is asked only where a driver is there."""
    if device.startswith("cpu") or not Path("/dev/nvidiactl").exists():
        return 0
    from attnviz.models.reducing import devices

    return min(1, devices()) if ":" in device else devices()


class OneWorker(Executor):
    """A worker in this process, for a model in memory, which cannot be sent anywhere."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, 1)
        self._worker = Worker(job)

    def do(self, tasks: Sequence[Task], report: Callable[[Done], object]) -> None:
        for task in tasks:
            report(self._worker.do(task))


def _done(answer: object) -> Done:
    """The outcome of a task, where the worker did not answer with the error that ended it."""
    if isinstance(answer, AttnvizError):
        raise answer
    if not isinstance(answer, Done):
        raise RuntimeError(f"in a worker: {answer}")
    return answer


# Processes of this machine.


class LocalWorkers(Executor):
    """Processes of this machine, which may be killed: files are written whole."""

    def __init__(self, job: Job, workers: int) -> None:
        super().__init__(job, workers)
        self._pool: dict[Connection, BaseProcess] = {}

    def do(self, tasks: Sequence[Task], report: Callable[[Done], object]) -> None:
        while len(self._pool) < min(self.workers, len(tasks)):
            self._start()
        waiting, idle, busy = deque(tasks), deque(self._pool), set[Connection]()
        while waiting or busy:
            while waiting and idle:
                worker = idle.popleft()
                with _told_when_ended():
                    worker.send(waiting.popleft())
                busy.add(worker)
            for ready in wait(busy):
                assert isinstance(ready, Connection)
                with _told_when_ended():
                    answer = ready.recv()
                report(_done(answer))
                busy.remove(ready)
                idle.append(ready)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(
            target=_work, args=(there, self._job, len(self._pool)), daemon=True
        )
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
def _told_when_ended() -> Iterator[None]:
    try:
        yield
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise ModelError(
            "a worker ended before its task was done",
            "perhaps memory is short: give fewer workers, and scan again to go on",
        ) from None


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
    except Exception:  # a bug, which the parent reports
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


# A Ray cluster: actors that hold the model, two tasks in flight on each. Ray places the actors and
# tells when one is lost; its tasks are then done by another one, and a new actor is asked for.

IN_FLIGHT = 2
"""Tasks that an actor has at a time, so that it need not wait for its next one."""
TRIES = 3
"""The number of times that a task is given to an actor that is lost, before the scan ends."""


@dataclass(frozen=True)
class _Sent:
    """The work of an actor; no task: to be placed."""

    actor: Any
    task: Task | None = None
    tries: int = 1


class RayWorkers(Executor):
    """Actors on a cluster, as many as it has processors, or `most`.

    `address`: "local" for a cluster on this machine, "auto" for the one that it belongs to, or
    where its head is.
    """

    def __init__(self, job: Job, address: str, most: int | None) -> None:
        ray = self._ray = _import_ray()
        self._is_mine = not ray.is_initialized()
        if self._is_mine:
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise ModelError(
                    f"there is no Ray cluster at {address!r}: {str(error).splitlines()[0]}",
                    "give local, auto, or the address of its head",
                ) from None
        resources = ray.cluster_resources()
        gpus = 0 if job.source.placement.device == "cpu" else int(resources.get("GPU", 0))
        super().__init__(job, max(1, min(most or 1 << 20, gpus or int(resources.get("CPU", 1)))))
        # without num_cpus, Ray would count an actor as none, and give it one thread for each
        self._class = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0)(_Actor)
        self._ready: list[Any] = []
        self._sent: dict[Any, _Sent] = {}
        self._lost = 0
        for _ in range(self.workers):
            self._start()

    def limit(self, workers: int) -> None:
        """Memory is each node's own; Ray places what fits."""

    def do(self, tasks: Sequence[Task], report: Callable[[Done], object]) -> None:
        waiting = [(task, 1) for task in reversed(tasks)]
        for actor in self._ready * IN_FLIGHT:
            self._send(actor, waiting)
        while waiting or any(sent.task is not None for sent in self._sent.values()):
            (reference, *_), _ = self._ray.wait(list(self._sent))
            sent = self._sent.pop(reference)
            try:
                answer = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self._lose(sent, waiting, error)
                continue
            if sent.task is not None:
                report(_done(answer))
                self._send(sent.actor, waiting)
            else:
                self._ready.append(sent.actor)
                for _ in range(IN_FLIGHT):
                    self._send(sent.actor, waiting)

    def _start(self) -> None:
        """Let Ray place an actor, where and when it has room; it is used once it is ready."""
        actor = self._class.remote(self._job)
        self._sent[actor.ready.remote()] = _Sent(actor)

    def _send(self, actor: Any, waiting: list[tuple[Task, int]]) -> None:
        if waiting and actor in self._ready:
            task, tries = waiting.pop()
            self._sent[actor.do.remote(task)] = _Sent(actor, task, tries)

    def _lose(self, sent: _Sent, waiting: list[tuple[Task, int]], error: Exception) -> None:
        """Replace an actor that was lost, and give its task to another one."""
        self._lost += sent.task is None
        if max(sent.tries, self._lost) >= TRIES:
            raise ModelError(
                f"the Ray cluster lost a task {TRIES} times: {str(error).splitlines()[0]}",
                "see that the cluster is well, and scan again to go on",
            )
        if sent.task is None:
            self._start()
            return
        if sent.actor in self._ready:
            self._ready.remove(sent.actor)
            self._ray.kill(sent.actor)
            self._start()
        waiting.append((sent.task, sent.tries + 1))
        for actor in self._ready:
            self._send(actor, waiting)

    def end(self) -> None:
        for actor in {*self._ready, *(sent.actor for sent in self._sent.values())}:
            self._ray.kill(actor)
        if self._is_mine:
            self._ray.shutdown()


class _Actor:
    """A worker of the cluster; the model is loaded with its first task."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._worker: Worker | None = None

    def ready(self) -> None:
        """Ray has placed it."""

    def do(self, task: Task) -> Done | AttnvizError:
        """The outcome of a task, or the error that ends the scan."""
        try:
            self._worker = self._worker or Worker(self._job)
            return self._worker.do(task)
        except AttnvizError as error:
            return error


def _import_ray() -> Any:
    # before it is imported: nothing is reported to anybody
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with needing("a Ray cluster needs ray", "ray", "ray"):
        import ray
    return ray
