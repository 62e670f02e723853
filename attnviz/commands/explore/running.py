"""An app that keeps a text's patterns on show, as they are computed and transformed.

    an edit ─► (a moment) ─► a run ─► the tokens, layer after layer ─► capture ─► scene
    a toggle ─► transforms ─► scene

All of it is done in threads. What is shown stays until there is something newer, and whatever
somebody wants anew stops what was wanted before.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from textual.app import App
from textual.message import Message
from textual.timer import Timer
from textual.worker import Worker, WorkerFailed, get_current_worker

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.ablate.run import Ablating, Targets, ablate_together
from attnviz.commands.explore.scene import Scene, Slot, Toggles, scene_of
from attnviz.errors import AttnvizError, Speller, spelled
from attnviz.kit.intervene import watched
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.records.capture import Capture, KeepEverything, LayerPattern, PatternBlock
from attnviz.records.heads import Head, every_head

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


# The app's input, and its runs of the model: one at a time, and an older one gives way.

Cancelled: TypeAlias = Callable[[], bool]
"""Whether a thread's result is no longer wanted."""

SoFar: TypeAlias = Callable[[Capture, int], None]
"""Is given what there is of a capture, and how many layers of it are there: at first none, then
one more each time. The patterns of the others are NaN, and take no memory."""

CANDIDATES = 8


class GaveWay(Exception):
    """A thread stopped because its result is no longer wanted."""


@dataclass(frozen=True)
class Runs:
    """A model with the options of its texts; its hooks and modules allow one run at a time."""

    model: "LoadedModel"
    options: TextOptions
    _one: Lock = field(default_factory=Lock)

    def capture(self, text: str, cancelled: Cancelled, so_far: SoFar) -> Capture:
        """The patterns of all heads over a text; what there is of them goes to `so_far`."""
        with self._one:
            check(cancelled)
            prepared = prepare(self.model, text, self.options)
            heads = every_head(self.model.identity.heads_per_layer)
            prepared.budget.check(prepared.budget.patterns(heads), "shorten the text")
            keep, last_row = KeepEverything(prepared.shape), prepared.shape[0] - 1
            so_far(_with_layers(prepared.empty, ()), 0)

            def consume(block: PatternBlock) -> None:
                check(cancelled)
                keep(block)
                if block.queries[-1] == last_row:
                    layers = keep.layers()
                    so_far(_with_layers(prepared.empty, layers), len(layers))

            prepared.run(heads, consume)
            return replace(prepared.empty, layers=keep.layers())

    def without(self, text: str, head: Head, cancelled: Cancelled) -> BeforeAfter:
        with self._one:
            check(cancelled)
            targets = Targets(HeadOptions(heads=str(head)))
            with watched(lambda _done, _of: check(cancelled)):
                return ablate_together(
                    self.model, text, self.options, targets, Ablating(), CANDIDATES
                )


def _with_layers(empty: Capture, layers: tuple[LayerPattern, ...]) -> Capture:
    """The capture with these layers, and NaN in all others."""
    there = {layer.layer: layer for layer in layers}
    shape = len(empty.query_tokens), len(empty.key_tokens)
    every = []
    for layer, heads in enumerate(empty.model.heads_per_layer):
        nothing = np.broadcast_to(np.float32(np.nan), (heads, *shape))
        waiting = LayerPattern(layer, tuple(range(heads)), nothing)
        every += [there.get(layer, waiting)] if heads else []
    return replace(empty, layers=tuple(every))


@dataclass(frozen=True)
class Opened:
    """The app's input: a text and a model to run it, or a saved capture."""

    text: str = ""
    runs: Runs | None = None
    capture: Capture | None = None

    @classmethod
    def of_text(cls, text: str, model: "LoadedModel", options: TextOptions) -> "Opened":
        """A text, the model to run it, and the options of its runs."""
        return cls(text, Runs(model, options))


def check(cancelled: Cancelled) -> None:
    """Raise GaveWay in a thread whose result is no longer wanted."""
    if cancelled():
        raise GaveWay


# The messages to the app: where the user goes, and the results of threads.


@dataclass
class Chosen(Message):
    """The user went elsewhere; a part that is None stays, or follows from the others."""

    slot: Slot | None = None
    query: int | None = None
    key: int | None = None


@dataclass
class Step(Message):
    """A key that moves, from wherever the user is by then: keys may come faster than frames."""

    take: Callable[[], Chosen | None]


@dataclass
class Growing(Message):
    """A run goes on: what there is of its patterns, and how many layers of how many they are."""

    text: str
    scene: Scene
    layers: int
    of: int


@dataclass
class Captured(Message):
    """A run has ended."""

    text: str
    capture: Capture


@dataclass
class Failed(Message):
    """A text cannot be run."""

    text: str
    why: str


@dataclass
class Presented(Message):
    """Patterns have been transformed and can be shown; `capture` holds them as they were.

    `chosen`: the scene is at the head with the clearest pattern on this text.
    """

    capture: Capture
    scene: Scene
    toggles: Toggles
    chosen: bool


@dataclass
class Refused(Message):
    """A transform is impossible; `instead` are the toggles before it."""

    why: str
    instead: Toggles


@dataclass
class AblationDone(Message):
    """The model was run without a head."""

    effect: BeforeAfter


@dataclass
class Said(Message):
    """A sentence for the user; `wrong` where something did not work."""

    text: str
    wrong: bool = False


SAVE = "save"
"""The group of the threads that write files."""
PAUSE = 0.25
"""Seconds without a key before an edited text is run."""
STEP = 0.3
"""Seconds between two pictures of a run that goes on; a shorter run shows its end alone."""


