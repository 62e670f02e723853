"""An app that works in threads: errors become sentences, and leaving waits for files."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from textual.app import App
from textual.message import Message
from textual.worker import Worker, WorkerFailed, get_current_worker

from attnviz.errors import AttnvizError, Speller
from attnviz.tui.messages import Said
from attnviz.tui.runs import Cancelled, GaveWay

SAVE = "save"
"""The group of the threads that write files."""


class ThreadedApp(App[None]):
    """The threads, notifications and end of an app; `spell` writes parameters in messages."""

    def __init__(self, spell: Speller, *, ansi_color: bool | None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._spell = spell
        self._leaving = False
        self.saved: list[str] = []
        """What was saved, for the caller to say once the terminal is back."""
        self.not_saved: AttnvizError | None = None
        """The reason why the last file that leaving waited for was not saved."""

    def _status(self) -> None:
        """Show what the app is doing."""
        raise NotImplementedError

    @property
    def _doing(self) -> list[str]:
        """What the app's threads do that nobody has stopped, the oldest first."""
        ours = [worker for worker in self.workers if worker.node is self]
        working = [each for each in ours if not (each.is_finished or each.is_cancelled)]
        return list(dict.fromkeys(each.description for each in working))

    def on_worker_state_changed(self, _: Worker.StateChanged) -> None:
        self._status()

    def _tell(self, text: str, *, wrong: bool = True) -> None:
        severity: Literal["warning", "information"] = "warning" if wrong else "information"
        self.notify(text, severity=severity, timeout=5 if wrong else 3, markup=False)

    def on_said(self, event: Said) -> None:
        self._tell(event.text, wrong=event.wrong)

    def _off_thread(
        self,
        group: str,
        doing: str,
        make: Callable[[Cancelled], Message],
        failed: Callable[[AttnvizError], Message] | None = None,
        *,
        exclusive: bool = True,
    ) -> None:
        """Make a message in a thread and post it, unless the thread was cancelled.

        `doing` is what the user reads meanwhile; `failed` makes the message for an error, by
        default its sentence; `exclusive` cancels older threads of the group.
        """

        def work() -> None:
            worker = get_current_worker()
            try:
                message = make(lambda: worker.is_cancelled)
            except GaveWay:
                return
            except AttnvizError as error:
                message = failed(error) if failed else Said(error.spelled(self._spell), wrong=True)
            if not worker.is_cancelled:
                self.post_message(message)

        self.run_worker(work, group=group, description=doing, thread=True, exclusive=exclusive)

    def _save(self, doing: str, write: Callable[[], Path], more: str = "") -> None:
        """Write a file in a thread; `more` follows its path in the notification."""

        def save(_: Cancelled) -> Said:
            try:
                path = write()
            except AttnvizError as error:
                self.not_saved = error if self._leaving else None
                raise
            self.saved.append(f"saved {path}")
            return Said(f"saved {path}{more}")

        self._off_thread(SAVE, doing, save, exclusive=False)

    async def action_quit(self) -> None:
        """Leave once all files are saved; leave at once on the second request."""
        saving = [worker for worker in self.workers if worker.group == SAVE]
        if self._leaving or not saving:
            self.exit()
            return
        self._leaving = True

        async def leave() -> None:
            with suppress(WorkerFailed):  # raised by the caller as `failure`
                await self.workers.wait_for_complete(saving)
            self.exit()

        self.run_worker(leave(), group="leave", description="then leaving; q: at once")

    @property
    def failure(self) -> BaseException | None:
        """The bug that ended the app, if any."""
        error = self._exception
        return error.error if isinstance(error, WorkerFailed) else error

    def _fatal_error(self) -> None:
        """End without Textual's own traceback: the caller of the app raises `failure`."""
        self._close_messages_no_wait()
