"""Models that serve many requests: one run at a time each, the newest of a view first.

A run is worked on in a thread, which gives way between two layers: when the same view asked for
something else, when nobody waits any more, and when the server ends.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from time import monotonic
from typing import Generic, TypeAlias, TypeVar

from attnviz.commands.serve.runs import LiveRuns
from attnviz.kit.intervene import GaveWay
from attnviz.kit.values import Loaded

T = TypeVar("T")
Viewer: TypeAlias = tuple[str, int]
"""Who asks, and the number of the request among theirs; "" has no order."""
Work: TypeAlias = Callable[["LiveJob[T]"], Iterator[T]]
NOBODY: Viewer = ("", 0)
VIEWS = 100
"""Views whose last requests are remembered."""
SLOW, STEP = 0.5, 0.2
"""Seconds before a run tells its progress, and between two such reports."""


@dataclass(eq=False)
class Served:
    """A model, its runs, and the last request of each view.

    `one`: the lock that every run of any model holds, as a call may use two models.
    """

    model: Loaded
    runs: LiveRuns
    one: Lock
    latest: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def heard(self, view: Viewer) -> None:
        """Remember a view's request, for which its earlier ones give way."""
        name, number = view
        self.latest[name] = max(number, self.latest.pop(name, 0))
        while len(self.latest) > VIEWS:
            self.latest.popitem(last=False)

    def is_newest(self, view: Viewer) -> bool:
        """Whether a view has asked for nothing later."""
        name, number = view
        return not name or self.latest.get(name, 0) <= number


@dataclass(eq=False)
class LiveJob(Generic[T]):
    """A request's work on a model; `give` takes what it yields, its error, and at last None.

    Called with the number of finished steps and of all steps, it raises `GaveWay` if the result is
    no longer wanted, and gives a slow run's progress, made by `progress`.
    """

    served: Served
    view: Viewer
    ending: Event
    give: Callable[[T | Exception | None], object]
    progress: Callable[[int, int], T] | None = None
    gone: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.served.heard(self.view)
        self._told = monotonic() + SLOW

    def __call__(self, done: int = 0, of: int = 0) -> None:
        if self.gone.is_set() or self.ending.is_set() or not self.served.is_newest(self.view):
            raise GaveWay
        if self.progress and of and monotonic() > self._told:
            self._told = monotonic() + STEP
            self.give(self.progress(done, of))

    def begin(self, work: Work[T]) -> None:
        """Work in a thread."""
        Thread(target=self._work, args=[work], daemon=True).start()

    def _work(self, work: Work[T]) -> None:
        try:
            with self.served.one:
                self()
                for part in work(self):
                    self.give(part)
        except GaveWay:
            pass
        except Exception as error:
            self.give(error)
        finally:
            self.give(None)


async def parts_of(
    served: Served,
    view: Viewer,
    ending: Event,
    work: Work[T],
    progress: Callable[[int, int], T] | None = None,
) -> AsyncGenerator[T]:
    """Yield what work in a thread yields; it gives way when nobody takes it any more.

    Raises:
        AttnvizError: the work did.
    """
    loop, made = asyncio.get_running_loop(), asyncio.Queue[T | Exception | None]()

    def give(part: T | Exception | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(made.put_nowait, part)

    job = LiveJob[T](served, view, ending, give, progress)
    job.begin(work)
    try:
        while (part := await made.get()) is not None:
            if isinstance(part, Exception):
                raise part
            yield part
    finally:
        job.gone.set()