class RunningApp(App[None]):
    """The text, its runs in threads, and the scene; `spell` writes parameters in messages."""

    def __init__(self, opened: Opened, spell: Speller, *, ansi_color: bool | None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._spell = spell
        self._opened, self._text = opened, opened.text
        self._capture: Capture | None = None
        """The patterns of the text, once all of them are there."""
        self._presented: Capture | None = None
        self.scene: Scene | None = None
        self.toggles = self._wanted = Toggles()
        self._moved = False
        """Whether the user has gone somewhere; until then each text opens at what it tells."""
        self._problem = ""
        self._waiting: Timer | None = None
        self._presenting = Lock()
        self._leaving = False
        self.saved: list[str] = []
        """What was saved, for the caller to say once the terminal is back."""
        self.not_saved: AttnvizError | None = None
        """The reason why the last file that leaving waited for was not saved."""

    def _status(self) -> None:
        raise NotImplementedError

    def _show(self, scene: Scene | None) -> None:
        raise NotImplementedError

    def _show_editor(self) -> None:
        raise NotImplementedError

    @property
    def _doing(self) -> list[str]:
        """Descriptions of the threads that still run, the oldest first."""
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
        error = self._exception
        return error.error if isinstance(error, WorkerFailed) else error

    def _fatal_error(self) -> None:
        """End without Textual's own traceback: the caller of the app raises `failure`."""
        self._close_messages_no_wait()

    # ---- runs ----

    def _open(self) -> None:
        if self._opened.capture is not None:
            self._capture = self._opened.capture
            self._present()
        else:
            self._run()

    def _edited(self, text: str) -> None:
        self._text, self._problem = text, ""
        for group in ("run", "present", "ablate"):  # their results are about the old text
            self.workers.cancel_group(self, group)
        if self._waiting:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE, self._run)

    def _run(self) -> None:
        text, runs = self._text, self._opened.runs
        if runs is None:
            return
        if not text.strip():
            self._capture, self._moved = None, False
            self._show(None)
            self._status()
            return
        due = monotonic() + (STEP if self.scene else 0)

        def run(cancelled: Cancelled) -> Captured:
            captured = runs.capture(text, cancelled, self._telling(text, cancelled, due))
            return Captured(text, captured)

        self._off_thread(
            "run", "running …", run, lambda error: Failed(text, error.spelled(self._spell))
        )

    def _telling(self, text: str, cancelled: Cancelled, due: float) -> SoFar:
        """A consumer, in the thread of a run, that posts what there is of its patterns; not
        before it is due, and not too often."""

        def so_far(captured: Capture, layers: int) -> None:
            nonlocal due
            check(cancelled)
            if monotonic() >= due:
                scene = scene_of(captured, Toggles(), choose=False)
                self.post_message(Growing(text, scene, layers, len(captured.layers)))
                due = monotonic() + STEP

        return so_far

    def on_growing(self, event: Growing) -> None:
        running = [each for each in self.workers if each.group == "run" and not each.is_finished]
        if event.text != self._text or not running:
            return
        running[-1].description = f"running: layer {event.layers} of {event.of} …"
        if not self.toggles.any:  # else what was transformed stays until all of this is
            self._capture = None
            self._show(event.scene.following(self.scene) if self.scene else event.scene)
        self._status()

    def on_captured(self, event: Captured) -> None:
        if event.text == self._text:
            self._capture = event.capture
            self._present()

    def on_failed(self, event: Failed) -> None:
        if event.text != self._text:
            return
        self._problem = event.why  # until another text is run
        self._status()
        self._tell(event.why)
        if self.scene is None:
            self._show_editor()

    # ---- transforms ----

    def action_turn(self, name: str) -> None:
        """Turn a transform on or off; what an older key wanted is no longer made."""
        before, self._wanted = self._wanted, self._wanted.turned(name)
        self._present(instead=before)

    def _present(self, instead: Toggles | None = None) -> None:
        """Apply the wanted transforms to the patterns, and show them.

        `instead`: the toggles to go back to where the wanted ones are impossible.
        """
        captured, wanted, instead = self._capture, self._wanted, instead or self.toggles
        self.workers.cancel_group(self, "present")
        shown = captured is not None and captured is self._presented
        if captured is None or (shown and wanted == self.toggles):
            self._status()
            return
        choose = not (shown or self._moved)

        def present(cancelled: Cancelled) -> Presented:
            with self._presenting:  # one at a time: it takes as much memory as the patterns
                check(cancelled)
                made = scene_of(captured, wanted, choose=choose, between=lambda: check(cancelled))
                return Presented(captured, made, wanted, choose)

        self._off_thread(
            "present",
            f"{' · '.join(wanted.names) or 'showing the patterns'} …",
            present,
            lambda error: Refused(spelled(error.wrong, self._spell), instead),
        )

    def on_presented(self, event: Presented) -> None:
        if event.capture is not self._capture or event.toggles != self._wanted:
            return
        self.toggles, self._presented = event.toggles, event.capture
        # follow the user's current place, not the one at the start of the thread
        stays = self.scene is not None and not (event.chosen and not self._moved)
        self._show(event.scene.following(self.scene) if self.scene and stays else event.scene)
        self._status()

    def on_refused(self, event: Refused) -> None:
        self._tell(event.why)
        self._wanted = event.instead if event.instead != self._wanted else Toggles()
        if self._wanted != self.toggles or self._presented is not self._capture:
            self._present()
