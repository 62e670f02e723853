"""The terminal app: a text, its heads, one head's pattern, one token's links.

    an edit ─► (a moment) ─► a run, off this thread ─► capture ─► scene ─► panes
    a key or a click ─► Chosen ─► another scene ─► panes

The scene is the one thing that changes; panes only show it. Runs, pictures and pages are
made in threads, so that no key has to wait.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Footer, TextArea
from textual.worker import WorkerFailed, get_current_worker

from attnviz.console import NARROWEST, Display
from attnviz.data.capture import Capture
from attnviz.errors import AttnvizError
from attnviz.runs.options import TextOptions
from attnviz.tui.find import Find
from attnviz.tui.messages import Ablated, Captured, Chosen, Failed, Presented, Refused, Said
from attnviz.tui.panes import Panes
from attnviz.tui.runs import GaveWay, Runs
from attnviz.tui.saving import save_page, save_picture
from attnviz.tui.scene import Scene, Toggles, scene_of
from attnviz.tui.screens import AblationScreen, HelpScreen

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

PAUSE = 0.25
"""Seconds without a key after which an edited text is run."""

SAVE = "save"
"""The threads that write files, which leaving waits for."""


@dataclass(frozen=True)
class Opened:
    """What the app begins with: a text and a model to run it, or a saved capture."""

    text: str = ""
    runs: Runs | None = None
    capture: Capture | None = None

    @classmethod
    def of_text(cls, text: str, model: "LoadedModel", options: TextOptions) -> "Opened":
        """A text, and the model that is to run it and what becomes of it."""
        return cls(text, Runs(model, options))


class ExploreApp(App[None]):
    """Looking around in a text's attention."""

    TITLE = "attnviz"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  # as Textual declares it
        (0, "-narrow"),
        (64, "-wide"),
    ]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Keys", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("e", "edit", "Edit"),
        Binding("slash", "find", "Find", key_display="/"),
        Binding("w", "turn('words')", "Words"),
        Binding("s", "turn('sink')", "Sink"),
        Binding("r", "turn('rollout')", "Rollout"),
        Binding("a", "ablate", "Ablate"),
        Binding("p", "picture", "PNG"),
        Binding("o", "page", "Page"),
        Binding("ctrl+c", "quit", "Quit", show=False),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
        Binding("n", "find_next", "Next", show=False),
        Binding("escape", "leave_edit", "Done", show=False),
    ]

    def __init__(self, opened: Opened, display: Display, folder: Path) -> None:
        # with few colours or none, the terminal's own: they can be told apart in any
        plain = display.sixteen or not display.color
        super().__init__(ansi_color=True if plain else None)
        if plain:
            self.theme = "ansi-dark"
        self._opened, self._display_whole, self._folder = opened, display, folder
        self._text = opened.text
        self._capture: Capture | None = None
        self.scene: Scene | None = None
        self.toggles = self._wanted = Toggles()
        self._waiting: Timer | None = None
        self._presenting = Lock()
        self._leaving = False
        self.saved: list[str] = []
        """What was saved, for whoever reads the terminal afterwards."""
        self.not_saved: AttnvizError | None = None
        """Why the last thing that leaving waited for was not saved."""
        self._panes, self._find = Panes(opened.text, display), Find()

    def compose(self) -> ComposeResult:
        yield self._panes
        yield self._find
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        # after ctrl+z and fg the terminal shows nothing until it is drawn again
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        if self._opened.capture is not None:
            self._capture = self._opened.capture
            self._present()
        elif self._text.strip():
            self._run()
        else:
            self.action_edit()

    # ---- the text, its runs, and what is made of them ----

    def action_edit(self) -> None:
        """Make the text one that can be edited."""
        if self._opened.runs is None:
            self._tell('a saved capture has the text it has; start with attnviz explore "a text"')
            return
        self._panes.edit()
        self._status()

    def action_leave_edit(self) -> None:
        """Leave the search, or show the words of the text again."""
        if self._find.is_open:
            self.on_input_submitted()
        elif self._panes.editing:
            self._panes.read()
            self._status()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text == self._text:
            return
        self._text = event.text_area.text
        for group in ("run", "present", "ablate"):  # whatever is made of the text as it was
            self.workers.cancel_group(self, group)
        if self._waiting:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE, self._run)

    def _run(self) -> None:
        """Run the text as it is now; an older run gives way."""
        text, runs = self._text, self._opened.runs
        if runs is None:
            return
        if not text.strip():
            self._capture = None
            self._show(None)
            self._status()
            return
        self._status("running …")

        def work() -> None:
            worker = get_current_worker()
            try:
                self.post_message(Captured(text, runs.capture(text, lambda: worker.is_cancelled)))
            except GaveWay:
                pass
            except AttnvizError as error:
                self.post_message(Failed(text, str(error)))

        self.run_worker(work, group="run", exclusive=True, thread=True)

    def on_captured(self, event: Captured) -> None:
        if event.text == self._text:
            self._capture = event.capture
            self._present()

    def on_failed(self, event: Failed) -> None:
        if event.text != self._text:
            return
        self._status(event.why)  # until another text is run
        self._tell(event.why)
        if self.scene is None and not self._panes.editing:
            self._panes.edit()

    def _present(self) -> None:
        """Transform the patterns as it is wanted, and show them."""
        captured, wanted, choose = self._capture, self._wanted, self.scene is None
        if captured is None:
            return
        self._find.forget()
        self._status("working …")

        def work() -> None:
            worker = get_current_worker()
            with self._presenting:  # they take as much memory as the patterns
                if worker.is_cancelled:
                    return
                try:
                    scene = scene_of(captured, wanted, choose=choose)
                except AttnvizError as error:
                    self.post_message(Refused(error.wrong))
                    return
            if not worker.is_cancelled:
                self.post_message(Presented(captured, scene, wanted))

        self.run_worker(work, group="present", exclusive=True, thread=True)

    def on_presented(self, event: Presented) -> None:
        if event.capture is not self._capture:
            return
        self.toggles = event.toggles
        # where the user stands by now, not where they stood when it was begun
        self._show(event.scene.following(self.scene) if self.scene else event.scene)
        self._status()

    def on_refused(self, event: Refused) -> None:
        self._wanted = self.toggles
        self._status()
        self._tell(event.why)

    def _show(self, scene: Scene | None) -> None:
        self.scene = scene
        self._panes.show(scene)

    # ---- where the user goes ----

    def on_chosen(self, event: Chosen) -> None:
        if self.scene is None:
            return
        scene = self.scene if event.slot is None else self.scene.in_slot(event.slot)
        if event.query is not None or event.key is not None:
            scene = scene.at(event.query, event.key)
        self._show(scene)

    def action_find(self) -> None:
        """Ask for a token."""
        if self.scene:
            self._find.open(self.scene)

    def action_find_next(self) -> None:
        """Go to the next that was found."""
        if self.scene:
            self._find.next_after(self.scene)

    def on_input_submitted(self) -> None:
        """The search is over."""
        self._find.close()
        self._panes.focus_text()

    def action_turn(self, name: str) -> None:
        """Turn a transform on or off."""
        self._wanted = self._wanted.turned(name)
        self._present()

    # ---- what comes of it ----

    def action_ablate(self) -> None:
        """Run the model without the head."""
        runs, scene, captured = self._opened.runs, self.scene, self._capture
        if scene is None or captured is None:
            return
        head, text = scene.head, captured.text
        if runs is None:
            self._tell('a saved capture is not run again; start with attnviz explore "the text"')
        elif head is None:
            self._tell("rollout is over all heads; leave it with r")
        else:
            self._status(f"without {head} …")
            self._off_thread("ablate", lambda: Ablated(runs.without(text, head)), exclusive=True)

    def on_ablated(self, event: Ablated) -> None:
        self._status()
        if len(self.screen_stack) > 1 or self._panes.editing:
            return  # the user has turned to something else
        width = min(90, max(NARROWEST, self.size.width * 24 // 25 - 6))  # of the overlay
        display = replace(self._display_whole, width=width)
        self.push_screen(AblationScreen(event.found, display))

    def action_picture(self) -> None:
        """Save the pattern as a PNG."""
        scene = self.scene
        if scene:
            self._status("drawing …")
            self._save(lambda: save_picture(scene, self._folder))

    def action_page(self) -> None:
        """Save all heads as a page."""
        scene, captured, toggles = self.scene, self._capture, self.toggles
        if scene and captured:
            self._status("writing the page …")
            said = "; it opens in any browser, offline"
            self._save(lambda: save_page(captured, scene, toggles, self._folder), said)

    def _save(self, write: Callable[[], Path], more: str = "") -> None:
        def saved() -> Said:
            try:
                path = write()
            except AttnvizError as error:
                self.not_saved = error if self._leaving else None
                raise
            self.saved.append(f"saved {path}")
            return Said(f"saved {path}{more}")

        self._off_thread(SAVE, saved)

    def action_help(self) -> None:
        """List all keys."""
        self.push_screen(HelpScreen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What letters do stands at the foot only where they are no text."""
        typing = self._panes.editing or self._find.is_open
        letters = ("edit", "find", "turn", "ablate", "picture", "page", "help", "find_next")
        return not (typing and self.focused in (self._panes.editor, self._find)) or (
            action not in letters
        )

    # ---- what is told ----

    def on_said(self, event: Said) -> None:
        self._status()
        self._tell(event.what, wrong=event.wrong)

    def _tell(self, what: str, *, wrong: bool = True) -> None:
        severity: Literal["warning", "information"] = "warning" if wrong else "information"
        self.notify(what, severity=severity, timeout=5 if wrong else 3, markup=False)

    def _status(self, doing: str = "") -> None:
        """What goes on, or else what is done to the patterns, under the text."""
        on = [*self.toggles.names, *(["esc: done"] if self._panes.editing else [])]
        if self._capture is None:
            on = ["type a text" if self._panes.editing else "e: type a text"]
        self._panes.say(doing or " · ".join(on))

    def _off_thread(
        self, group: str, make: Callable[[], Message], *, exclusive: bool = False
    ) -> None:
        """Make something in a thread of its own, and post it; what goes wrong, as a sentence."""

        def work() -> None:
            worker = get_current_worker()
            try:
                made = make()
            except AttnvizError as error:
                made = Said(str(error), wrong=True)
            if not worker.is_cancelled:
                self.post_message(made)

        self.run_worker(work, group=group, thread=True, exclusive=exclusive)

    # ---- the end ----

    async def action_quit(self) -> None:
        """Leave, once what is being saved is whole; at once if asked again."""
        saving = [worker for worker in self.workers if worker.group == SAVE]
        if self._leaving or not saving:
            self.exit()
            return
        self._leaving = True
        self._status("saving, then leaving; q: at once")

        async def leave() -> None:
            with suppress(WorkerFailed):  # told as `failure`
                await self.workers.wait_for_complete(saving)
            self.exit()

        self.run_worker(leave(), group="leave")

    @property
    def failure(self) -> BaseException | None:
        """What the app ended with, where that was a bug."""
        error = self._exception
        return error.error if isinstance(error, WorkerFailed) else error

    def _fatal_error(self) -> None:
        """End without Textual's own traceback: whoever runs the app raises `failure`."""
        self._close_messages_no_wait()
