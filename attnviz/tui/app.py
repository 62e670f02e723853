"""The terminal app: a text, its heads, one head's pattern, one token's links.

    an edit ─► (a moment) ─► a run, off this thread ─► capture ─► scene ─► panes
    a key or a click ─► Chosen ─► another scene ─► panes

The scene is the only thing that changes; panes only show it. Runs, pictures and pages are made
in threads (`threads.py`), so that no key has to wait. The file is long because every key's
action stands here.
"""

from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Footer, TextArea

from attnviz.console import NARROWEST, Display
from attnviz.data.capture import Capture
from attnviz.errors import Speller, as_argument, spelled
from attnviz.tui.find import Find
from attnviz.tui.messages import AblationDone, Captured, Chosen, Failed, Presented, Refused
from attnviz.tui.panes import Panes
from attnviz.tui.runs import Cancelled, Opened, check
from attnviz.tui.saving import save_page, save_picture
from attnviz.tui.scene import Scene, Toggles, scene_of
from attnviz.tui.screens import AblationScreen, HelpScreen
from attnviz.tui.threads import ThreadedApp

PAUSE = 0.25
"""Seconds without a key before an edited text is run."""


class ExploreApp(ThreadedApp):
    """Looking around in a text's attention; pictures and pages are saved in `folder`."""

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

    def __init__(
        self, opened: Opened, display: Display, folder: Path, spell: Speller = as_argument
    ) -> None:
        # with few colours or none, the terminal's own, which differ from each other in any theme
        plain = display.sixteen or not display.color
        super().__init__(spell, ansi_color=True if plain else None)
        if plain:
            self.theme = "ansi-dark"
        self._opened, self._display_whole, self._folder = opened, display, folder
        self._text = opened.text
        self._capture: Capture | None = None
        self.scene: Scene | None = None
        self.toggles = self._wanted = Toggles()
        self._waiting: Timer | None = None
        self._presenting = Lock()
        self._panes, self._find = Panes(opened.text, display), Find()

    def compose(self) -> ComposeResult:
        yield self._panes
        yield self._find
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        # after ctrl+z and fg the terminal is empty until the app is drawn again
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        if self._opened.capture is not None:
            self._capture = self._opened.capture
            self._present()
        elif self._text.strip():
            self._run()
        else:
            self.action_edit()

    # ---- the text, its runs and its patterns ----

    def action_edit(self) -> None:
        """Show the text in the editor."""
        if self._opened.runs is None:
            self._tell(
                'the text of a saved capture cannot be edited; start with attnviz explore "a text"'
            )
            return
        self._panes.edit()
        self._status()

    def action_leave_edit(self) -> None:
        """Leave the search, or show the words of the text."""
        if self._find.is_open:
            self.on_input_submitted()
        elif self._panes.editing:
            self._panes.read()
            self._status()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text == self._text:
            return
        self._text = event.text_area.text
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
            self._capture = None
            self._show(None)
            self._status()
            return
        self._status("running …")

        self._off_thread(
            "run",
            lambda cancelled: Captured(text, runs.capture(text, cancelled)),
            lambda error: Failed(text, error.spelled(self._spell)),
        )

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
        """Apply the wanted transforms to the patterns, and show them."""
        captured, wanted, choose = self._capture, self._wanted, self.scene is None
        if captured is None:
            return
        self._find.forget()
        self._status("working …")

        def present(cancelled: Cancelled) -> Presented:
            with self._presenting:  # one at a time: it takes as much memory as the patterns
                check(cancelled)
                return Presented(captured, scene_of(captured, wanted, choose=choose), wanted)

        self._off_thread(
            "present", present, lambda error: Refused(spelled(error.wrong, self._spell))
        )

    def on_presented(self, event: Presented) -> None:
        if event.capture is not self._capture:
            return
        self.toggles = event.toggles
        # follow the user's current place, not the one at the start of the thread
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
        """Go to the next match."""
        if self.scene:
            self._find.next_after(self.scene)

    def on_input_submitted(self) -> None:
        """End the search."""
        self._find.close()
        self._panes.focus_text()

    def action_turn(self, name: str) -> None:
        """Turn a transform on or off."""
        self._wanted = self._wanted.turned(name)
        self._present()

    # ---- ablation, files, help ----

    def action_ablate(self) -> None:
        """Run the model without the head."""
        runs, scene, captured = self._opened.runs, self.scene, self._capture
        if scene is None or captured is None:
            return
        head, text = scene.head, captured.text
        if runs is None:
            self._tell('a saved capture cannot be run again; start with attnviz explore "the text"')
        elif head is None:
            self._tell("rollout combines all heads; press r to leave it")
        else:
            self._status(f"without {head} …")
            self._off_thread("ablate", lambda _: AblationDone(runs.without(text, head)))

    def on_ablation_done(self, event: AblationDone) -> None:
        self._status()
        if len(self.screen_stack) > 1 or self._panes.editing:
            return  # the user has turned to something else
        width = min(90, max(NARROWEST, self.size.width * 24 // 25 - 6))  # of the overlay
        display = replace(self._display_whole, width=width)
        self.push_screen(AblationScreen(event.effect, display))

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

    def action_help(self) -> None:
        """List all keys."""
        self.push_screen(HelpScreen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys that are letters only where letters are not text."""
        typing = self._panes.editing or self._find.is_open
        letters = ("edit", "find", "turn", "ablate", "picture", "page", "help", "find_next")
        return not (typing and self.focused in (self._panes.editor, self._find)) or (
            action not in letters
        )

    def _status(self, doing: str = "") -> None:
        """Show, under the text, what the app is doing, else the transforms that are on."""
        on = [*self.toggles.names, *(["esc: done"] if self._panes.editing else [])]
        if self._capture is None:
            on = ["type a text" if self._panes.editing else "e: type a text"]
        self._panes.say(doing or " · ".join(on))
