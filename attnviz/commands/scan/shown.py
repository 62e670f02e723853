"""Messages of a scan: its progress on a terminal, and the estimate of a scan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.commands.scan.estimate import Estimated
from attnviz.commands.scan.plan import Done, Task
from attnviz.commands.scan.run import Watcher
from attnviz.corpus.documents import LONGEST
from attnviz.draw.titles import amount, duration, percent
from attnviz.kit.session import Session
from attnviz.models.placement import written

if TYPE_CHECKING:
    from rich.progress import Progress


def estimate_lines(about: Estimated) -> Iterator[str]:
    """The rest of a scan, and the time, memory and disk that it takes."""
    if not about.shards:
        yield f"nothing is left to count of {amount(about.all_shards, 'shard')}"
        return
    counted = about.all_shards - about.shards
    if counted:
        yield f"{counted:,} of {amount(about.all_shards, 'shard')} are counted; what is left takes"
    lines = {
        "documents": _rounded(about.documents),
        "windows": f"{_rounded(about.windows)} of at most {about.length:,} tokens",
        "tokens": _rounded(about.tokens),
        "time": f"{duration(about.seconds)} with {amount(about.workers, 'worker')}",
        "memory": _memory(about),
        "disk": written(about.disk),
    }
    for name, value in lines.items():
        yield f"{name:10} about {value}"


def _rounded(number: int) -> str:
    """Three digits, as an estimate has no more."""
    return f"{float(f'{number:.3g}'):,.0f}"


def _memory(about: Estimated) -> str:
    more = f" ({written(about.more)} more for a text of {LONGEST >> 20} MB)"
    return f"{written(about.memory)}{more if about.more else ''}"


# How far a scan is.


@dataclass
class Phase:
    """The progress of the tasks of one kind, measured by their sizes, as few are alike.

    `tasks`, `size`: of all of them; `done`, `reached`: of those that are done; `before`: what was
    reached when this run began; `tokens`: of this run; `at`: its seconds when the last task ended.
    """

    what: str = ""
    tasks: int = 0
    size: int = 0
    done: int = 0
    reached: int = 0
    before: int = 0
    tokens: int = 0
    at: float = 0.0

    @classmethod
    def of(cls, what: str, left: Sequence[Task], of: Sequence[Task]) -> "Phase":
        """The phase at its beginning."""
        whole, rest = (sum(task.size for task in tasks) for tasks in (of, left))
        before = whole - rest
        return cls(what, len(of), whole, len(of) - len(left), before, before)

    def add(self, done: Done, seconds: float) -> None:
        """Note a task that ended, in seconds after this run began."""
        self.done, self.reached = self.done + 1, self.reached + done.size
        self.tokens, self.at = self.tokens + done.tokens, seconds

    def left(self, seconds: float) -> float | None:
        """The seconds that are left at the rate so far; None while there is no rate."""
        run = self.reached - self.before
        if run <= 0 or not self.at:
            return None
        return max(0.0, (self.size - self.reached) / run * self.at - (seconds - self.at))

    def said(self, seconds: float) -> list[str]:
        """The facts for a person, the most wanted first."""
        parts, left = list[str](), self.left(seconds)
        if self.reached:
            parts.append(percent(self.reached, max(1, self.size)))
        if left is not None:
            parts.append(f"{duration(left)} left")
            parts.append(f"{self.tokens / self.at:,.0f} tokens/s")
        minutes, rest = divmod(int(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return [*parts, f"{self.done:,} of {self.tasks:,}", f"{hours}:{minutes:02}:{rest:02}"]


LEAST_BAR = 8
"""Cells that are left to the bar."""


class Watching(Watcher):
    """Shows the progress of a scan on a terminal."""

    def __init__(self, session: Session, bar: "Progress") -> None:
        self._session, self._bar, self._phase = session, bar, Phase()
        self._task = bar.add_task("", visible=False, said=self)

    def __str__(self) -> str:
        """The line behind the bar, which is drawn again and again, as far as it fits."""
        width = self._session.consoles.err.width - LEAST_BAR
        first, *more = self._phase.said(self._seconds)
        line = f"{self._phase.what}: {first}"
        for part in more:
            longer = f"{line}, {part}"
            if len(longer) > width:
                break
            line = longer
        return line

    @property
    def _seconds(self) -> float:
        return self._bar.tasks[-1].elapsed or 0.0

    def expect(self, estimate: Estimated) -> None:
        self._session.note(
            f"about {_rounded(estimate.tokens)} tokens: {duration(estimate.seconds)}, "
            f"memory {_memory(estimate)}, disk {written(estimate.disk)}"
        )

    def note(self, said: str) -> None:
        self._session.note(said)

    def begin(self, what: str, left: Sequence[Task], of: Sequence[Task]) -> None:
        done, self._phase = len(of) - len(left), Phase.of(what, left, of)
        if done:
            self._session.note(f"going on: {done} of {amount(len(of), 'shard')} are counted")
        self._bar.remove_task(self._task)
        self._task = self._bar.add_task("", visible=bool(left), total=None, said=self)
        self._draw()

    def did(self, done: Done) -> None:
        self._phase.add(done, self._seconds)
        self._draw()

    def stopped(self) -> None:
        """Tell what an interruption leaves."""
        if self._phase.what == "shards":
            counted = f"{self._phase.done:,} of {amount(self._phase.tasks, 'shard')} are counted"
            self._session.note(f"{counted}; the same command continues from there")

    def _draw(self) -> None:
        """Draw a bar that moves to and fro until there is a share that it can show."""
        phase = self._phase
        total = phase.size if phase.reached else None
        self._bar.update(self._task, completed=phase.reached, total=total)
