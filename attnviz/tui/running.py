"""An app that keeps a text's patterns on show, as they are computed and transformed.

    an edit ─► (a moment) ─► a run ─► the tokens, layer after layer ─► capture ─► scene
    a toggle ─► transforms ─► scene

All of it is done in threads. What is shown stays until there is something newer, and whatever
somebody wants anew stops what was wanted before.
"""

from threading import Lock
from time import monotonic

from textual.timer import Timer

from attnviz.errors import Speller, spelled
from attnviz.records.capture import Capture
from attnviz.tui.messages import Captured, Failed, Growing, Presented, Refused
from attnviz.tui.runs import Cancelled, Opened, SoFar, check
from attnviz.tui.scene import Scene, Toggles, scene_of
from attnviz.tui.threads import ThreadedApp

PAUSE = 0.25
"""Seconds without a key before an edited text is run."""
STEP = 0.3
"""Seconds between two pictures of a run that goes on; a shorter run shows its end alone."""


class RunningApp(ThreadedApp):
    """The text, its runs, and the scene on show."""

    def __init__(self, opened: Opened, spell: Speller, *, ansi_color: bool | None) -> None:
        super().__init__(spell, ansi_color=ansi_color)
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

    def _show(self, scene: Scene | None) -> None:
        """Show another scene, or nothing."""
        raise NotImplementedError

    def _show_editor(self) -> None:
        """Show the text in the editor, if nothing else is shown."""
        raise NotImplementedError

    def _open(self) -> None:
        """Begin with what the app opens with, which is not blank."""
        if self._opened.capture is not None:
            self._capture = self._opened.capture
            self._present()
        else:
            self._run()

    # ---- runs ----

    def _edited(self, text: str) -> None:
        """The user has changed the text."""
        self._text, self._problem = text, ""
        for group in ("run", "present", "ablate"):  # their results are about the old text
            self.workers.cancel_group(self, group)
        if self._waiting:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE, self._run)

    def _run(self) -> None:
        """Run the current text; an older run gives way."""
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
