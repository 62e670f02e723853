"""The terminal app: a text, its heads, one head's pattern, one token's links.

    an edit or a toggle ─► (`running.py`) ─► scene ─► panes
    a key or a click ─► Chosen ─► another scene ─► panes

The scene is the only thing that changes; panes only show it. Runs, transforms, pictures and pages
are made in threads (`threads.py`), so that no key has to wait.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, TextArea

from attnviz.console import NARROWEST, Display
from attnviz.errors import Speller, as_argument
from attnviz.tui.find import Find
from attnviz.tui.messages import AblationDone, Chosen, Step
from attnviz.tui.panes import Panes
from attnviz.tui.running import RunningApp
from attnviz.tui.runs import Opened
from attnviz.tui.saving import save_page, save_picture
from attnviz.tui.scene import Scene
from attnviz.tui.screens import AblationScreen, HelpScreen


class ExploreApp(RunningApp):
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
        Binding("r", "turn('rollout')", "Roll"),
        Binding("g", "switch_heads", "Grid"),
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
        super().__init__(opened, spell, ansi_color=True if plain else None)
        if plain:
            self.theme = "ansi-dark"
        self._display_whole, self._folder = display, folder
        self._panes, self._find = Panes(opened.text, display), Find()

    def compose(self) -> ComposeResult:
        yield self._panes
        yield self._find
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        # after ctrl+z and fg the terminal is empty until the app is drawn again
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        if self._opened.capture is not None or self._text.strip():
            self._open()
        else:
            self.action_edit()

    # ---- the text ----

    def action_edit(self) -> None:
        """Show the text in the editor."""
        if self._opened.runs is None:
            self._tell(
                'the text of a saved capture cannot be edited; start with attnviz explore "a text"'
            )
            return
        self._show_editor()

    def _show_editor(self) -> None:
        if not self._panes.editing:
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
        if event.text_area.text != self._text:
            self._edited(event.text_area.text)

    def _show(self, scene: Scene | None) -> None:
        before = self.scene
        if scene is None or before is None or scene.positions != before.positions:
            self._find.forget()
        self.scene = scene
        self._panes.show(scene)

    # ---- where the user goes ----

    def on_chosen(self, event: Chosen) -> None:
        if self.scene is None:
            return
        self._moved = True
        scene = self.scene if event.slot is None else self.scene.in_slot(event.slot)
        if event.query is not None or event.key is not None:
            scene = scene.at(event.query, event.key)
        self._show(scene)

    def on_step(self, event: Step) -> None:
        chosen = event.take()
        if chosen:
            self.on_chosen(chosen)

    def action_find(self) -> None:
        """Ask for a token."""
        if self.scene:
            self._find.open(self.scene)

    def action_find_next(self) -> None:
        """Go to the next match."""
        chosen = self._find.next_after(self.scene) if self.scene else None
        if chosen:
            self.on_chosen(chosen)

    def on_input_submitted(self) -> None:
        """End the search."""
        self._find.close()
        self._panes.focus_text()

    def action_switch_heads(self) -> None:
        """Show the heads as miniatures, or as a list again."""
        self._panes.switch_heads()

    # ---- ablation, files, help ----

    def action_ablate(self) -> None:
        """Run the model without the head."""
        runs, scene = self._opened.runs, self.scene
        if scene is None:
            return
        head, text = scene.head, scene.capture.text
        if runs is None:
            self._tell('a saved capture cannot be run again; start with attnviz explore "the text"')
        elif head is None:
            self._tell("rollout combines all heads; press r to leave it")
        else:
            self._off_thread(
                "ablate",
                f"without {head} …",
                lambda cancelled: AblationDone(runs.without(text, head, cancelled)),
            )

    def on_ablation_done(self, event: AblationDone) -> None:
        if len(self.screen_stack) > 1 or self._panes.editing:
            return  # the user has turned to something else
        width = min(90, max(NARROWEST, self.size.width * 24 // 25 - 6))  # of the overlay
        display = replace(self._display_whole, width=width)
        self.push_screen(AblationScreen(event.effect, display))

    def action_picture(self) -> None:
        """Save the pattern as a PNG."""
        scene = self.scene
        if scene and scene.waits:
            self._tell(f"{scene.map.label} is not computed yet; wait a moment")
        elif scene:
            self._save("drawing …", lambda: save_picture(scene, self._folder))

    def action_page(self) -> None:
        """Save all heads as a page."""
        scene, captured, toggles = self.scene, self._presented, self.toggles
        if scene is None:
            return
        if captured is None or captured is not self._capture:
            self._tell("the page shows all heads, and some are not computed yet; wait a moment")
            return
        said = "; it opens in any browser, offline"
        write = partial(save_page, captured, scene, toggles, self._folder)
        self._save("writing the page …", write, said)

    def action_help(self) -> None:
        """List all keys."""
        self.push_screen(HelpScreen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys that are letters only where letters are not text."""
        typing = self._panes.editing or self._find.is_open
        letters = (
            *("edit", "find", "turn", "ablate", "picture", "page", "help", "find_next"),
            "switch_heads",
        )
        return not (typing and self.focused in (self._panes.editor, self._find)) or (
            action not in letters
        )

    def _status(self) -> None:
        """Show, under the text, what the app is doing, else the transforms that are on."""
        said = [*self.toggles.names, *(["esc: done"] if self._panes.editing else [])]
        if self.scene is None:
            said = ["type a text" if self._panes.editing else "e: type a text"]
        doing = self._doing
        if doing and self._capture is None and self._wanted.any:
            doing.append(f"then {', '.join(self._wanted.names)}")
        self._panes.say(" · ".join(doing) or self._problem or " · ".join(said))
