"""Tasks on a Ray cluster: actors that hold the model, two tasks in flight on each.

Results go to the folder of the scan, and only what was done comes back. Ray places the actors and
tells when one is lost; its tasks are then done by another one, and a new actor is asked for.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from attnviz.commands.scan.tasks import Done, Task
from attnviz.commands.scan.worker import Job, Worker
from attnviz.errors import AttnvizError, ModelError, missing

IN_FLIGHT = 2
"""Tasks that an actor has at a time, so that it need not wait for its next one."""
TRIES = 3
"""How often a task is given to an actor that is lost, before the scan ends."""


@dataclass(frozen=True)
class _Sent:
    """What an actor was asked: a task, or None for whether it is ready."""

    actor: Any
    task: Task | None
    tries: int = 1


class RayWorkers:
    """Actors that do tasks; see `ray_workers`."""

    def __init__(self, ray: Any, job: Job, actors: int, gpus: float) -> None:
        self._ray, self._job = ray, job
        # without num_cpus, Ray would count an actor as none, and give it one thread for each
        self._class = ray.remote(num_cpus=1, num_gpus=gpus)(_Actor)
        self._ready: list[Any] = []
        self._sent: dict[Any, _Sent] = {}
        self._actors, self._lost = actors, 0
        for _ in range(actors):
            self._start()

    @property
    def workers(self) -> int:
        return self._actors

    def limit(self, workers: int) -> None:
        """Memory is each node's own; Ray places what fits."""

    def do(self, tasks: Sequence[Task], told: Callable[[Done], object]) -> None:
        """Do all tasks, in no particular order.

        Raises:
            AttnvizError: what a worker raised; what is done stays.
            ModelError: a task was lost too often.
        """
        waiting = [(task, 1) for task in reversed(tasks)]
        for actor in self._ready * IN_FLIGHT:
            self._send(actor, waiting)
        while waiting or any(sent.task is not None for sent in self._sent.values()):
            (reference, *_), _ = self._ray.wait(list(self._sent))
            sent = self._sent.pop(reference)
            try:
                said = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                self._lose(sent, waiting, error)
                continue
            if isinstance(said, AttnvizError):
                raise said
            if sent.task is not None:
                told(said)
                self._send(sent.actor, waiting)
            else:
                self._ready.append(sent.actor)
                for _ in range(IN_FLIGHT):
                    self._send(sent.actor, waiting)

    def _start(self) -> None:
        """Let Ray place an actor, where and when it has room; it is used once it is ready."""
        actor = self._class.remote(self._job)
        self._sent[actor.ready.remote()] = _Sent(actor, None)

    def _send(self, actor: Any, waiting: list[tuple[Task, int]]) -> None:
        if waiting and actor in self._ready:
            task, tries = waiting.pop()
            self._sent[actor.do.remote(task)] = _Sent(actor, task, tries)

    def _lose(self, sent: _Sent, waiting: list[tuple[Task, int]], error: Exception) -> None:
        """An actor was lost: its task is given to another one, and a new one takes its place."""
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


class _Actor:
    """A worker of the cluster; the model is loaded with its first task."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._worker: Worker | None = None

    def ready(self) -> None:
        """Ray has placed it."""

    def do(self, task: Task) -> Done | AttnvizError:
        """What a task did, or the error that ends the scan."""
        try:
            self._worker = self._worker or Worker(self._job)
            return self._worker.do(task)
        except AttnvizError as error:
            return error


@contextmanager
def ray_workers(job: Job, address: str, most: int | None) -> Iterator[RayWorkers]:
    """Actors on a cluster, which are ended in any case; as many as it has processors, or `most`.

    Args:
        job: what they are told.
        address: "local" for a cluster on this machine, "auto" for the one that it belongs to, or
            where its head is.
        most: how many actors at most.

    Raises:
        UsageError: Ray is not installed.
        ModelError: there is no cluster at this address.
    """
    ray = _import_ray()
    mine = not ray.is_initialized()
    if mine:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"there is no Ray cluster at {address!r}: {str(error).splitlines()[0]}",
                "give local, auto, or the address of its head",
            ) from None
    workers = None
    try:
        there = ray.cluster_resources()
        gpus = 0 if job.source.placement.device == "cpu" else int(there.get("GPU", 0))
        actors = min(most or 1 << 20, gpus or int(there.get("CPU", 1)))
        workers = RayWorkers(ray, job, max(1, actors), 1 if gpus else 0)
        yield workers
    finally:
        if workers is not None:
            workers.end()
        if mine:
            ray.shutdown()


def _import_ray() -> Any:
    # before it is imported: nothing is reported to anybody
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise missing("a Ray cluster needs ray", "ray") from None
    return ray
