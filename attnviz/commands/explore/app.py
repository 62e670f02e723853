"""The terminal app: a text, its heads, one head's pattern, one token's links.

    an edit ─► (a moment) ─► a run ─► the tokens, layer after layer ─► capture ─► scene ─► panes
    a toggle ─► transforms ─► scene ─► panes
    a key or a click ─► Go ─► another scene ─► panes

The scene is the only thing that changes; panes only show it. Runs, transforms, pictures and pages
are made in threads, so that no key has to wait. What is shown stays until there is something newer,
and whatever somebody wants anew stops what was wanted before.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, ClassVar, TypeVar

from rich.console import Group
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Footer, Static, TextArea
from textual.worker import Worker, WorkerFailed, get_current_worker

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.ablate.shown import view_together
from attnviz.commands.explore.pane import Find, Go, give_way
from attnviz.commands.explore.pattern import Panes
from attnviz.commands.explore.scene import Opened, Scene, SoFar, scene_of
from attnviz.commands.show.page import Start, page_of
from attnviz.commands.show.run import pieces_of
from attnviz.console import NARROWEST, Display
from attnviz.draw.terminal.grid import show_view
from attnviz.errors import AttnvizError, Speller, as_argument, spelled
from attnviz.kit.intervene import GaveWay
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.transforms import PLAIN, Transforms

R = TypeVar("R")
SAVE = "save"
"""The group of the threads that write files."""
PAUSE = 0.25
"""Seconds without a key before an edited text is run."""
STEP = 0.3
"""Seconds between two pictures of a running model; a shorter run shows only its end."""


class ExploreApp(App[None]):
    """Looking around in a text's attention; pictures and pages are saved in `folder`.

    `spell` writes parameters in messages.
    """

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
        Binding("s", "turn('drop_sink')", "Sink"),
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
        super().__init__(ansi_color=True if plain else None)
        if plain:
            self.theme = "ansi-dark"
        self._opened, self._text = opened, opened.text
        self._display_whole, self._folder, self._spell = display, folder, spell
        self._panes, self._find = Panes(opened.text, display), Find()
        self._capture: Capture | None = None
        """The patterns of the text, once all of them are there."""
        self._presented: Capture | None = None
        self.scene: Scene | None = None
        self.toggles = self._wanted = PLAIN
        self._moved = False
        """Whether the user has gone somewhere; until then each text opens at its clearest link."""
        self._problem = ""
        self._waiting: Timer | None = None
        self._presenting = Lock()
        self._leaving = False
        self.saved: list[str] = []
        """The files that were saved, for the caller to name once the terminal is back."""
        self.not_saved: AttnvizError | None = None
        """The reason why the last file that leaving waited for was not saved."""

    def compose(self) -> ComposeResult:
        yield self._panes
        yield self._find
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        # after ctrl+z and fg the terminal is empty until the app is drawn again
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        self._capture = self._opened.capture
        if self._capture is not None:
            self._present()
        elif self._text.strip():
            self._run()
        else:
            self.action_edit()

    # ---- where the user goes ----

    def on_go(self, event: Go) -> None:
        there = event.to(self.scene) if self.scene else None
        if there is not None and there is not self.scene:
            self._moved = True
            self._show(there)

    def action_find(self) -> None:
        if self.scene:
            self._find.open()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer no search where `/` is a letter; Textual hides the other letters by itself."""
        return action != "find" or self.focused not in (self._panes.editor, self._find)

    def action_find_next(self) -> None:
        self.on_go(Go(self._find.next))

    def on_input_submitted(self) -> None:
        """End the search."""
        self._find.display = False
        self._panes.focus_text()

    def action_switch_heads(self) -> None:
        """Show the heads as miniatures, or as a list again."""
        self._panes.switch_heads()

    def _show(self, scene: Scene | None) -> None:
        before = self.scene
        if scene is None or before is None or scene.positions != before.positions:
            self._find.forget()
        self.scene = scene
        self._panes.show(scene)
        self._status()

    # ---- what is said ----

    def _tell(self, text: str) -> None:
        self.notify(text, severity="warning", timeout=5, markup=False)

    def _complain(self, error: AttnvizError) -> None:
        self._tell(error.spelled(self._spell))

    def on_worker_state_changed(self, _: Worker.StateChanged) -> None:
        self._status()

    def _status(self) -> None:
        """Show, under the text, what the app is doing, else the transforms that are on."""
        state = [*names_of(self.toggles), *(["esc: done"] if self._panes.editing else [])]
        if self.scene is None:
            state = ["type a text" if self._panes.editing else "e: type a text"]
        # the oldest first
        running = [each for each in self.workers if not (each.is_finished or each.is_cancelled)]
        doing = list(dict.fromkeys(each.description for each in running if each.node is self))
        if doing and self._capture is None and self._wanted.any:
            doing.append(f"then {', '.join(names_of(self._wanted))}")
        self._panes.say(" · ".join(doing) or self._problem or " · ".join(state))

    def action_help(self) -> None:
        self.push_screen(Overlay(HELP))

    # ---- threads ----

    def _off_thread(
        self,
        group: str,
        doing: str,
        work: Callable[[], R],
        then: Callable[[R], object],
        failed: Callable[[AttnvizError], object] | None = None,
    ) -> None:
        """Work in a thread, then use its result in the app's own, unless it was cancelled.

        A newer thread of a group cancels the older one, but for files. `doing` is what the user
        reads meanwhile; `failed` takes an error, whose sentence is shown by default.
        """

        def run() -> None:
            use: Callable[[], object]
            try:
                use = partial(then, work())
            except GaveWay:
                return
            except AttnvizError as error:
                use = partial(failed or self._complain, error)
            if not get_current_worker().is_cancelled:
                self.call_later(use)

        exclusive = group != SAVE
        self.run_worker(run, group=group, description=doing, thread=True, exclusive=exclusive)

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

    # ---- the text, and its runs ----

    def action_edit(self) -> None:
        if self._opened.runs is not None:
            self._show_editor()
            return
        self._tell(
            'the text of a saved capture cannot be edited; start with attnviz explore "a text"'
        )

    def _show_editor(self) -> None:
        if not self._panes.editing:
            self._panes.edit()
            self._status()

    def action_leave_edit(self) -> None:
        """Leave the search, or show the words of the text."""
        if self._find.display:
            self.on_input_submitted()
        elif self._panes.editing:
            self._panes.read()
            self._status()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        if event.text_area.text == self._text:
            return
        self._text, self._problem = event.text_area.text, ""
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
            return
        so_far = self._progress(text)
        self._off_thread(
            "run",
            "running …",
            lambda: runs.capture(text, give_way, so_far),
            partial(self._captured, text),
            partial(self._failed, text),
        )

    def _progress(self, text: str) -> SoFar:
        """A consumer, in the thread of a run, that shows what there is of its patterns; not
        before it is due, and not too often."""
        due = monotonic() + (STEP if self.scene else 0)

        def so_far(captured: Capture, layers: int) -> None:
            nonlocal due
            give_way()
            if monotonic() >= due:
                scene = scene_of(captured, PLAIN, choose=False)
                progress = f"running: layer {layers} of {len(captured.layers)} …"
                self.call_later(self._grow, text, scene, progress)
                due = monotonic() + STEP

        return so_far

    def _grow(self, text: str, scene: Scene, progress: str) -> None:
        running = [each for each in self.workers if each.group == "run" and not each.is_finished]
        if text != self._text or not running:
            return
        running[-1].description = progress
        if self.toggles.any:  # what was transformed stays until all of this is
            self._status()
        else:
            self._capture = None
            self._show(scene.following(self.scene) if self.scene else scene)

    def _captured(self, text: str, captured: Capture) -> None:
        if text == self._text:
            self._capture = captured
            self._present()

    def _failed(self, text: str, error: AttnvizError) -> None:
        if text != self._text:
            return
        self._problem = error.spelled(self._spell)  # until another text is run
        self._status()
        self._complain(error)
        if self.scene is None:
            self._show_editor()

    # ---- transforms ----

    def action_turn(self, name: str) -> None:
        """Turn a transform on or off; what an older key wanted is no longer made."""
        before = self._wanted
        change: dict[str, Any] = {name: not getattr(before, name)}
        self._wanted = replace(before, **change)
        self._present(instead=before)

    def _present(self, instead: Transforms | None = None) -> None:
        """Apply the wanted transforms to the patterns, and show them.

        `instead`: the toggles to go back to where the wanted ones are impossible.
        """
        captured, wanted = self._capture, self._wanted
        self.workers.cancel_group(self, "present")
        shown = captured is not None and captured is self._presented
        if captured is None or (shown and wanted == self.toggles):
            self._status()
            return
        choose = not (shown or self._moved)

        def present() -> Scene:
            with self._presenting:  # one at a time: it takes as much memory as the patterns
                give_way()
                return scene_of(captured, wanted, choose=choose, between=give_way)

        def take(scene: Scene) -> None:
            if captured is not self._capture or wanted != self._wanted:
                return
            self.toggles, self._presented = wanted, captured
            # follow the user's current place, not the one at the start of the thread
            stays = self.scene is not None and (self._moved or not choose)
            self._show(scene.following(self.scene) if self.scene and stays else scene)

        doing = f"{' · '.join(names_of(wanted)) or 'showing the patterns'} …"
        failed = partial(self._refuse, instead or self.toggles)
        self._off_thread("present", doing, present, take, failed)

    def _refuse(self, instead: Transforms, error: AttnvizError) -> None:
        self._tell(spelled(error.wrong, self._spell))
        self._wanted = instead if instead != self._wanted else PLAIN
        if self._wanted != self.toggles or self._presented is not self._capture:
            self._present()

    # ---- ablation, and files ----

    def action_ablate(self) -> None:
        runs, scene = self._opened.runs, self.scene
        if scene is None:
            return
        head, text = scene.head, self._text  # a capture's may have been written by a template
        if runs is None:
            self._tell('a saved capture cannot be run again; start with attnviz explore "the text"')
        elif head is None:
            self._tell("rollout combines all heads; press r to leave it")
        else:
            without = partial(runs.without, text, head, give_way)
            self._off_thread("ablate", f"without {head} …", without, self._show_ablation)

    def _show_ablation(self, effect: BeforeAfter) -> None:
        if len(self.screen_stack) > 1 or self._panes.editing:
            return  # the user has turned to something else
        width = min(90, max(NARROWEST, self.size.width * 24 // 25 - 6))  # of the overlay
        display = replace(self._display_whole, width=width)
        view = view_together(effect, unicode=display.unicode)
        self.push_screen(Overlay(Group(*show_view(view, display))))

    def action_picture(self) -> None:
        scene = self.scene
        if scene and scene.waits:
            self._tell(f"{scene.map.label} is not computed yet; wait a moment")
        elif scene:
            self._save("drawing …", partial(save_picture, scene, self._folder))

    def action_page(self) -> None:
        scene, captured = self.scene, self._presented
        if scene is None:
            return
        if captured is None or captured is not self._capture:
            self._tell("the page shows all heads, and some are not computed yet; wait a moment")
            return
        write = partial(save_page, captured, scene, self.toggles, self._folder)
        self._save("writing the page …", write, "; it opens in any browser, offline")

    def _save(self, doing: str, write: Callable[[], Path], more: str = "") -> None:
        """Write a file in a thread; `more` follows its path in the notification."""

        def save() -> str:
            try:
                note = f"saved {write()}"
            except AttnvizError as error:
                self.not_saved = error if self._leaving else None
                raise
            self.saved.append(note)
            return note + more

        tell = partial(self.notify, timeout=3, markup=False)
        self._off_thread(SAVE, doing, save, tell)


def names_of(toggles: Transforms) -> list[str]:
    """The transforms that are on, as a person reads them."""
    states = {"words": toggles.words, "no sink": toggles.drop_sink, "rollout": toggles.rollout}
    return [name for name, on in states.items() if on]


# The overlays: the list of all keys, and the next tokens without a head.

HELP = """\
[b]Navigation[/b]
  tab, shift+tab   go to the next or the previous pane
  arrows, hjkl     heads: layers and heads; pattern: queries and keys;
                   text: tokens; links: from link to link
  enter            in the links: make the chosen key the query
  /                find a token: its text, its index, or /a pattern/
  n                go to the next match
  mouse            click a word, a head, a weight or a link

[b]Transforms[/b]
  w                merge the pieces of words (on or off)
  s                remove the sink, the first token (on or off)
  r                rollout: multiply the layers (on or off)

[b]Actions[/b]
  g                heads as miniatures, where there is room, or as a list
  e                edit the text; the patterns follow; esc: done
  a                ablate the head: predictions with and without it
  p                save the pattern as a PNG in this folder
  o                save all heads as a web page in this folder
  q, ctrl+c        quit, after files being saved are finished
  ctrl+z           suspend; the shell's fg resumes

[b]Panes[/b]
  heads            the key that the query attends to most; the query
                   itself, the first token and special tokens do not
                   count. A dark cell: no other key stands out
  pattern          a row per query, a column per key; the chosen weight
                   is reversed, or \\[]
  links            what the query attends to, and what attends to it;
                   weights under 0.01 are hidden
"""


class Overlay(ModalScreen[None]):
    """A text to read; each of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,a", "dismiss", "Close"),
        Binding("ctrl+c", "app.quit", "Quit"),
    ]

    def __init__(self, content: Group | str) -> None:
        super().__init__()
        self._content = content

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="overlay") as overlay:
            overlay.border_subtitle = "esc: close"
            yield Static(self._content, id="content")

    def on_click(self) -> None:
        self.dismiss()


# Saving the chosen head as a picture, or all heads as a page.

_ONE_AT_A_TIME = Lock()
"""A free name is free only until the next file is written."""


def save_picture(scene: Scene, folder: Path) -> Path:
    """Draw the chosen head into a file with a free name."""
    with _ONE_AT_A_TIME:
        pieces = pieces_of(scene.one, "png")
        path = _free_name(folder, f"attnviz-{scene.map.label.replace(' ', '-')}", ".png")
        write_bytes(path, encoded(pieces))
    return path


def save_page(captured: Capture, scene: Scene, toggles: Transforms, folder: Path) -> Path:
    """Write the page of all heads, which opens with the chosen head; it shows no rollout."""
    start = Start(
        head=scene.head or captured.heads[0],
        sink=toggles.drop_sink,
        unit="words" if toggles.words else None,
        query=scene.query,
    )
    with _ONE_AT_A_TIME:
        path = _free_name(folder, "attnviz", ".html")
        write_bytes(path, encoded(page_of(whole_exhibit(captured), start)))
    return path


def _free_name(folder: Path, stem: str, suffix: str) -> Path:
    """A path that does not exist yet: `attnviz.html`, `attnviz-2.html` and so on."""
    numbers = chain([""], (f"-{number}" for number in count(2)))
    paths = (folder / f"{stem}{number}{suffix}" for number in numbers)
    return next(path for path in paths if not path.exists())
