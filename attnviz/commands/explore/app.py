"""The terminal app: a text, its heads, one head's pattern, one token's links.

    an edit or a toggle ─► (`running.py`) ─► scene ─► panes
    a key or a click ─► Chosen ─► another scene ─► panes

The scene is the only thing that changes; panes only show it. Runs, transforms, pictures and pages
are made in threads, so that no key has to wait.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import ClassVar

from rich.console import Group
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static, TextArea

from attnviz.commands.ablate.terminal import render_together
from attnviz.commands.explore.panes import Panes
from attnviz.commands.explore.running import AblationDone, Chosen, Opened, RunningApp, Step
from attnviz.commands.explore.scene import Scene, Toggles
from attnviz.commands.show.page import Start, page_of
from attnviz.commands.show.run import pieces_of
from attnviz.console import NARROWEST, Display
from attnviz.errors import Speller, UsageError, as_argument
from attnviz.kit.write import encoded, write_bytes
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture
from attnviz.records.positions import find_positions
from attnviz.records.transforms import Unit


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
        self.push_screen(AblationScreen(Group(*render_together(event.effect, display))))

    def action_picture(self) -> None:
        scene = self.scene
        if scene and scene.waits:
            self._tell(f"{scene.map.label} is not computed yet; wait a moment")
        elif scene:
            self._save("drawing …", lambda: save_picture(scene, self._folder))

    def action_page(self) -> None:
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
        self.push_screen(HelpScreen(HELP))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys that are letters only where letters are not text."""
        typing = self._panes.editing or self._find.is_open
        in_text = typing and self.focused in (self._panes.editor, self._find)
        letters = "edit find turn ablate picture page help find_next switch_heads".split()
        return not (in_text and action in letters)

    def _status(self) -> None:
        """Show, under the text, what the app is doing, else the transforms that are on."""
        said = [*self.toggles.names, *(["esc: done"] if self._panes.editing else [])]
        if self.scene is None:
            said = ["type a text" if self._panes.editing else "e: type a text"]
        doing = self._doing
        if doing and self._capture is None and self._wanted.any:
            doing.append(f"then {', '.join(self._wanted.names)}")
        self._panes.say(" · ".join(doing) or self._problem or " · ".join(said))


# The line that asks for a token, and goes to it while it is typed.


class Find(Input):
    """Finds a token of a scene, and the next one; posts `Chosen` to go there."""

    def __init__(self) -> None:
        super().__init__(id="find", placeholder="a token, an index, or /a pattern/")
        self.border_title = Content("find")
        self._scene: Scene | None = None
        self._places: tuple[int, ...] = ()
        self._of_keys = False

    def open(self, scene: Scene) -> None:
        self._scene = scene
        self.value = ""
        self.border_subtitle = ""
        self.add_class("open")
        self.focus()

    def close(self) -> None:
        self.remove_class("open")

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def forget(self) -> None:
        """Forget the matches, because positions have changed."""
        self._places = ()

    def next_after(self, scene: Scene) -> Chosen | None:
        """The next match, and after the last the first; None where there is none."""
        here = scene.key if self._of_keys else scene.query
        if not self._places:
            return None
        return self._at(next((place for place in self._places if place > here), self._places[0]))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Go to the first match."""
        event.stop()
        if self._scene is None or not event.value.strip():
            self.border_subtitle = ""
            return
        self._places, self._of_keys = matches_of(self._scene, event.value)
        if not self._places:
            self.border_subtitle = Content("not in this text")
            return
        self.border_subtitle = Content(f"{len(self._places)} found; n: next")
        self.post_message(self._at(self._places[0]))

    def _at(self, place: int) -> Chosen:
        return Chosen(key=place) if self._of_keys else Chosen(query=place)


def matches_of(scene: Scene, name: str) -> tuple[tuple[int, ...], bool]:
    """The positions that a name matches, and whether they are keys.

    Names are those of `find_positions`; where no token is called so, the tokens match in which
    the name occurs. Tokens that are left out of the scene do not match.
    """
    sides = [(scene.capture.query_tokens, scene.exhibit.queries)]
    sides += [] if scene.capture.one_sequence else [(scene.capture.key_tokens, scene.exhibit.keys)]
    folded = name.strip().casefold()
    for of_keys, (tokens, shown) in enumerate(sides):
        with suppress(UsageError):
            named = find_positions(tokens, (name,), "query")
            if matches := tuple(place for place in named if place in set(shown)):
                return matches, bool(of_keys)
    for of_keys, (tokens, shown) in enumerate(sides):
        containing = (token.index for token in tokens if folded in token.label.casefold())
        if matches := tuple(place for place in containing if place in set(shown)):
            return matches, bool(of_keys)
    return (), False


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
            yield Static(self._content, id="said")

    def on_click(self) -> None:
        self.dismiss()


class HelpScreen(Overlay):
    """All keys."""


class AblationScreen(Overlay):
    """The next tokens with and without a head."""


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


def save_page(captured: Capture, scene: Scene, toggles: Toggles, folder: Path) -> Path:
    """Write the page of all heads, which opens with the chosen head; it shows no rollout."""
    unit: Unit | None = "words" if toggles.words else None
    start = Start(scene.head or captured.heads[0], toggles.sink, unit, scene.query)
    everything = whole_exhibit(captured)
    with _ONE_AT_A_TIME:
        path = _free_name(folder, "attnviz", ".html")
        write_bytes(path, encoded(page_of(everything, start)))
    return path


def _free_name(folder: Path, stem: str, suffix: str) -> Path:
    """A path that does not exist yet: `attnviz.html`, `attnviz-2.html` and so on."""
    path, number = folder / f"{stem}{suffix}", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}{suffix}"
    return path
